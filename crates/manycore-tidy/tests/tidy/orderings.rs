//! Every memory ordering has its reason in a comment, by name.
//!
//! `// Acquire: partner of the Release in unlock` is on the line or above it in the same paragraph.
//! A reader can then check the argument, and the writer had to have one. Where a whole file needs
//! no order, `Relaxed throughout: ...` says so once.

use crate::Finding;
use crate::source::{Source, TREE, is_comment};

const ORDERINGS: &[&str] = &["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

fn check(file: &Source) -> Vec<Finding> {
    let spoken_for = |name| name == "Relaxed" && is_relaxed_throughout(file);
    let is_ordering = |name| ORDERINGS.contains(&name) && !spoken_for(name);
    let uses = file.tokens.iter().filter(|token| is_ordering(token.text.as_str()) && !token.test);
    uses.filter(|token| !file.line(token.line).contains("use "))
        .filter(|token| !paragraph_names(file, token.line, &token.text))
        .map(|token| {
            let advice = format!(
                "say why, as `// {}: ...`, on the line or above it in the same paragraph",
                token.text
            );
            Finding::new(&file.path, token.line, advice)
        })
        .collect()
}

/// Whether a comment on the line, or above it up to the next blank line, has the word.
fn paragraph_names(file: &Source, line: usize, word: &str) -> bool {
    (1..=line)
        .rev()
        .map(|number| file.line(number))
        .take_while(|text| !text.is_empty())
        .filter_map(|text| text.find("//").map(|at| &text[at..]))
        .any(|comment| comment.split(|c: char| !c.is_alphanumeric()).any(|w| w == word))
}

/// Whether one comment speaks for all accesses of the file.
fn is_relaxed_throughout(file: &Source) -> bool {
    file.lines.iter().any(|line| is_comment(line.trim()) && line.contains("Relaxed throughout"))
}

#[test]
fn orderings_have_reasons() {
    let sources =
        TREE.iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"));
    crate::report(sources.flat_map(check));
}

#[test]
fn notices_an_ordering_without_a_reason() {
    let lines = |text| crate::lines(check(&Source::new("a.rs", text)));
    assert_eq!(lines("fn f() {\n x.load(Ordering::Relaxed);\n}"), [2]);
    assert_eq!(lines("// Acquire: so.\nx.swap(1, order!(Release, \"a\"));"), [2]);
    assert_eq!(lines("// Relaxed: so.\na();\n\nx.load(Relaxed);"), [4]);
    assert!(
        lines("// Acquire: so. Relaxed: so.\nx.compare_exchange(0, 1, Acquire, Relaxed);")
            .is_empty()
    );
    assert!(lines("x.load(Relaxed); // Relaxed: a hint").is_empty());
    let throughout =
        "//! Relaxed throughout: counters.\n\nfn f() {\n x.load(Relaxed);\n x.load(Acquire);\n}";
    assert_eq!(lines(throughout), [5]);
    assert!(lines("use Ordering::{Acquire, Relaxed};").is_empty());
}
