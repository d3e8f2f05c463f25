//! The documented format is the one that is written and read.

use manycore_profile::profile::{Cause, End, Exit, Origin, Profile, Scope, Source};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../schema.md");

fn example() -> Value {
    let text = DOCUMENT.split("```json").nth(1).unwrap().split("```").next().unwrap();
    serde_json::from_str(text).unwrap()
}

/// All names of fields, however deep.
fn fields(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| [vec![name.as_str()], fields(value)].concat())
            .collect(),
        Value::Array(values) => values.iter().flat_map(fields).collect(),
        _ => vec![],
    }
}

#[test]
fn the_example_is_a_whole_profile_and_nothing_else() {
    let profile: Profile = serde_json::from_value(example()).unwrap();
    assert_eq!(serde_json::to_value(profile).unwrap(), example());
}

#[test]
fn every_field_is_described() {
    let tables = DOCUMENT.rsplit("```").next().unwrap();
    let example = example();
    let missing: Vec<_> = fields(&example)
        .into_iter()
        .filter(|name| !tables.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "schema.md does not describe {missing:?}");
}

/// All values of an enum. It does not compile if one is missing.
macro_rules! all {
    ($of:ident: $($value:ident $(($field:expr))?),+) => {{
        let _ = |value: $of| match value { $($of::$value { .. } => ()),+ };
        vec![$(serde_json::to_value($of::$value $(($field))?).unwrap()),+]
    }};
}

#[test]
fn every_value_is_described() {
    let values = [
        all!(Origin: Variable, Initialised, FirstUse, Futex, Rest),
        all!(End: Exited, CutShort, Replaced, Running),
        all!(Exit: Status(0), Signal(9)),
        all!(Cause: LongHold, HotLock, FalseSharing, ReadersExclude, SpinningOversubscribed, UpdateHeavy, ReadMostly, LockOrder),
        all!(Source: Bpf, Perf, LockStat),
        all!(Scope: System, Command, Process(7)),
    ];
    let tables = DOCUMENT.rsplit("```").next().unwrap();
    for value in values.iter().flatten() {
        let word = match value {
            Value::String(word) => word,
            Value::Object(fields) => fields.keys().next().unwrap(),
            other => panic!("{other}"),
        };
        let forms = [format!("`{word}`"), format!("`\"{word}\"`"), format!("\"{word}\": ")];
        assert!(
            forms.iter().any(|form| tables.contains(form)),
            "schema.md does not describe {word}"
        );
    }
}
