//! The documented format is the one that is written and read.

use manycore_profile::profile::Profile;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../schema.md");

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
