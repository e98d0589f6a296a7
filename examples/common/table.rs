//! Tables: a row for each run, a column for each figure.

use super::columns::lines;

/// Rows of cells under a row of headings.
pub(crate) type Table = Vec<Vec<String>>;

/// A heading, and the cell below it of a row.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

/// Returns the cells of a table, the headings first.
pub(crate) fn rows<R>(columns: &[Column<R>], of: &[R]) -> Table {
    let heads = columns.iter().map(|(head, _)| (*head).to_owned());
    let row = |of| columns.iter().map(|(_, cell)| cell(of)).collect();
    let rows = of.iter().map(row);
    [heads.collect()].into_iter().chain(rows).collect()
}

/// Returns a table as lines: for a terminal, or in Markdown.
pub(crate) fn text(table: &Table, markdown: bool) -> String {
    if !markdown {
        return lines(table).join("\n");
    }
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<_> = table.iter().map(|row| line(row)).collect();
    let rule: Vec<_> = table[0].iter().map(|_| "---".to_owned()).collect();
    lines.insert(1, format!("|{}|", rule.join("|")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn markdown_has_a_rule_below_the_headings() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let table = vec![row(["limiter", "n"]), row(["none", "7"])];
        let lines = "| limiter | n |\n|---|---|\n| none | 7 |";
        assert_eq!(text(&table, true), lines);
        assert!(text(&table, false).starts_with("limiter  n\n"));
    }
}
