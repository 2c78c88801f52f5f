//! All SQL of Hookstead: migrations, roles, the ingest statement, retrieval.
