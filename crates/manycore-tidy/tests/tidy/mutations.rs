//! The model checker's tests weaken every ordering that a lock names by `order!` once. They, or the
//! tests that explore schedules, plant every mistake that a lock names by `mutation!` once. The
//! book has a row for each mistake that the latter plant.

use crate::Finding;
use crate::source::{Source, TREE};

/// A macro that names mutations, the index of the name in its arguments, and the tests that have to
/// notice the mutation.
const NAMES: &[(&str, usize, &[&str])] = &[
    ("order ! (", 2, MODELS),
    ("store_load ! (", 0, MODELS),
    ("full_fence ! (", 0, MODELS),
    (
        "mutation ! (",
        0,
        &[
            "crates/manycore/tests/",
            "crates/manycore-channel/tests/",
            "crates/timestone/tests/",
            EXPLORATION,
            FILE_SYSTEM,
            STORES,
        ],
    ),
];

const MODELS: &[&str] =
    &["crates/manycore/tests/", "crates/manycore-channel/tests/", "crates/timestone/tests/"];

/// Where the tests are that explore schedules, and the chapter with a table of the mistakes that
/// they find.
const EXPLORATION: &str = "crates/manycore-simulated/tests/";
/// The same of KhronOS' file system.
const FILE_SYSTEM: &str = "kernel/khronos/fs-simulated/tests/";
const STORES: &str = "crates/timestone-simulated/tests/";
const CHAPTER: &str = "docs/src/internals/mutations.md";

/// Crates whose sources name mutations.
const MODELLED: &[&str] = &["manycore", "manycore-channel", "timestone", "khronos-fs"];

/// The names in a macro: the place, and the name with its quotation marks.
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

/// The mutations that a test's list has, each first in its row, with their lines.
fn listed(test: &Source) -> impl Iterator<Item = (usize, &str)> {
    test.occurrences("const MUTATIONS").into_iter().flat_map(|list| {
        let end = list.iter().position(|token| token.text == ";").unwrap_or(list.len());
        let rows = list[..end].windows(2).filter(|pair| pair[0].text == "(");
        let names = rows.map(|pair| &pair[1]).filter(|name| name.text.starts_with('"'));
        names.map(|name| (name.line, name.text.trim_matches('"')))
    })
}

fn untold(test: &Source, chapter: &Source) -> Vec<Finding> {
    let is_told = |name| {
        let row = format!("| `{name}` |");
        chapter.lines.iter().any(|line| line.starts_with(&row))
    };
    let missing = listed(test).filter(|(_, name)| !is_told(*name));
    let advice = |name| format!("no reader knows the mistake {name}: give it a row in {CHAPTER}");
    missing.map(|(line, name)| Finding::new(&test.path, line, advice(name))).collect()
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
fn the_book_has_every_mistake_that_exploration_finds() {
    let chapter =
        TREE.iter().find(|file| file.path == CHAPTER).expect("the book has a chapter on mutations");
    let tests = || {
        let places = [EXPLORATION, FILE_SYSTEM, STORES];
        TREE.iter().filter(move |file| places.iter().any(|place| file.path.starts_with(place)))
    };
    crate::report(tests().flat_map(|file| untold(file, chapter)));
    assert!(tests().flat_map(listed).count() > 1, "none found: is `MUTATIONS` called otherwise?");
}

#[test]
fn notices_a_mistake_without_a_row() {
    let test = Source::new(
        "a.rs",
        "const MUTATIONS: &[(&str, &str)] = &[\n (\"a-waits\", \"A\"),\n (\"b-waits\", \"B\"),\n];\nconst X: &str = f(\"c\");",
    );
    let chapter = Source::new(CHAPTER, "| mistake |\n|---|\n| `a-waits` | and no `b-waits` |");
    assert_eq!(crate::lines(untold(&test, &chapter)), [3]);
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
