//! Every ordering that a lock names by `order!` is weakened once by the model checker's tests.

use crate::Finding;
use crate::source::{Source, TREE};

const MODELS: &str = "crates/manycore/tests/";

/// A named ordering: where, and the name with its quotes.
fn named(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let macros = file.occurrences("order ! (").into_iter();
    macros
        .filter_map(|rest| rest[3..].get(2))
        .filter(|t| t.text.starts_with('"'))
        .map(|t| (t.line, t.text.as_str()))
}

fn check(source: &Source, models: &[&Source]) -> Vec<Finding> {
    let is_listed =
        |name: &str| models.iter().any(|m| m.tokens.iter().any(|token| token.text == name));
    named(source)
        .filter(|(_, name)| !is_listed(name))
        .map(|(line, name)| {
            Finding::new(
                &source.path,
                line,
                format!("no model notices when {name} is weakened: list it in {MODELS}"),
            )
        })
        .collect()
}

#[test]
fn models_weaken_every_named_ordering() {
    let models: Vec<_> = TREE.iter().filter(|file| file.path.starts_with(MODELS)).collect();
    let sources = || TREE.iter().filter(|file| file.is_source_of("manycore"));
    crate::report(sources().flat_map(|file| check(file, &models)));
    assert!(sources().flat_map(named).count() > 0, "no `order!` found: has it another name now?");
}

#[test]
fn notices_an_ordering_without_a_mutation() {
    let source = Source::new(
        "a.rs",
        "fn f() {\n order!(Acquire, \"a-acquire\");\n order!(Release, \"a-release\");\n}",
    );
    let models =
        Source::new("m.rs", "const MUTATIONS: &[(&str, &str)] = &[(\"a-release\", \"A\")];");
    assert_eq!(crate::lines(check(&source, &[&models])), [2]);
}
