//! The built-in models, and the messages about wrong files.

use manycore_sim::Model;
use manycore_sim::model::{self, EMBEDDED, FIELDS, Provenance};

const GOOD: &str = include_str!("../../machines/xeon-e5-2697-2x18x2-like.toml");

/// The error for the good model with one text replaced by another.
fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "`{from}` is not in the model");
    match Model::parse("own.toml", &GOOD.replacen(from, to, 1)) {
        Ok(_) => panic!("accepted: {to}"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn all_models_are_valid_and_named_like_their_files() {
    for (name, text) in EMBEDDED {
        let model = Model::parse(name, text).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(model.name, *name);
        assert!(name.ends_with("-like"), "{name}");
        assert_eq!(model::find(name.trim_end_matches("-like")).unwrap(), model);
        assert_eq!(Model::parse(name, &model.to_toml()).unwrap(), model, "{name}");
        for source in model.sources.keys() {
            let used = model.constants.iter().any(|c| c.from.as_ref() == Some(source));
            let used = used || model.distance_origin.from.as_ref() == Some(source);
            assert!(used, "{name}: nothing comes from {source}");
        }
    }
}

#[test]
fn shapes_are_those_of_the_machines() {
    let cpus = |name: &str| model::find(name).unwrap().machine().topology.cpus();
    let expected = [
        ("xeon-e7-8870-8x15", 120),
        ("xeon-8180-8x28x2", 448),
        ("xeon-e5-2697-2x18x2", 72),
        ("xeon-8280m-2x28x2", 112),
        ("xeon-4x6", 24),
        ("ivybridge-2x10", 20),
        ("epyc-2x96", 192),
        ("graviton-64", 64),
        ("xeon-e5-2699v4-2x22", 44),
        ("epyc-9454p-8x8", 64),
        ("m1-ultra-18", 18),
        ("core-12500-6x2", 12),
        ("xeon-6148-2x20", 40),
        ("xeon-8488c-2x48x2", 192),
        ("xeon-e5-2680v4-2x14x2", 56),
        ("xeon-e5-2680v2-2x10x2", 40),
        ("xeon-e5-2660-2x8x2", 32),
        ("xeon-e7-8895v3-4x18x2", 144),
        ("xeon-e7-8890v4-4x24", 96),
        ("xeon-e5-2699v3-2x18x2", 72),
        ("xeon-d-2191-18x2", 36),
        ("icelake-8375c-2x32x2", 128),
        ("graviton2-16", 16),
        ("graviton1-a72-16", 16),
        ("xeon-e7-8870-8x10", 80),
        ("opteron-6172-8x6", 48),
        ("opteron-6272-8x8", 64),
        ("opteron-8431-8x6", 48),
    ];
    for (name, count) in expected {
        assert_eq!(cpus(name), count, "{name}");
    }
    assert_eq!(expected.len(), EMBEDDED.len());
}

#[test]
fn farther_costs_more() {
    for name in model::names() {
        let model = model::find(name).unwrap();
        for field in FIELDS.iter().filter(|field| field.is_transfer()) {
            let at = |class| model.constant(field.path, class).map(|constant| constant.value);
            let costs: Vec<f64> = (0..).map_while(at).collect();
            assert!(costs.is_sorted(), "{name}: {} {costs:?}", field.path);
        }
    }
}

#[test]
fn assumed_values_have_wide_ranges() {
    for name in model::names() {
        for constant in model::find(name).unwrap().constants {
            let guessed = matches!(constant.provenance, Provenance::Assumed);
            let wide = constant.high >= 1.1 * constant.low && constant.high > constant.low;
            assert!(!guessed || wide, "{name}: {}", constant.name());
        }
    }
}

const L1: &str = "l1_hit = { value = 4, low = 4, high = 5";

/// Mistakes: the text, its replacement, and the error.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "schema = 1",
        "schema = 2",
        "`schema` is 2, which this version cannot read; it reads schema 1",
    ),
    (
        L1,
        "l1_hit = { value = 7, low = 4, high = 5",
        "`caches.l1_hit` has 7 outside its range of 4 to 5; write low <= value <= high",
    ),
    (
        L1,
        "l1_hit = { value = 4.5, low = 4, high = 5",
        "`caches.l1_hit` has `value` 4.5; write a whole number of cycles from 1 to 100",
    ),
    (
        L1,
        "l1_hit = { low = 4, high = 5",
        "`caches.l1_hit` has `value` missing; write a whole number of cycles from 1 to 100",
    ),
    (
        L1,
        "l1_hit = { valve = 1, value = 4, low = 4, high = 5",
        "`caches.l1_hit.valve` is not known; remove it, or correct its name (`manycore machines NAME` shows all)",
    ),
    (
        L1,
        "l1_hits = { value = 4, low = 4, high = 5",
        "`caches.l1_hit` is missing or no table; write { value = .., low = .., high = .., provenance = \"..\", and `from` or `note` }",
    ),
    (
        "\"socket\", low = \"none\"",
        "\"some\", low = \"none\"",
        "`directory.combining` has `value` \"some\"; write one of \"none\", \"socket\"",
    ),
    (
        "provenance = \"cited\", from = \"mvrlu\" }",
        "provenance = \"cited\" }",
        "is cited, but has no source; add `from` with a key of [sources]",
    ),
    (
        "from = \"mvrlu\"",
        "from = \"mv\"",
        "comes from `mv`, which is no source; add a line with this key under [sources]",
    ),
    (
        "provenance = \"assumed\", note",
        "provenance = \"guessed\", note",
        "has provenance \"guessed\"; say one of measured, cited, derived, fitted, unverified, assumed",
    ),
    (
        "[0, 1],",
        "[0, 2],",
        "`topology.distance` is not symmetric with 0 on its diagonal and only there",
    ),
    (
        "sockets = { value = 2, low = 2, high = 2",
        "sockets = { value = 3, low = 2, high = 3",
        "`topology.distance` has 2 rows for 3 sockets; write a row for each socket",
    ),
    ("name = ", "name = 1 #", "`name` is missing or no line of text; add one, in quotes"),
    ("schema = 1", "schema = = 1", "not TOML in line 1: "),
];

