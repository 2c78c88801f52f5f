//! Looking at Rust source, line by line: precise enough for house rules, and simple.

/// The lines of code, comments left out. Text after `//` inside a string is lost too,
/// which no rule here minds.
pub fn code_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(place, line)| (place + 1, line.split("//").next().unwrap_or(line)))
        .filter(|(_, code)| !code.trim().is_empty())
}

/// The text before the unit tests at the end of a file.
#[must_use]
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::{code_of, without_tests};

    #[test]
    fn comments_and_blank_lines_are_no_code() {
        let text = "// a\n\nlet b = 1; // c\n/// d\n";
        let code: Vec<_> = code_of(text).collect();
        assert_eq!(code, [(3, "let b = 1; ")]);
    }

    #[test]
    fn unit_tests_are_left_out() {
        assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {}"), "a\n");
        assert_eq!(without_tests("a"), "a");
    }
}
