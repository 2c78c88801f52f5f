//! Whole-system scenarios and rules over the repository itself.
