//! Profiles with the kernel's side, where the kernel permits it.

use std::process::Output;

use serde_json::Value;

use super::real::profiling;
use super::{directory, skipped_in_part, stderr};

/// The best method, and the methods that exist where BPF is not built or not permitted.
pub const MEANS: [&str; 2] = ["--kernel", "--kernel=perf"];

/// Profiles a command with the kernel's side; returns its output, and the JSON.
pub fn profiled(means: &str, options: &[&str], command: &[&str]) -> (Output, Value) {
    let directory = directory();
    let file = directory.path().join("profile.json");
    let options = [&[means, "--json", file.to_str().unwrap()], options].concat();
    let output = profiling(&options, command).output().unwrap();
    let json = std::fs::read_to_string(&file).unwrap();
    (output, serde_json::from_str(&json).unwrap())
}

/// Whether the kernel was observed. If not, the command has reported it, and the test's log has the
/// reason.
pub fn was_watched(output: &Output, json: &Value) -> bool {
    if json["kernel"].is_object() {
        return true;
    }
    let said = stderr(output);
    let why = said.lines().find(|line| line.contains("the kernel is not watched"));
    let why = why.unwrap_or_else(|| panic!("neither watched nor refused: {said}"));
    skipped_in_part(why);
    false
}

/// Whether futexes are seen; if not, the profile says so, and the test's log has the reason.
pub fn sees_futexes(output: &Output, json: &Value) -> bool {
    if !was_watched(output, json) {
        return false;
    }
    let limits = json["kernel"]["limits"].as_array().unwrap().iter();
    let mut limits = limits.map(|limit| limit.as_str().unwrap());
    let Some(why) = limits.find(|limit| limit.contains("is not seen")) else { return true };
    skipped_in_part(why);
    false
}

/// Locks of a kind.
pub fn of_kind<'a>(json: &'a Value, kind: &str) -> Vec<&'a Value> {
    json["locks"].as_array().unwrap().iter().filter(|lock| lock["kind"] == kind).collect()
}
