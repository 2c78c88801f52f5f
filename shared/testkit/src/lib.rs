//! Test support: a database per test, fixtures, fault injection. A dev-dependency only.
