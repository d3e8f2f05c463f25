//! A comment ends at column 100.

use crate::Finding;
use crate::source::{Source, TREE};

const COLUMNS: usize = 100;
/// A word of this length, such as a link, leaves little to be folded.
const LONG_WORD: usize = 50;

fn check(file: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines.iter().enumerate().filter(|_| file.path.ends_with(".rs")) {
        let code = line.trim_start();
        let text = ["//!", "///", "//"].iter().find_map(|mark| code.strip_prefix(mark));
        let Some(text) = text else { continue };
        if line.chars().count() > COLUMNS && can_be_folded(text) {
            let advice = format!("the comment ends after column {COLUMNS}: fold it");
            findings.push(Finding::new(&file.path, number + 1, advice));
        }
    }
    findings
}

/// The row of a table, a program and a drawing can be written in another way, too.
fn can_be_folded(text: &str) -> bool {
    text.split_whitespace().all(|word| word.len() < LONG_WORD)
}

#[test]
fn comments_end_at_column_100() {
    crate::report(TREE.iter().flat_map(check));
}

#[test]
fn long_comments_are_found() {
    let words = "word ".repeat(20);
    let file = format!(
        "//! {words}\n//!\n//! | {words}|\n//! ```text\n//! {words}\n//! ```\nfn a() {{}} // short\n    /// {words}\n\
         //     {words}\n// {words}{}",
        "x".repeat(LONG_WORD)
    );
    let found = check(&Source::new("a.rs", &file));
    assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 3, 5, 8, 9]);
}
