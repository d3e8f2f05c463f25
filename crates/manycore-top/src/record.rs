//! Pictures for scripts: a line of JSON each.

use std::collections::HashMap;

use manycore_profile::analyze::live::{LiveLock, LockId};
use serde_json::{Value, json};

use crate::kernel::KernelLocks;
use crate::rows::{RowId, Span};
use crate::state::State;

/// The version of the format.
const SCHEMA: u32 = 1;

/// A picture: the locks that were used in its interval, in the order of the rows. Empty before the
/// first picture.
pub fn line(state: &State) -> String {
    let Some(pictures) = &state.pictures else { return String::new() };
    let facts = &pictures.facts;
    let (span, picture) = match (state.shown_span(), &pictures.interval) {
        (Span::Interval, Some(interval)) => ("interval", interval),
        _ => ("total", &pictures.total),
    };
    let used: HashMap<LockId, &LiveLock> = picture.locks.iter().map(|one| (one.id, one)).collect();
    let rows = state.rows();
    let locks = rows.iter().filter_map(|row| match &row.id {
        RowId::Program(id) => Some(of_lock(used.get(id)?, picture.seconds)),
        RowId::Kernel(..) => None,
    });
    let mut record = json!({
        "schema": SCHEMA,
        "command": facts.command,
        "pid": facts.pid,
        "ended": state.ended,
        "lock": facts.lock,
        "processes": facts.processes,
        "threads": facts.threads,
        "cpus": facts.cpus,
        "left_out": facts.left_out,
        "span": span,
        "seconds": picture.seconds,
        "cpu": (span == "total" || !pictures.misses_cpu).then_some(picture.cpu),
        "locks": locks.collect::<Vec<_>>(),
    });
    if let Some(kernel) = &state.kernel {
        record["kernel"] = of_kernel(kernel, span);
    }
    format!("{record}\n")
}

/// A lock in the form of a profile, and the threads that wait for it now.
fn of_lock(one: &LiveLock, seconds: f64) -> Value {
    let mut lock = json!(one.lock);
    let waiting = one.waiting.iter();
    let waiting = waiting.map(|one| json!({ "pid": one.pid, "tid": one.tid, "wait_ns": one.ns }));
    lock["held_share"] = json!(one.lock.held_share(seconds));
    lock["waiting"] = waiting.collect();
    lock
}

fn of_kernel(kernel: &KernelLocks, span: &str) -> Value {
    let locks = if span == "total" { &kernel.total } else { &kernel.interval };
    json!({ "locks": locks, "dropped": kernel.dropped })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::example;
    use crate::rows::Column;

    fn record(span: Span, sort: Column) -> Value {
        let mut state = State::new(Duration::from_secs(1), sort, span, false);
        state.take(example::pictures(), Some(example::kernel()));
        let text = line(&state);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_interval_has_the_locks_that_were_used_in_it() {
        let record = record(Span::Interval, Column::Waited);
        let locks = record["locks"].as_array().unwrap();
        let [lock] = &locks[..] else { panic!("{record:#}") };
        assert_eq!((&lock["short"], &lock["contended"]), (&"cache_lock".into(), &50_000.into()));
        assert_eq!(lock["waiting"][0]["wait_ns"], 12_300);
        assert_eq!((&record["span"], &record["seconds"]), (&"interval".into(), &0.5.into()));
        assert_eq!(record["cpu"]["lock_wait"], 0.5);
    }

    #[test]
    fn a_total_has_all_in_the_order_of_the_rows() {
        let record = record(Span::Total, Column::Mean);
        let locks = record["locks"].as_array().unwrap().iter();
        let names: Vec<_> = locks.map(|lock| lock["short"].as_str().unwrap()).collect();
        assert_eq!(names.len(), 3, "{record:#}");
        assert_eq!(names[1], "cache_lock", "the second in the order of mean waits");
        assert_eq!(record["kernel"]["locks"][0]["name"], example::kernel().total[0].name.as_str());
        assert_eq!(record["ended"], Value::Null);
    }
}
