//! Counts the lines that an adapter takes in the program of its README.

/// Returns how many lines of the first program of a README are paceline's, without `use`. Such
/// lines carry a number.
///
/// The numbers count from one. A line without a number must not name imports from paceline, except
/// in a function `classify`, which says what a user's own errors mean.
#[must_use]
pub fn count_lines(readme: &str) -> usize {
    let program = readme.split("```rust\n").nth(1).expect("a program");
    let program = program.split("\n```").next().unwrap_or(program);
    let (imports, code): (Vec<_>, Vec<_>) =
        program.lines().partition(|line| line.starts_with("use "));
    let names: Vec<_> = imports
        .into_iter()
        .filter(|line| line.starts_with("use paceline"))
        .flat_map(|line| {
            line.split(|c: char| !c.is_alphanumeric() && c != '_')
                .skip(2)
        })
        .filter(|name| name.starts_with(char::is_uppercase))
        .collect();
    assert!(!names.is_empty(), "it uses nothing of paceline's");
    let (mut count, mut classifies) = (0_usize, false);
    for line in code {
        if let Some((_, mark)) = line.split_once("// ") {
            let digits: String = mark.chars().take_while(char::is_ascii_digit).collect();
            if !digits.is_empty() {
                count += 1;
                assert_eq!(digits, count.to_string(), "{line}");
                continue;
            }
        }
        classifies = (classifies || line.starts_with("fn classify")) && !line.starts_with('}');
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let found = words.find(|word| names.contains(word));
        assert!(classifies || found.is_none(), "without a number: {line}");
    }
    count
}

#[cfg(test)]
mod tests {
    use super::count_lines;

    fn readme(program: &str) -> String {
        format!(
            "```toml\nx\n```\n```rust\nuse paceline::{{Adaptive, x::Y}};\nuse other::Z;\n{program}\n```\n"
        )
    }

    #[test]
    fn numbered_lines_are_counted() {
        let program = "Z::new(); // as ever\nAdaptive::new(); // 1\nlet y = Y; // 2: reads\n";
        assert_eq!(count_lines(&readme(program)), 2);
        let classify = "fn classify(z: Z) -> Y {\n    Y\n}\nY; // 1\n";
        assert_eq!(count_lines(&readme(classify)), 1);
    }

    #[test]
    #[should_panic(expected = "without a number: Adaptive::new();")]
    fn a_line_without_a_number_is_found() {
        let _ = count_lines(&readme("Y; // 1\nAdaptive::new();"));
    }

    #[test]
    #[should_panic(expected = "Y; // 3")]
    fn a_number_left_out_is_found() {
        let _ = count_lines(&readme("Y; // 1\nY; // 3"));
    }
}
