//! Tables whose columns line up.

use super::{bold, printable};

/// Rows of text under a heading.
pub(crate) struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            heading: heading.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let cells = cells.into_iter().map(|cell| printable(cell.as_ref()));
        self.rows.push(cells.collect());
    }

    /// The table as text, one line per row, two blanks between columns.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            longest.max(self.heading[column].len())
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        let heading: Vec<String> = self.heading.iter().map(|&cell| cell.to_owned()).collect();
        let mut text = bold(&aligned(&heading, &widths));
        for row in &self.rows {
            text.push('\n');
            text.push_str(&aligned(row, &widths));
        }
        text
    }
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, &width)| format!("{cell:width$}"))
        .collect();
    padded.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_cells_hold() {
        let mut table = Table::new(["NAME", "KIND"]);
        table.row(["stripe-main", "stripe"]);
        table.row(["é", "x"]);
        assert_eq!(
            table.render(),
            "NAME         KIND\nstripe-main  stripe\né            x"
        );
    }
}
