//! Above code that the compiler cannot check, a comment gives the reason why it is right.
//!
//! Clippy requires the same for unsafe blocks, but not inside macros and not for assembly or C.
//! Only a reader can judge a reason; but some phrases name no invariant, and no place to look for
//! one, wherever they are.

use crate::Finding;
use crate::source::{Source, TREE, is_comment};

/// What needs a reason, as sequences of tokens.
const UNCHECKED: &[&str] = &["unsafe {", "unsafe impl", "naked_asm !", "global_asm !"];

/// What says nothing where it begins a reason.
const EMPTY: &[&str] = &[
    "above",
    "as above",
    "as before",
    "as for",
    "as in",
    "as of",
    "by the caller",
    "by the contract",
    "likewise",
    "obvious",
    "passed on",
    "safe",
    "see ",
    "the caller's promise",
    "the same",
];

fn check(file: &Source) -> Vec<Finding> {
    missing(file).into_iter().chain(empty(file)).collect()
}

/// Reasons that say nothing.
fn empty(file: &Source) -> Vec<Finding> {
    let says_nothing = |line: &str| {
        let (before, reason) = line.split_once("SAFETY:")?;
        let reason = reason.trim_start().to_lowercase();
        is_comment(before.trim_start()).then_some(())?;
        EMPTY.iter().find(|phrase| reason.starts_with(*phrase))
    };
    let numbered = file.lines.iter().enumerate();
    numbered
        .filter_map(|(index, line)| {
            let phrase = says_nothing(line)?;
            let advice = format!(
                "name the invariant, and who keeps it or which clause of the contract: `{}` says neither",
                phrase.trim_end()
            );
            Some(Finding::new(&file.path, index + 1, advice))
        })
        .collect()
}

fn missing(file: &Source) -> Vec<Finding> {
    let rust =
        UNCHECKED.iter().flat_map(|sequence| file.occurrences(sequence)).map(|rest| rest[0].line);
    let c = file.lines.iter().enumerate().filter(|(_, line)| {
        file.has_extension(&["c", "h", "cc", "cpp"])
            && line.contains("__asm__")
            && !is_comment(line.trim())
    });
    rust.chain(c.map(|(index, _)| index + 1))
        .filter(|line| !has_reason(file, *line))
        .map(|line| {
            Finding::new(
                &file.path,
                line,
                "write `SAFETY: ...` directly above: which invariant makes it right?",
            )
        })
        .collect()
}

/// Whether the comment above the statement that the line is part of names the invariant.
fn has_reason(file: &Source, line: usize) -> bool {
    let above = || (1..line).rev().map(|number| file.line(number));
    above()
        .skip_while(|text| !is_comment(text) && !ends_statement(text))
        .take_while(|text| is_comment(text))
        .any(|text| text.contains("SAFETY:"))
}

fn ends_statement(line: &str) -> bool {
    line.is_empty() || line.ends_with([';', '{', '}', ','])
}

#[test]
fn unchecked_code_names_its_invariant() {
    crate::report(TREE.iter().flat_map(check));
}

#[test]
fn notices_a_missing_reason() {
    let lines = |path, text| crate::lines(check(&Source::new(path, text)));
    assert_eq!(lines("a.rs", "fn f() {\n    unsafe { g() }\n}"), [2]);
    assert_eq!(lines("a.rs", "// SAFETY: so.\nlet a = 1;\nunsafe { g() }"), [3]);
    assert_eq!(lines("a.rs", "// Sends.\nunsafe impl Send for A {}"), [2]);
    assert_eq!(lines("a.rs", "macro_rules! m { () => {\n unsafe { g() } } }"), [2]);
    assert_eq!(lines("a.rs", "fn f() {\n naked_asm!(\"ret\")\n}"), [2]);
    assert_eq!(lines("a.c", "int f() {\n __asm__(\"nop\");\n}"), [2]);
}

#[test]
fn accepts_a_reason() {
    let lines = |path, text| crate::lines(check(&Source::new(path, text)));
    assert!(lines("a.rs", "// SAFETY: held.\nlet a =\n    unsafe { g() };").is_empty());
    assert!(
        lines("a.rs", "// SAFETY: held,\n// and more.\n#[inline]\nunsafe impl Send for A {}")
            .is_empty()
    );
    assert!(lines("a.rs", "/// # Safety\nunsafe fn f();\n// unsafe { }").is_empty());
    assert!(lines("a.c", "/* SAFETY: no operands. */\n__asm__(\"nop\");").is_empty());
}

#[test]
fn notices_a_reason_that_says_nothing() {
    let lines = |text| crate::lines(check(&Source::new("a.rs", text)));
    assert_eq!(lines("// SAFETY: as above.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: as of `f`.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: likewise.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: By the caller's word, it is there.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: see `f`.\nunsafe { g() }"), [1]);
    assert!(lines("// SAFETY: seen by this thread only.\nunsafe { g() }").is_empty());
    assert!(lines("// SAFETY: the caller holds it, as above.\nunsafe { g() }").is_empty());
}
