//! `manycore profile` and the processor's counters: a count or a reason, in each form of the
//! profile.

use crate::support::real::profiling;
use crate::support::{directory, stderr};
use serde_json::Value;

#[test]
fn a_count_or_a_reason_is_in_every_form() {
    let place = directory();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (json, page) = (path("a.json"), path("a.html"));
    let output = profiling(&["--json", &json, "--html", &page], &["ls", "/"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("Reads that no cache had: "), "{}", stderr(&output));
    let profile: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let misses = &profile["cache_misses"];
    match misses["refused"].as_str() {
        None => {
            assert!(misses["reads"].as_u64().is_some(), "{misses}");
            let counted = misses["counted"].as_f64().unwrap();
            assert!(counted > 0.0 && counted <= 1.0, "{misses}");
        }
        Some(why) => {
            assert!(why.starts_with("not ") || why.contains("counter"), "{why}");
            assert!(misses["reads"].is_null() && misses["counted"].is_null(), "{misses}");
        }
    }
    let others = &misses["other_nodes"];
    match others["refused"].as_str() {
        None => assert!(others["lines"].is_u64() && others["event"].is_string(), "{others}"),
        Some(why) => {
            assert!(others["lines"].is_null() && !why.is_empty(), "{others}");
            assert!(stderr(&output).contains(why), "{}", stderr(&output));
        }
    }
    assert!(std::fs::read_to_string(page).unwrap().contains("\"cache_misses\":{"));
}
