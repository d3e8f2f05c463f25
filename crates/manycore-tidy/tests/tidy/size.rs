//! A file is one idea, and one idea is rarely over 400 lines.

use crate::Finding;
use crate::source::{Source, TREE};

const LIMIT: usize = 600;
const CODE: &[&str] = &["rs", "c", "h", "cc", "cpp", "py", "java", "sh", "js", "css"];

/// Files that may be longer: path and reason.
const LONG: &[(&str, &str)] = &[];

fn check(file: &Source) -> Option<Finding> {
    let long = file.has_extension(CODE) && file.lines.len() > LIMIT;
    let listed = LONG.iter().any(|(path, _)| *path == file.path);
    match (long, listed) {
        (true, false) => {
            let advice = format!("{} lines, over {LIMIT}: divide it by ideas", file.lines.len());
            Some(Finding::new(&file.path, file.lines.len(), advice))
        }
        (false, true) => Some(Finding::new(
            &file.path,
            1,
            "is not long any more: take it off the list of long files",
        )),
        _ => None,
    }
}

#[test]
fn files_are_short() {
    crate::report(TREE.iter().filter_map(check));
}

#[test]
fn notices_a_long_file() {
    assert!(check(&Source::new("a.c", &"x\n".repeat(LIMIT + 1))).is_some());
    assert!(check(&Source::new("a.c", &"x\n".repeat(LIMIT))).is_none());
    assert!(check(&Source::new("Cargo.lock", &"x\n".repeat(LIMIT + 1))).is_none());
}
