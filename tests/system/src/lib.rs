//! Whole-system scenarios and rules over the repository itself.
//!
//! This library reads the repository; the rules are the tests in `tests/it`.

mod repository;
mod source;

pub use repository::{File, Repository};
pub use source::{code_of, without_tests};