#[test]
fn errors_name_file_field_and_remedy() {
    for (from, to, expected) in MISTAKES {
        let found = complaint(from, to);
        assert!(found.starts_with("own.toml: ") && found.contains(expected), "{found}");
        assert!(!found.contains('\n'), "{found}");
    }
}

#[test]
fn persistent_memory_has_all_of_its_fields_or_none() {
    let name = "xeon-8280m-2x28x2-like";
    let model = model::find(name).unwrap();
    assert!(model.machine().persist.is_there());
    let text = model.to_toml();
    assert_eq!(model::Model::parse(name, &text).unwrap(), model);
    let without: String = text
        .lines()
        .filter(|line| !line.starts_with("latency = { value = 150,"))
        .map(|line| format!("{line}\n"))
        .collect();
    let fault = model::Model::parse("own.toml", &without).unwrap_err().to_string();
    assert!(fault.contains("`persist.latency` is missing"), "{fault}");
    let older = model::find("xeon-8180-8x28x2-like").unwrap();
    assert!(!older.machine().persist.is_there());
    assert!(!older.to_toml().contains("persist"));
}

#[test]
fn a_guess_without_a_range_is_refused() {
    let narrow = "hold = { value = 50, low = 50, high = 50, ";
    let found = complaint("hold = { value = 50, low = 0, high = 150, ", narrow);
    assert!(found.contains("`directory.hold` is assumed, but has no range; widen"), "{found}");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let found = model::find("xeon").unwrap_err().to_string();
    assert!(
        found.starts_with("there is no machine `xeon`; choose from xeon-e7-8870-8x15-like, "),
        "{found}"
    );
    let found = model::find("no/such.toml").unwrap_err().to_string();
    assert!(found.starts_with("no/such.toml: cannot be read: ") && found.contains("; "), "{found}");
}
