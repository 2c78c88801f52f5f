//! The reference pages that are written from the rules themselves.

mod retries;
mod states;

pub use retries::retries_page;
pub use states::states_page;

/// How a written page says so.
fn written_from_the_code(page: &mut String) {
    page.push_str(
        "This page is written from the code: `HOOKSTEAD_UPDATE_DOCS=1 cargo test -p hookstead-domain` \
brings it up to date, and a test fails while it is not.\n\n",
    );
}

fn table<const N: usize>(
    page: &mut String,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    row(page, &head);
    row(page, &["---"; N]);
    for cells in rows {
        row(page, &cells);
    }
    page.push('\n');
}

fn row(page: &mut String, cells: &[impl AsRef<str>]) {
    for cell in cells {
        page.push_str("| ");
        page.push_str(cell.as_ref());
        page.push(' ');
    }
    page.push_str("|\n");
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A time as people say it: the largest unit that it is a whole number of.
fn spoken(seconds: u64) -> String {
    let (size, unit) = [(86_400, "days"), (3600, "h"), (60, "min")]
        .into_iter()
        // Two days and more; a day is better said in hours.
        .find(|(size, _)| seconds.is_multiple_of(*size) && (*size < 86_400 || seconds > *size))
        .filter(|_| seconds > 0)
        .unwrap_or((1, "s"));
    format!("{} {unit}", seconds / size)
}
