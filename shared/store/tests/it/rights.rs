//! The table of rights in docs/data-model.md, as data.

use std::collections::{BTreeMap, BTreeSet};

use hookstead_testkit::role;

const DOCUMENT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/data-model.md"
));

/// What one role may do with one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    /// Verbs on the whole object.
    pub(crate) whole: BTreeSet<String>,
    /// Verbs on some columns.
    pub(crate) columns: BTreeMap<String, BTreeSet<String>>,
}

impl Rights {
    pub(crate) fn allow(&self, verb: &str) -> bool {
        self.whole.contains(verb)
    }

    pub(crate) fn allow_on(&self, verb: &str, column: &str) -> bool {
        self.allow(verb)
            || self
                .columns
                .get(verb)
                .is_some_and(|columns| columns.contains(column))
    }

    /// Parses `insert, select (a, b)`.
    fn parse(text: &str) -> Self {
        let mut rights = Self::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find([',', '(']).unwrap_or(rest.len());
            let verb = rest[..end].trim().to_owned();
            rest = &rest[end..];
            if let Some(list) = rest.strip_prefix('(') {
                let (columns, after) = list.split_once(')').unwrap();
                let columns = columns.split(',').map(|column| column.trim().to_owned());
                rights.columns.insert(verb, columns.collect());
                rest = after.trim_start();
            } else {
                rights.whole.insert(verb);
            }
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        rights
    }
}

/// Object, role, rights: the rows between the document's two markers.
pub(crate) fn documented() -> BTreeMap<String, BTreeMap<String, Rights>> {
    let begin = "<!-- privileges: begin -->";
    let (_, after) = DOCUMENT
        .split_once(begin)
        .expect("the document has the table");
    let (table, _) = after.split_once("<!-- privileges: end -->").unwrap();
    let mut objects: BTreeMap<String, BTreeMap<String, Rights>> = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let object = objects
            .entry(cells[0].trim_matches('`').to_owned())
            .or_default();
        if cells[1] != "nobody" {
            let known = role::ALL.contains(&format!("hookstead_{}", cells[1]).as_str());
            assert!(known, "no such role: {line}");
            let before = object.insert(format!("hookstead_{}", cells[1]), Rights::parse(cells[2]));
            assert!(before.is_none(), "named twice: {line}");
        }
    }
    objects
}
