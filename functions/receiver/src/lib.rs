//! The receiver Lambda: verify, store in one statement, acknowledge.
