//! Words and rules of Hookstead: ids, names, patterns, deduplication. Pure.
