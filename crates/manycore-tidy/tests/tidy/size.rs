//! A file is one idea, and one idea is rarely over 400 lines; a function fits a screen.

use crate::Finding;
use crate::source::{Source, TREE, Token};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const CODE: &[&str] = &["rs", "c", "h", "cc", "cpp", "py", "java", "sh", "js", "css"];

/// Files that may be longer: path and reason.
const LONG: &[(&str, &str)] = &[];

fn check_file(file: &Source) -> Option<Finding> {
    let long = file.has_extension(CODE) && file.lines.len() > FILE_LINES_MAX;
    let listed = LONG.iter().any(|(path, _)| *path == file.path);
    let advice = match (long, listed) {
        (true, false) => format!("over {FILE_LINES_MAX} lines: divide it by ideas"),
        (false, true) => "is not long any more: take it off the list of long files".to_owned(),
        _ => return None,
    };
    Some(Finding::new(&file.path, file.lines.len(), advice))
}

fn check_functions(file: &Source) -> Vec<Finding> {
    let long = file.occurrences("fn").into_iter().filter_map(|rest| {
        let end = end_of_body(rest)?;
        let lines = end - rest[0].line + 1;
        let advice = format!("{lines} lines, over {FUNCTION_LINES_MAX}: let its parts have names");
        (lines > FUNCTION_LINES_MAX).then(|| Finding::new(&file.path, rest[0].line, advice))
    });
    long.collect()
}

/// The last line of the function that starts the tokens; none for a declaration or a function type.
fn end_of_body(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0;
    for token in tokens {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            ";" if depth == 0 => return None,
            _ => {}
        }
        match (token.text.as_str(), depth) {
            ("}", 0) => return Some(token.line),
            (_, ..0) => return None,
            _ => {}
        }
    }
    None
}

#[test]
fn files_are_short() {
    crate::report(TREE.iter().filter_map(check_file));
}

#[test]
fn functions_fit_a_screen() {
    crate::report(TREE.iter().flat_map(check_functions));
}

#[test]
fn notices_a_long_file() {
    let check = |path, lines| check_file(&Source::new(path, &"x\n".repeat(lines))).is_some();
    assert!(check("a.c", FILE_LINES_MAX + 1));
    assert!(!check("a.c", FILE_LINES_MAX));
    assert!(!check("Cargo.lock", FILE_LINES_MAX + 1));
}

#[test]
fn notices_a_long_function() {
    let body = "x();\n".repeat(FUNCTION_LINES_MAX);
    let lines = |text: &str| crate::lines(check_functions(&Source::new("a.rs", text)));
    assert_eq!(lines(&format!("\nfn f(a: [u8; 3]) {{\n{body}}}\n")), [2]);
    assert!(lines(&format!("fn f() {{}}\nmod m {{\n{body}}}\n")).is_empty());
    assert!(lines(&format!("trait T {{\nfn f();\n}}\nmod m {{\n{body}}}\n")).is_empty());
}
