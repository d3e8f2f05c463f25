//! `--syscalls --stats`: which calls were executed elsewhere, and which not, in a few lines.

use std::fmt::Write;
use std::path::Path;

use manycore_profile::clock::Rate;
use manycore_profile::moved::{FunctionCalls, MovedCalls};

use crate::failure::{Failure, Result};

/// Functions that are shown; the rest is in the JSON.
const SHOWN: usize = 12;

/// Reads what the processes of a program have left behind.
pub fn read(directory: &Path, rate: &Rate) -> Result<MovedCalls> {
    MovedCalls::read(directory, rate).map_err(|error| {
        Failure::failed(format!("cannot read statistics in '{}': {error}", directory.display()))
    })
}

/// A line about the program, a line each about the functions of which most was moved, and why calls were left in place.
pub fn text(calls: &MovedCalls) -> String {
    if calls.processes == 0 {
        return "no process left statistics of its system calls".to_owned();
    }
    let cpus: Vec<_> = calls.cpus.iter().map(u32::to_string).collect();
    let all = calls.moved + calls.bypassed + calls.in_place;
    let mut text = format!(
        "{} on CPU {}: {} of {all} calls on sockets moved ({}), {} bypassed, {} in place; {} {}",
        calls.mechanism,
        if cpus.is_empty() { "none".to_owned() } else { cpus.join(",") },
        calls.moved,
        share(calls.moved, all),
        calls.bypassed,
        calls.in_place,
        calls.processes,
        if calls.processes == 1 { "process" } else { "processes" },
    );
    if let Some(latency) = calls.latency_ns {
        let time = |ns: u64| manycore_report::duration(ns as f64).trim_end().to_owned();
        let (half, most, longest) = (time(latency.p50), time(latency.p99), time(latency.max));
        _ = write!(
            text,
            "\n  moved calls took {half} (half of them), {most} (99 %), {longest} at most"
        );
    }
    for function in calls.functions.iter().take(SHOWN) {
        _ = write!(text, "\n  {}", line(function));
    }
    text
}

fn line(function: &FunctionCalls) -> String {
    let mut reasons: Vec<_> = function.in_place.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<_> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    let separator = if reasons.is_empty() { "" } else { "; in place: " };
    format!("{:<12} {} moved{separator}{}", function.name, function.moved, reasons.join(", "))
}

fn share(part: u64, whole: u64) -> String {
    manycore_report::quantity(100.0 * part as f64 / whole.max(1) as f64, "%")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use manycore_profile::moved::Latency;

    use super::*;

    #[test]
    fn reasons_stand_beside_what_was_moved() {
        let calls = MovedCalls {
            schema: 1,
            mechanism: "pool".into(),
            cpus: vec![0, 2],
            processes: 1,
            moved: 3,
            in_place: 1,
            latency_ns: Some(Latency { p50: 4_000, p99: 9_000, p999: 9_000, max: 1_000_000 }),
            functions: vec![FunctionCalls {
                name: "poll",
                moved: 3,
                in_place: BTreeMap::from([("waits with another signal mask", 1)]),
            }],
            ..MovedCalls::default()
        };
        let text = text(&calls);
        assert!(text.contains("pool on CPU 0,2: 3 of 4 calls on sockets moved (75"), "{text}");
        assert!(text.contains("3 moved; in place: 1 waits with another signal mask"), "{text}");
        assert!(self::text(&MovedCalls::default()).contains("no process"));
    }
}
