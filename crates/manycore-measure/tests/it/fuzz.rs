//! Reading a file of results gives results or a sentence that describes the fault, whatever the
//! file contains.

use manycore_measure::Results;

#[test]
fn results() {
    let document = include_str!("../../schema.md");
    let example = document.split("```json").nth(1).unwrap().split("```").next().unwrap();
    manycore_fuzz::texts("results", &[example], |text| match Results::from_json(text) {
        Ok(results) => drop(results.to_json().expect("what was read can be written")),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    });
}
