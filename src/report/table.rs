//! Columns.

/// Rows under headings, columns aligned, two spaces or more between them; no
/// spaces at the ends of lines.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&heading]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let rows = [vec!["a".to_owned(), "long".to_owned(), "x".to_owned()], vec!["bcd".to_owned(), String::new()]];
        assert_eq!(table(&["N", "M", "LAST"], &rows), "N     M      LAST\na     long   x\nbcd\n");
    }
}
