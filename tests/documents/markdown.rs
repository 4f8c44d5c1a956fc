//! Pieces of a Markdown text.

/// Sections under headings of a level, `(heading, text)`; what stands before
/// the first is left out.
pub fn sections(text: &str, level: usize) -> Vec<(&str, &str)> {
    let mark = format!("\n{} ", "#".repeat(level));
    let split = text.split(mark.as_str()).skip(1);
    split.map(|section| section.split_once('\n').unwrap_or((section, ""))).collect()
}

/// The one section of a heading.
pub fn section<'a>(text: &'a str, level: usize, heading: &str) -> &'a str {
    let found: Vec<_> = sections(text, level).into_iter().filter(|(found, _)| *found == heading).collect();
    assert_eq!(found.len(), 1, "sections named `{heading}`");
    found[0].1
}

/// What stands between single backticks.
pub fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Cells of every table, headings left out.
pub fn rows(text: &str) -> Vec<Vec<&str>> {
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("|-") {
            rows.pop();
        } else if let Some(cells) = line.strip_prefix("| ") {
            rows.push(cells.trim_end_matches('|').split('|').map(str::trim).collect());
        }
    }
    rows
}

/// Rows of the tables whose first column has a heading.
pub fn rows_below<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let first = format!("| {heading} |");
    let tables = text.split("\n\n").filter(|block| block.starts_with(&first));
    tables.flat_map(rows).collect()
}

/// Texts of the fences of a language.
pub fn fences<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("\n```{language}\n");
    text.split(open.as_str()).skip(1).map(|rest| rest.split_once("\n```").unwrap_or((rest, "")).0).collect()
}
