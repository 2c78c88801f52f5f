//! Reading a table field by field, so that one wrong field hides no other.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::problem::{Problem, Problems};
use super::type_word;

/// The text of the file, for line numbers.
pub(crate) struct Text<'t> {
    text: &'t str,
}

impl<'t> Text<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text }
    }

    pub(crate) fn as_str(&self) -> &'t str {
        self.text
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        let before = self
            .text
            .as_bytes()
            .get(..offset)
            .unwrap_or(self.text.as_bytes());
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }
}

/// A table whose fields are taken one after the other.
pub(crate) struct Fields<'t, 'p> {
    table: String,
    line: usize,
    entries: DeTable<'t>,
    text: &'p Text<'t>,
    problems: &'p mut Problems,
    known: Vec<&'static str>,
}

impl<'t, 'p> Fields<'t, 'p> {
    /// `table` names it in messages: `source "stripe-main"`.
    pub(crate) fn new(
        table: impl Into<String>,
        entries: Spanned<DeTable<'t>>,
        text: &'p Text<'t>,
        problems: &'p mut Problems,
    ) -> Self {
        Self {
            table: table.into(),
            line: text.line(entries.span().start),
            entries: entries.into_inner(),
            text,
            problems,
            known: Vec::new(),
        }
    }

    /// The line where the table starts.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Reports something about a field.
    pub(crate) fn problem(
        &mut self,
        field: &str,
        line: usize,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.problems.add(Problem {
            line: Some(line),
            table: self.table.clone(),
            field: field.to_owned(),
            code,
            message: message.into(),
        });
    }

    fn raw(&mut self, field: &'static str) -> Option<(usize, Spanned<DeValue<'t>>)> {
        self.known.push(field);
        let value = self.entries.remove(field)?;
        Some((self.text.line(value.span().start), value))
    }

    /// The value of a field with its line; a value of another shape is a problem.
    pub(crate) fn take<T: DeserializeOwned>(
        &mut self,
        field: &'static str,
        expected: &str,
    ) -> Option<(usize, T)> {
        let (line, value) = self.raw(field)?;
        let found = type_word(value.get_ref());
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => Some((line, value)),
            Err(_) => {
                // The deserialiser's own message quotes the value, which may be a secret.
                let message = format!("must be {expected}, and is another {found}");
                self.problem(field, line, "wrong_type", message);
                None
            }
        }
    }

    /// A value whose own error text may be shown, because its type holds no secret.
    pub(crate) fn take_described<T: DeserializeOwned>(
        &mut self,
        field: &'static str,
        code: &'static str,
    ) -> Option<(usize, T)> {
        let (line, value) = self.raw(field)?;
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => Some((line, value)),
            Err(error) => {
                let at = error.span().map_or(line, |span| self.text.line(span.start));
                self.problem(field, at, code, error.message().trim());
                None
            }
        }
    }

    /// A text that is parsed further.
    pub(crate) fn parse<T>(
        &mut self,
        field: &'static str,
        code: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<(usize, T)> {
        let (line, text) = self.take::<String>(field, "text")?;
        match without_nul(&text).and_then(parse) {
            Ok(value) => Some((line, value)),
            Err(message) => {
                self.problem(field, line, code, message);
                None
            }
        }
    }

    /// A list of texts that are parsed further; every wrong one is reported.
    pub(crate) fn parse_all<T>(
        &mut self,
        field: &'static str,
        code: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let Some((line, texts)) = self.take::<Vec<String>>(field, "a list of texts") else {
            return Vec::new();
        };
        let mut values = Vec::new();
        for text in texts {
            match without_nul(&text).and_then(&parse) {
                Ok(value) => values.push(value),
                Err(message) => self.problem(field, line, code, format!("\"{text}\": {message}")),
            }
        }
        values
    }

    /// A sub-table.
    pub(crate) fn table(&mut self, field: &'static str) -> Option<Spanned<DeTable<'t>>> {
        let (line, value) = self.raw(field)?;
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Spanned::new(span, table)),
            other => {
                let message = format!("must be a table, and is {}", type_word(&other));
                self.problem(field, line, "wrong_type", message);
                None
            }
        }
    }

    /// The tables of an array of tables, numbered from 1.
    pub(crate) fn tables(&mut self, field: &'static str) -> Vec<(usize, Spanned<DeTable<'t>>)> {
        let Some((line, value)) = self.raw(field) else {
            return Vec::new();
        };
        let mut tables = Vec::new();
        let mut all_tables = true;
        match value.into_inner() {
            DeValue::Array(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    let span = item.span();
                    match item.into_inner() {
                        DeValue::Table(table) => {
                            tables.push((index + 1, Spanned::new(span, table)))
                        }
                        _ => all_tables = false,
                    }
                }
            }
            _ => all_tables = false,
        }
        if !all_tables {
            self.problem(
                field,
                line,
                "wrong_type",
                format!("is written [[{field}]], once for each"),
            );
        }
        tables
    }

    /// Reports a field that is not there.
    pub(crate) fn missing(&mut self, field: &str, message: &str) {
        let line = self.line;
        self.problem(field, line, "missing_field", message);
    }

    /// Reports every field that nobody asked for.
    pub(crate) fn finish(self) {
        for (key, _) in &self.entries {
            let name = key.get_ref();
            let mut message = format!("is not a field here; known are {}", self.known.join(", "));
            if let Some(near) = self.known.iter().find(|known| is_near(known, name)) {
                message = format!("is not a field here; did you mean {near}?");
            }
            self.problems.add(Problem {
                line: Some(self.text.line(key.span().start)),
                table: self.table.clone(),
                field: name.to_string(),
                code: "unknown_field",
                message,
            });
        }
    }

    /// Whether a field is there, whatever it holds.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.entries.contains_key(field)
    }

    /// Names the table in messages once its name is known.
    pub(crate) fn rename(&mut self, table: String) {
        self.table = table;
    }
}

/// PostgreSQL's text holds every character but this one.
fn without_nul(text: &str) -> Result<&str, String> {
    if text.contains('\0') {
        return Err("must not hold the character U+0000".to_owned());
    }
    Ok(text)
}

/// Whether two names differ in at most two letters at one place, as typing errors do.
fn is_near(known: &str, typed: &str) -> bool {
    let (long, short) = if known.len() > typed.len() {
        (known, typed)
    } else {
        (typed, known)
    };
    let same_start = long
        .bytes()
        .zip(short.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let same_end = long
        .bytes()
        .rev()
        .zip(short.bytes().rev())
        .take_while(|(a, b)| a == b)
        .count();
    long.len().saturating_sub(same_start + same_end) <= 2 && same_start + same_end > 0
}
