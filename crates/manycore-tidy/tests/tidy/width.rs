//! A comment ends at column 100.

use crate::Finding;
use crate::source::{Source, TREE};

const COLUMNS: usize = 100;
/// A word of this length, such as a link, leaves little to be folded.
const LONG_WORD: usize = 50;

fn check(file: &Source) -> Vec<Finding> {
    let (mut findings, mut fenced) = (Vec::new(), false);
    for (number, line) in file.lines.iter().enumerate().filter(|_| file.path.ends_with(".rs")) {
        let code = line.trim_start();
        let text = ["//!", "///", "//"].iter().find_map(|mark| code.strip_prefix(mark));
        let Some(text) = text else {
            fenced = false;
            continue;
        };
        fenced ^= text.trim_start().starts_with("```");
        if line.chars().count() > COLUMNS && !fenced && can_be_folded(text) {
            let advice = format!("the comment ends after column {COLUMNS}: fold it");
            findings.push(Finding::new(&file.path, number + 1, advice));
        }
    }
    findings
}

/// Not the row of a table, nor a program or a drawing.
fn can_be_folded(text: &str) -> bool {
    let is_laid_out = text.starts_with("    ") || text.trim_start().starts_with('|');
    !is_laid_out && text.split_whitespace().all(|word| word.len() < LONG_WORD)
}

#[test]
fn comments_end_at_column_100() {
    crate::report(TREE.iter().flat_map(check));
}

#[test]
fn long_comments_are_found_and_tables_are_not() {
    let words = "word ".repeat(20);
    let file = format!(
        "//! {words}\n//!\n//! | {words}|\n//! ```text\n//! {words}\n//! ```\nfn a() {{}} // short\n    /// {words}\n\
         //     {words}\n// {words}{}",
        "x".repeat(LONG_WORD)
    );
    let found = check(&Source::new("a.rs", &file));
    assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 8]);
}
