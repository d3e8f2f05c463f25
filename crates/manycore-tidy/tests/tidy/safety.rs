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

/// What leaves out which clause of the contract it is.
const UNNAMED: [&str; 2] = ["the contract of this function.", "the contract of this method."];

/// No shorter reason says who keeps an invariant, and which one.
const LENGTH_MIN: usize = 25;

fn check(file: &Source) -> Vec<Finding> {
    missing(file).into_iter().chain(empty(file)).collect()
}

/// Reasons that say nothing.
fn empty(file: &Source) -> Vec<Finding> {
    let fault = |reason: &str| {
        let reason = reason.to_lowercase();
        let is_short = reason.chars().count() < LENGTH_MIN || UNNAMED.contains(&&*reason);
        let phrase = EMPTY.iter().find(|phrase| reason.starts_with(*phrase));
        phrase.map(|phrase| phrase.trim_end().to_owned()).or_else(|| is_short.then_some(reason))
    };
    (0..file.lines.len())
        .filter_map(|index| {
            let says_nothing = fault(&reason(file, index)?)?;
            let advice = format!(
                "name the invariant, and who keeps it or which clause of the contract: \
                 `{says_nothing}` says neither"
            );
            Some(Finding::new(&file.path, index + 1, advice))
        })
        .collect()
}

/// The reason that begins in a line, up to the comment's end or to another reason.
fn reason(file: &Source, index: usize) -> Option<String> {
    let (before, first) = file.lines[index].split_once("SAFETY:")?;
    let before = before.trim();
    let is_own_line = is_comment(before);
    (is_own_line || before.ends_with(" //")).then_some(())?;
    let further = file.lines[index + 1..].iter().map(|line| line.trim_start());
    let further = further
        .take_while(|line| is_own_line && is_comment(line) && !line.contains("SAFETY:"))
        .map(|line| line.trim_start_matches('/'));
    Some(std::iter::once(first).chain(further).collect::<String>().trim().to_owned())
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
    assert_eq!(
        lines("a.rs", "// SAFETY: `f` has acquired the lock.\nlet a = 1;\nunsafe { g() }"),
        [3]
    );
    assert_eq!(lines("a.rs", "// Sends.\nunsafe impl Send for A {}"), [2]);
    assert_eq!(lines("a.rs", "macro_rules! m { () => {\n unsafe { g() } } }"), [2]);
    assert_eq!(lines("a.rs", "fn f() {\n naked_asm!(\"ret\")\n}"), [2]);
    assert_eq!(lines("a.c", "int f() {\n __asm__(\"nop\");\n}"), [2]);
}

#[test]
fn accepts_a_reason() {
    let lines = |path, text| crate::lines(check(&Source::new(path, text)));
    assert!(
        lines("a.rs", "// SAFETY: this thread holds the lock.\nlet a =\n    unsafe { g() };")
            .is_empty()
    );
    assert!(
        lines(
            "a.rs",
            "// SAFETY: the lock is\n// held meanwhile.\n#[inline]\nunsafe impl Send for A {}"
        )
        .is_empty()
    );
    assert!(lines("a.rs", "/// # Safety\nunsafe fn f();\n// unsafe { }").is_empty());
    assert!(
        lines("a.c", "/* SAFETY: the instruction has no operands. */\n__asm__(\"nop\");")
            .is_empty()
    );
}

#[test]
fn notices_a_reason_that_says_nothing() {
    let lines = |text| crate::lines(check(&Source::new("a.rs", text)));
    assert_eq!(lines("// SAFETY: as above.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: as of `f`.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: likewise.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: By the caller's word, it is there.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: see `f`.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: it is held.\nunsafe { g() }"), [1]);
    assert_eq!(lines("// SAFETY: it is held.\nunsafe { g() } // Something else."), [1]);
    assert_eq!(lines("// SAFETY: the contract of\n// this function.\nunsafe { g() }"), [1]);
    assert!(lines("// SAFETY: seen by this thread only.\nunsafe { g() }").is_empty());
    assert!(lines("// SAFETY: the caller holds it, as above.\nunsafe { g() }").is_empty());
}
