//! Every ordering that a lock names by `order!` is weakened once by the model checker's tests, and every mistake that it
//! names by `mutation!` is planted once, by them or by the tests that explore schedules.

use crate::Finding;
use crate::source::{Source, TREE};

/// A macro that names mutations, at which place in its arguments, and where the tests are that have to notice.
const NAMES: &[(&str, usize, &[&str])] = &[
    ("order ! (", 2, MODELS),
    ("store_load ! (", 0, MODELS),
    ("full_fence ! (", 0, MODELS),
    (
        "mutation ! (",
        0,
        &[
            "crates/manycore/tests/",
            "crates/manycore-steer/tests/",
            "crates/manycore-simulated/tests/",
        ],
    ),
];

const MODELS: &[&str] = &["crates/manycore/tests/", "crates/manycore-steer/tests/"];

/// Crates whose sources name mutations.
const MODELLED: &[&str] = &["manycore", "manycore-steer"];

/// What is named by a macro: where, and the name with its quotes.
fn named<'a>(
    file: &'a Source,
    call: &str,
    argument: usize,
) -> impl Iterator<Item = (usize, &'a str)> {
    let macros = file.occurrences(call).into_iter();
    macros
        .filter_map(move |rest| rest[3..].get(argument))
        .filter(|t| t.text.starts_with('"'))
        .map(|t| (t.line, t.text.as_str()))
}

fn check(source: &Source, tests: &[&Source]) -> Vec<Finding> {
    let is_listed = |name: &str, places: &[&str]| {
        let is_there = |test: &&&Source| places.iter().any(|place| test.path.starts_with(place));
        tests.iter().filter(is_there).any(|test| test.tokens.iter().any(|token| token.text == name))
    };
    let missing = NAMES.iter().flat_map(|(call, argument, places)| {
        let names = named(source, call, *argument).filter(|(_, name)| !is_listed(name, places));
        names.map(move |(line, name)| {
            let places = places.join(" or ");
            let advice = format!("no test notices the mutation {name}: list it in {places}");
            Finding::new(&source.path, line, advice)
        })
    });
    missing.collect()
}

#[test]
fn tests_make_every_named_mutation() {
    let tests: Vec<_> =
        TREE.iter().filter(|file| file.path.split('/').any(|part| part == "tests")).collect();
    let sources =
        || TREE.iter().filter(|file| MODELLED.iter().any(|krate| file.is_source_of(krate)));
    crate::report(sources().flat_map(|file| check(file, &tests)));
    for (call, argument, _) in NAMES {
        let found = sources().flat_map(|file| named(file, call, *argument)).count();
        assert!(found > 0, "no `{call}` found: has it another name now?");
    }
}

#[test]
fn notices_an_ordering_without_a_mutation() {
    let source = Source::new(
        "a.rs",
        "fn f() {\n order!(Acquire, \"a-acquire\");\n order!(Release, \"a-release\");\n}",
    );
    let listed = "const MUTATIONS: &[(&str, &str)] = &[(\"a-release\", \"A\")];";
    let models = Source::new("crates/manycore/tests/m.rs", listed);
    assert_eq!(crate::lines(check(&source, &[&models])), [2]);
    let elsewhere = Source::new("crates/manycore-simulated/tests/m.rs", listed);
    assert_eq!(crate::lines(check(&source, &[&elsewhere])), [2, 3]);
    let mistake = Source::new("a.rs", "fn f() {\n mutation!(\"a-release\");\n}");
    assert_eq!(crate::lines(check(&mistake, &[])), [2]);
    assert!(check(&mistake, &[&models]).is_empty());
    assert!(check(&mistake, &[&elsewhere]).is_empty());
}
