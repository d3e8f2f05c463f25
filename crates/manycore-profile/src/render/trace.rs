//! A run over time, in the JSON trace format of Chrome, which Perfetto's viewer reads, too.
//!
//! Counters: where the time of all threads went, in CPUs; and for each of the most waited for
//! locks, how many threads waited on average. Spans: convoys.

use std::collections::HashMap;

use crate::command::joined;
use crate::profile::{Interval, Profile};
use serde_json::{Value, json};

/// Locks that have a counter of their own.
const COUNTERS: usize = 24;

/// The trace. Its times are in microseconds, as the format requires.
pub fn trace(profile: &Profile) -> Value {
    let name = json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": joined(&profile.command)}});
    let mut events = vec![name];
    events.extend(counters(profile));
    events.extend(convoys(profile));
    json!({
        "displayTimeUnit": "ms",
        "otherData": {"lock": profile.lock, "host": profile.host.as_ref().map(|host| host.to_string()), "finding": profile.finding},
        "traceEvents": events,
    })
}

fn counters(profile: &Profile) -> Vec<Value> {
    let Some(timeline) = &profile.timeline else { return Vec::new() };
    let most = most_waited(&timeline.intervals);
    let length = timeline.interval;
    let mut events = Vec::new();
    for (number, interval) in timeline.intervals.iter().enumerate() {
        let at = number as f64 * length * 1e6;
        let per_second = |value: f64| if length > 0.0 { value / length } else { 0.0 };
        let cpu = &interval.cpu;
        events.push(json!({"ph": "C", "pid": 1, "ts": at, "name": "threads", "args": {
            "program": per_second(cpu.program), "kernel": per_second(cpu.kernel),
            "spinning": per_second(cpu.lock_spin), "waiting": per_second(cpu.lock_wait),
        }}));
        for (lock, id) in &most {
            let waits = interval.waits.iter().filter(|one| one.lock == *lock);
            let ns: f64 = waits.map(|one| one.wait_ns as f64).sum();
            let name = format!("waiting for {}", profile.locks[*lock].title());
            // Two locks may have one name.
            events.push(json!({"ph": "C", "pid": 1, "ts": at, "name": name, "id": id, "args": {"threads": per_second(ns / 1e9)}}));
        }
    }
    events
}

/// The locks with the longest waits, in descending order, with a number for each.
fn most_waited(intervals: &[Interval]) -> Vec<(usize, usize)> {
    let mut waited: HashMap<usize, f64> = HashMap::new();
    for one in intervals.iter().flat_map(|interval| &interval.waits) {
        *waited.entry(one.lock).or_default() += one.wait_ns as f64;
    }
    let mut sorted: Vec<_> = waited.into_iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sorted.iter().take(COUNTERS).enumerate().map(|(id, (lock, _))| (*lock, id)).collect()
}

/// Spans, each with an identity of its own, because they may overlap.
fn convoys(profile: &Profile) -> Vec<Value> {
    let both = |(id, convoy): (usize, &crate::profile::Convoy)| {
        let name = format!("convoy at {}", profile.locks[convoy.lock].title());
        let start = convoy.start * 1e6;
        let end = start + convoy.length_ns as f64 / 1e3;
        [("b", start), ("e", end)].map(|(ph, at)| {
            json!({"ph": ph, "cat": "convoy", "id": id, "pid": 1, "tid": 1, "ts": at, "name": name,
                "args": {"waiters_max": convoy.waiters_max}})
        })
    };
    profile.convoys.iter().enumerate().flat_map(both).collect()
}
