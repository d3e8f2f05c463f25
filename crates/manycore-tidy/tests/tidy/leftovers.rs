//! Nothing is left open in the code, and no module is a collection of odds and ends.

use std::path::Path;

use crate::Finding;
use crate::source::{Source, TREE};

const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];
const NOTES: &[&str] = &["FIXME", "XXX"];
const ODDS_AND_ENDS: &[&str] = &["utils", "util", "common", "misc", "helpers", "helper"];

/// This file has to name what it looks for.
const EXEMPT: &str = "crates/manycore-tidy/tests/tidy/leftovers.rs";

fn check(file: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in MACROS {
        let found = file.occurrences(&format!("{name} !")).into_iter().map(|rest| rest[0].line);
        findings.extend(
            found.map(|line| Finding::new(&file.path, line, format!("finish it: `{name}!`"))),
        );
    }
    for (index, line) in file.lines.iter().enumerate() {
        for note in NOTES.iter().filter(|note| contains_word(line, note)) {
            findings.push(Finding::new(&file.path, index + 1, format!("resolve it: {note}")));
        }
    }
    for part in Path::new(&file.path).with_extension("").iter().filter_map(|part| part.to_str()) {
        if ODDS_AND_ENDS.contains(&part) {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("`{part}` says nothing: name the idea"),
            ));
        }
    }
    for name in ODDS_AND_ENDS {
        let found = file.occurrences(&format!("mod {name}")).into_iter().map(|rest| rest[0].line);
        findings.extend(found.map(|line| {
            Finding::new(&file.path, line, format!("`{name}` says nothing: name the idea"))
        }));
    }
    findings
}

/// Whether the word stands alone: templates of temporary names (`a.XXXXXX`) are no notes.
fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        [before, after].into_iter().flatten().all(|c| !c.is_alphanumeric() && c != '_')
    })
}

#[test]
fn nothing_is_left_open() {
    crate::report(TREE.iter().filter(|file| file.path != EXEMPT).flat_map(check));
}

#[test]
fn notices_what_is_left() {
    let lines = |path, text| crate::lines(check(&Source::new(path, text)));
    assert_eq!(lines("a.rs", "fn f() {\n todo!() }"), [2]);
    assert_eq!(lines("a.c", "/* FIXME: later */"), [1]);
    assert_eq!(lines("src/utils.rs", ""), [1]);
    assert_eq!(lines("src/helpers/a.rs", ""), [1]);
    assert_eq!(lines("a.rs", "\nmod common {}"), [2]);
    assert!(lines("a.sh", "mktemp -d a.XXXXXX").is_empty());
    assert!(lines("a.rs", "fn common() { \"todo!()\"; }").is_empty());
}
