//! The documented format is the one that is written and read.

use manycore_measure::{Bound, Claim, Host, Judgement, Measurement, Mechanism, Metric, Results};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../schema.md");

fn full() -> Results {
    let mut measurement = Measurement::new("lock", Mechanism::Lock("futex".into()), "op/s", 5.0);
    (measurement.low, measurement.high) = (Some(4.0), Some(6.0));
    measurement.parameters.insert("section_ns".into(), 50.0.into());
    let metric = Metric { value: 1.0, unit: "ratio".into(), low: Some(0.9), high: Some(1.1) };
    measurement.metrics.insert("fairness".into(), metric);
    let claim = Claim {
        id: "a".into(),
        text: "b".into(),
        bound: Some(Bound::AtMost(2.0)),
        value: Some(1.0),
        low: Some(0.9),
        high: None,
        verdict: Judgement::Undecided,
        note: String::new(),
        published: Some(1.5),
        expected: Some(Judgement::Pass),
    };
    Results { host: Some(Host::describe()), claims: vec![claim], ..Results::new(vec![measurement]) }
}

#[test]
fn what_is_written_reads_back_the_same() {
    let results = full();
    assert_eq!(Results::from_json(&results.to_json().unwrap()).unwrap(), results);
}

#[test]
fn the_documented_example_is_read() {
    let example = DOCUMENT.split("```json").nth(1).unwrap().split("```").next().unwrap();
    let results = Results::from_json(example).unwrap();
    assert_eq!(results.measurements[0].mechanism, Mechanism::Lock("futex".into()));
    assert_eq!(results.measurements[0].metrics["wait_p99_9"].unit, "ns");
    assert!(results.host.unwrap().is_virtual);
    assert_eq!(results.claims[0].bound, Some(Bound::AtLeast(0.5)));
    assert_eq!(results.claims[0].verdict, Judgement::Pass);
}

#[test]
fn every_written_field_is_documented() {
    let written: Value = serde_json::from_str(&full().to_json().unwrap()).unwrap();
    for object in [&written, &written["host"], &written["measurements"][0], &written["claims"][0]] {
        for field in object.as_object().unwrap().keys() {
            let named = DOCUMENT.contains(&format!("`{field}`"))
                || DOCUMENT.contains(&format!("\"{field}\""));
            assert!(named, "schema.md does not name `{field}`");
        }
    }
}

#[test]
fn fields_of_later_versions_are_ignored() {
    let mut value: Value = serde_json::from_str(&full().to_json().unwrap()).unwrap();
    value["added_later"] = json!(1);
    value["measurements"][0]["added_later"] = json!({"a": [1, 2]});
    value["measurements"][0]["metrics"]["fairness"]["added_later"] = json!(true);
    assert_eq!(Results::from_json(&value.to_string()).unwrap(), full());
}

#[test]
fn another_schema_is_refused_by_number() {
    let error =
        Results::from_json(r#"{"schema": 2, "measurements": "other"}"#).unwrap_err().to_string();
    assert!(error.contains("schema 2") && error.contains("reads 1"), "{error}");
}

#[test]
fn values_that_are_no_numbers_are_refused() {
    let mut results = full();
    results.measurements[0].value = f64::NAN;
    assert!(results.to_json().unwrap_err().to_string().contains("`value` of lock futex"));
    let mut results = full();
    results.measurements[0].low = Some(5.5);
    assert!(results.to_json().unwrap_err().to_string().contains("outside its interval"));
}
