//! The fate of a program's system calls, in a few lines: those executed elsewhere, those left in
//! place, and the reasons.

use std::fmt::Write;

use crate::profile::{FunctionCalls, MovedCalls};
use manycore_placement::{CpuSet, Mechanism};

/// The number of functions that are shown; the rest is in the JSON.
const SHOWN: usize = 12;

/// A line about the program, a line for each of the functions with the most moved calls, and the
/// reasons why calls were left in place.
pub fn text(calls: &MovedCalls) -> String {
    if calls.processes == 0 {
        return "no process left statistics of its system calls".to_owned();
    }
    let mut text = format!("{}; {}", outcome(calls), processes(calls.processes));
    let quick = "those of them that never wait";
    for (which, latency) in [("moved calls", calls.latency_ns), (quick, calls.quick_ns)] {
        let Some(latency) = latency else { continue };
        let time = |ns: u64| manycore_measure::duration(ns as f64).trim_end().to_owned();
        let (half, most, longest) = (time(latency.p50), time(latency.p99), time(latency.max));
        _ = write!(
            text,
            "\n  {which} took {half} (half of them), {most} (99 %), {longest} at most"
        );
    }
    if !calls.cpus_used.is_empty() && calls.cpus_used != calls.cpus {
        let used: CpuSet = calls.cpus_used.iter().map(|cpu| *cpu as usize).collect();
        _ = write!(text, "\n  of these CPUs {used} executed some");
    }
    for function in calls.functions.iter().take(SHOWN) {
        let line = match is_in_place(calls) {
            true => format!("{:<12} {}", function.name, function.all()),
            false => line(function),
        };
        _ = write!(text, "\n  {line}");
    }
    if let Some(others) = calls.functions.get(SHOWN..).filter(|others| !others.is_empty()) {
        _ = write!(text, "\n  {} more functions (--json has them)", others.len());
    }
    text
}

/// Whether all calls were to be executed in place. Then the kinds of descriptors are unknown.
fn is_in_place(calls: &MovedCalls) -> bool {
    calls.mechanism == Mechanism::InPlace.name()
}

/// All functions together.
fn outcome(calls: &MovedCalls) -> String {
    let all = calls.on_sockets();
    if is_in_place(calls) {
        let all = all.saturating_add(calls.others);
        return format!(
            "{all} calls executed in place, by the threads that made them (`manycore run --explain` says why)"
        );
    }
    let cpus: CpuSet = calls.cpus.iter().map(|cpu| *cpu as usize).collect();
    format!(
        "{} on CPU {cpus}: {} of {all} calls on sockets moved ({}), {} bypassed, {} in place",
        calls.mechanism,
        calls.moved,
        share(calls.moved, all),
        calls.bypassed,
        calls.in_place,
    )
}

fn processes(count: u32) -> String {
    format!("{count} {}", if count == 1 { "process" } else { "processes" })
}

fn line(function: &FunctionCalls) -> String {
    let mut reasons: Vec<_> = function.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<_> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    let separator = if reasons.is_empty() { "" } else { "; in place: " };
    format!("{:<12} {} moved{separator}{}", function.name, function.moved, reasons.join(", "))
}

fn share(part: u64, whole: u64) -> String {
    manycore_measure::quantity(100.0 * part as f64 / whole.max(1) as f64, "%")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::profile::Latency;

    use super::*;

    fn calls(mechanism: &str, moved: u64) -> MovedCalls {
        MovedCalls {
            schema: 1,
            mechanism: mechanism.into(),
            cpus: vec![0, 1, 2, 4],
            cpus_used: vec![1, 2],
            processes: 1,
            moved,
            in_place: 1,
            latency_ns: Some(Latency { p50: 4_000, p99: 9_000, p999: 9_000, max: 1_000_000 }),
            quick_ns: Some(Latency { p50: 3_000, p99: 5_000, p999: 5_000, max: 7_000 }),
            functions: vec![FunctionCalls {
                name: "poll".into(),
                moved,
                in_place: 1,
                reasons: BTreeMap::from([("waits with another signal mask".into(), 1)]),
                ..FunctionCalls::default()
            }],
            ..MovedCalls::default()
        }
    }

    #[test]
    fn reasons_stand_beside_what_was_moved() {
        let text = text(&calls("pool", 3));
        assert!(text.contains("pool on CPU 0-2,4: 3 of 4 calls on sockets moved (75"), "{text}");
        assert!(
            text.contains("moved calls took 4") && text.contains("that never wait took 3"),
            "{text}"
        );
        assert!(text.contains("of these CPUs 1-2 executed some"), "{text}");
        assert!(text.contains("3 moved; in place: 1 waits with another signal mask"), "{text}");
        assert!(self::text(&MovedCalls::default()).contains("no process"));
    }

    #[test]
    fn calls_in_place_are_not_said_to_have_a_cpu() {
        let text = text(&calls("in-place", 0));
        assert!(text.starts_with("1 calls executed in place, by"), "{text}");
        assert!(text.contains("poll         1") && !text.contains("on CPU"), "{text}");
    }

    #[test]
    fn functions_that_are_not_shown_are_counted() {
        let mut many = calls("pool", 3);
        many.functions = vec![many.functions[0].clone(); SHOWN + 2];
        assert!(text(&many).ends_with("\n  2 more functions (--json has them)"));
    }
}
