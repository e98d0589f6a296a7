//! A table of plain text: cells in columns, a rule below the headings.

/// Returns the lines of a table whose first row has the headings.
///
/// The first column is set to the left, the others, which are numbers, to the right.
pub(crate) fn lines(rows: &[Vec<String>]) -> Vec<String> {
    let widths = widths(rows);
    let mut lines: Vec<String> = rows.iter().map(|row| aligned(row, &widths)).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    lines.insert(1.min(lines.len()), rule.join("  "));
    lines
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(move |row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    (0..columns).map(width).collect()
}

/// Returns one row, its cells in columns of these widths.
pub(crate) fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(index, (cell, &width))| match index {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        })
        .collect();
    cells.join("  ")
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn numbers_end_in_the_same_column() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let lines = lines(&[row(["mode", "n", "n"]), row(["a", "4,003", "7"])]);
        let expected = ["mode      n  n", "----  -----  -", "a     4,003  7"];
        assert_eq!(lines, expected);
    }
}
