//! No file contains paths of the machine on which it was written: absolute paths begin with
//! directories that every Linux has.

use crate::Finding;
use crate::source::{Source, TREE};

/// First components of paths that mean the same everywhere, certainly do not exist, or are parts of
/// a relative path.
const EVERYWHERE: &str =
    "usr etc proc sys dev lib lib64 bin sbin var opt run tmp no nonexistent src DISCARD";

fn check(file: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.lines.iter().enumerate() {
        for place in
            absolute_paths(line).filter(|place| !EVERYWHERE.split(' ').any(|known| known == *place))
        {
            let advice = format!(
                "`/{place}/` is a place on one machine: make the path relative, or ask the environment"
            );
            findings.push(Finding::new(&file.path, index + 1, advice));
        }
    }
    findings
}

/// The first component of each absolute path that has more than one, and is not the continuation of
/// another path.
fn absolute_paths(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('/').filter_map(|(at, _)| {
        let starts = line[..at].chars().next_back().is_none_or(|c| " \t\"'`(=:<,".contains(c));
        let (name, _) = line[at + 1..].split_once('/')?;
        let plain =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        (starts && plain).then_some(name)
    })
}

#[test]
fn files_know_no_single_machine() {
    crate::report(TREE.iter().filter(|file| !file.path.starts_with("LICENSE")).flat_map(check));
}

#[test]
fn notices_a_place_of_ones_own() {
    let lines = |text| crate::lines(check(&Source::new("a.md", text)));
    assert_eq!(lines(concat!("see `/ho", "me/me/notes`")), [1]);
    assert_eq!(lines(concat!("LOG=/Use", "rs/x/log")), [1]);
    assert!(lines("/usr/bin/env, https://a.example/b/c, $(PREFIX)/lib/x, a/b/c, s/a/b/, //! text, 1 / 2 / 3").is_empty());
}
