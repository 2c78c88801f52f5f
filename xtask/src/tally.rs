//! Counting tests.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    pub(crate) const FAILURE: Self = Self {
        passed: 0,
        failed: 1,
    };

    /// What a line of output adds: only libtest's `test result:` lines count.
    pub(crate) fn of_line(line: &str) -> Self {
        let Some(rest) = line.trim_start().strip_prefix("test result: ") else {
            return Self::default();
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let before = |wanted: &str| {
            let place = words.iter().position(|word| *word == wanted)?;
            words.get(place.checked_sub(1)?)?.parse().ok()
        };
        Self {
            passed: before("passed;").unwrap_or(0),
            failed: before("failed;").unwrap_or(0),
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn tally(passed: u64, failed: u64) -> Tally {
        Tally { passed, failed }
    }

    #[test]
    fn result_lines_are_read_with_and_without_colour() {
        let plain = "test result: ok. 22 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(Tally::of_line(plain), tally(22, 0));
        let coloured = "test result: \u{1b}[31mFAILED\u{1b}[0m. 7 passed; 3 failed; 0 ignored;";
        assert_eq!(Tally::of_line(coloured), tally(7, 3));
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in [
            "",
            "test a ... ok",
            "5 passed; 2 failed;",
            "test result: odd",
        ] {
            assert_eq!(Tally::of_line(line), tally(0, 0), "{line}");
        }
    }

    #[test]
    fn the_closing_line_has_the_agreed_form() {
        let mut sum = tally(2, 0);
        sum += tally(3, 1);
        assert_eq!(sum.to_string(), "5 passed, 1 failed");
    }
}
