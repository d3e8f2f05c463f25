//! The figures of a profile against those of a program that measures itself: each within 5 %, or
//! within some times the standard error of its samples where it is from samples.

use std::collections::HashMap;

use crate::support::real::{Profiled, profile};
use crate::support::watched::{MEANS, profiled, sees_futexes};
use crate::support::{compile, directory, skipped, stderr, stdout};
use serde_json::{Value, json};

const TRUTH: &str = include_str!("programs/truth.c");
// As in the program.
const WAITERS: u64 = 4;
const ROUNDS: u64 = 300;
const STEADY: u64 = 12_000;
const READS: u64 = 3000;
const WRITES: u64 = 1000;
const TIMEOUTS: u64 = 15;
const CONDITIONS: u64 = 40;
const SPINS: u64 = 400;
/// Seconds that a program may take from its first statistics to `main`, on a busy machine.
const STARTING: f64 = 0.2;
/// One wait in this many is sampled, on average.
const SPIN_PERIOD: f64 = 8.0;

/// The numbers in the program's output, by the first word of a line, or by that and a thread's
/// number.
fn said(text: &str) -> HashMap<String, Vec<f64>> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let named = if words[0].starts_with("wait") { 2 } else { 1 };
        let numbers = words[named..].iter().map(|word| word.parse().unwrap()).collect();
        (words[..named].join(" "), numbers)
    };
    text.lines().map(line).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks that a figure is right within a share of the truth.
fn assert_near(what: &str, figure: f64, truth: f64, share: f64) {
    let off = (figure / truth - 1.0).abs();
    assert!(off <= share, "{what}: {figure} where it is {truth}, off by {off:.3} of {share:.3}");
}

/// The possible error of a mean of `samples` samples. `number`, `sum` and `squares` are of all
/// values: their number, their sum, and the sum of their squares. Four standard errors are for
/// values that each matter little. On a busy machine one value may make all of the deviation, if
/// its thread has lost its CPU: if it was sampled, the mean is off by a number of standard errors
/// that is the root of the number of values for each sample.
fn of_samples(samples: f64, number: f64, sum: f64, squares: f64) -> f64 {
    let mean = sum / number;
    let deviation = (squares / number - mean * mean).max(0.0).sqrt();
    let errors = 4.0 + (number / samples).sqrt();
    (errors * deviation / mean / samples.sqrt()).max(0.05)
}

fn list<'a>(json: &'a Value, field: &str) -> &'a Vec<Value> {
    json[field].as_array().unwrap_or_else(|| panic!("no {field} in {json:#}"))
}

fn place(profiled: &Profiled, name: &str) -> usize {
    profiled.names().iter().position(|lock| lock.starts_with(name)).unwrap()
}

fn about(entries: &[Value], lock: usize) -> impl Iterator<Item = &Value> {
    entries.iter().filter(move |entry| entry["lock"] == json!(lock))
}

#[test]
fn every_figure_is_what_the_program_measured() {
    let directory = directory();
    let program = compile(directory.path(), "truth", TRUTH, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    match profiled.output.status.code() {
        Some(0) => {}
        Some(77) => {
            return skipped("there is one CPU only");
        }
        other => panic!("{other:?}: {}", stderr(&profiled.output)),
    }
    let truth = said(&stdout(&profiled.output));
    counts(&profiled);
    waits(&profiled, &truth);
    holds(&profiled, &truth);
    conditions(&profiled, &truth);
    cpu_time(&profiled, &truth);
    threads(&profiled, &truth);
    queues(&profiled, &truth);
    holders(&profiled, &truth);
    over_time(&profiled, &truth);
    orders(&profiled);
}

/// Counts are exact.
fn counts(profiled: &Profiled) {
    for (name, field, count) in [
        ("gate (", "acquired", ROUNDS * (WAITERS + 1)),
        ("gate (", "contended", ROUNDS * WAITERS),
        ("gate (", "timeouts", 0),
        ("steady (", "acquired", STEADY),
        ("steady (", "exclusive", STEADY),
        ("steady (", "contended", 0),
        ("steady (", "handoffs", STEADY / 500 - 1),
        ("book (", "acquired", READS + WRITES),
        ("book (", "shared", READS),
        ("book (", "exclusive", WRITES),
        ("timed (", "acquired", 1),
        ("timed (", "contended", TIMEOUTS),
        ("timed (", "timeouts", TIMEOUTS),
        ("hot (", "acquired", 2 * SPINS),
        ("north (", "acquired", 100),
        ("south (", "acquired", 100),
    ] {
        assert_eq!(profiled.lock(name)[field], json!(count), "{name}: {field}");
        assert_eq!(profiled.lock(name)["objects"], 1);
    }
    // The holder waits a millisecond for the other, which may not have its CPU just then.
    let hot = profiled.lock("hot (")["contended"].as_u64().unwrap();
    assert!((SPINS - SPINS / 50..=SPINS).contains(&hot), "{hot}");
    let share = number(&profiled.lock("gate (")["contended_share"]);
    assert_near("share", share, WAITERS as f64 / (WAITERS + 1) as f64, 1e-6);
}

fn waits(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let gate = &profiled.lock("gate (")["wait"];
    let (all, p99, most) = (truth["gate"][0], truth["gate"][1], truth["gate"][2]);
    assert_eq!(gate["count"], json!(ROUNDS * WAITERS));
    assert_near("gate: total", number(&gate["total_ns"]), all, 0.05);
    assert_near("gate: mean", number(&gate["mean_ns"]), all / (ROUNDS * WAITERS) as f64, 0.05);
    assert_near("gate: longest", number(&gate["max_ns"]), most, 0.05);
    assert_near("gate: 99th percentile", number(&gate["p99_ns"]), p99, 0.25);
    let hot = &profiled.lock("hot (")["wait"];
    assert_near("hot: total", number(&hot["total_ns"]), truth["hot"][0], 0.05);
    // It is the fourth longest of 400 waits, and none is longer for the library, whose clock runs
    // within the program's. If a thread loses its CPU between the two clocks, its wait is shorter
    // for the library, and the next in size takes its place: among four at most. The reported value
    // is the middle of a bucket, 0.9 to 1.125 times the values in it, and the library's clock
    // differs by up to a hundredth.
    let [low, high] = truth["spins"][..] else { panic!("{truth:?}") };
    let p99 = number(&hot["p99_ns"]);
    assert!((0.89 * low..1.14 * high).contains(&p99), "{p99}: {low} {high}");
    let timed = &profiled.lock("timed (")["wait"];
    assert_near("timed: total", number(&timed["total_ns"]), truth["timed"][0], 0.05);
    assert_near("timed: longest", number(&timed["max_ns"]), truth["timed"][1], 0.05);
    // All places where threads waited for it together have all of it.
    let gate = place(profiled, "gate (");
    let stacks = about(list(&profiled.json, "stacks"), gate).map(|one| number(&one["wait_ns"]));
    assert_near("gate: stacks", stacks.sum(), all, 0.05);
}

/// One hold in some is timed.
fn holds(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let held = |name: &str, number_of: f64, total: f64, squares: f64| {
        let lock = &profiled.lock(name)["hold"];
        let samples = number(&lock["count"]);
        assert!((number_of / 128.0..number_of / 32.0).contains(&samples), "{lock}");
        let mean = number(&lock["total_ns"]) / samples;
        let error = of_samples(samples, number_of, total, squares);
        assert_near(&format!("{name}: held in all"), mean * number_of, total, error);
        assert_near(&format!("{name}: mean"), number(&lock["mean_ns"]), mean, 0.001);
        lock.clone()
    };
    let [total, most, squares] = truth["steady"][..] else { panic!("{truth:?}") };
    let steady = held("steady (", STEADY as f64, total, squares);
    let longest = number(&steady["max_ns"]);
    assert!((0.95 * 30_000.0..1.05 * most).contains(&longest), "{longest} {most}");
    // It is the second longest of some 190 samples: nearly always between these quantiles of all
    // holds.
    let [low, high] = truth["quantiles"][..] else { panic!("{truth:?}") };
    let p99 = number(&steady["p99_ns"]);
    assert!((0.75 * low..1.25 * high).contains(&p99), "{p99}: {low} {high}");
    // Readers and writers together; one in four writes, and has the lock for twice as long.
    let [total, squares] = truth["book"][..] else { panic!("{truth:?}") };
    held("book (", (READS + WRITES) as f64, total, squares);
}

fn conditions(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let mut found = list(&profiled.json, "conditions").iter();
    let bell = found.find(|one| one["name"].as_str().unwrap().starts_with("bell (")).unwrap();
    assert_eq!(bell["waits"], json!(CONDITIONS + TIMEOUTS), "{bell:#}");
    assert_eq!(bell["timeouts"], json!(TIMEOUTS));
    assert_near("bell: total", number(&bell["wait"]["total_ns"]), truth["bell"][0], 0.05);
    assert_near("bell: longest", number(&bell["wait"]["max_ns"]), truth["bell"][1], 0.05);
    assert_near("bell: 99th percentile", number(&bell["wait"]["p99_ns"]), truth["bell"][2], 0.25);
}

fn cpu_time(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let cpu = |part: &str| number(&profiled.json["cpu"][part]);
    let (user, kernel) = (truth["cpu"][0], truth["cpu"][1]);
    let all = cpu("program") + cpu("kernel") + cpu("lock_spin");
    assert_near("CPU time", all, user + kernel, 0.05);
    // The CPU time of waits is taken from both alike.
    let rest = 1.0 - cpu("lock_spin") / all;
    assert_near("kernel", cpu("kernel"), kernel * rest, 0.05);
    assert_near("program", cpu("program"), user * rest, 0.05);

    let [hot_wall, hot_cpu, squares] = truth["hot"][..] else { panic!("{truth:?}") };
    let spun = (hot_cpu + truth["gate"][3]) / 1e9;
    let error = of_samples(SPINS as f64 / SPIN_PERIOD, SPINS as f64, hot_cpu, squares);
    assert_near("spun", cpu("lock_spin"), spun, error);
    let waited = (hot_wall + truth["gate"][0] + truth["timed"][0]) / 1e9;
    assert_near("off the CPU", cpu("lock_wait"), waited - spun, 0.05 + error * spun / waited);
    let [process] = profiled.processes() else { panic!("one process") };
    assert_near("of the process", number(&process["lock_spin"]), cpu("lock_spin"), 0.001);
    assert_near("of the process", number(&process["lock_wait"]), cpu("lock_wait"), 0.001);
}

/// A row of the matrix of threads and locks each.
fn threads(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let gate = place(profiled, "gate (");
    let threads = list(&profiled.json, "threads");
    let waiters: Vec<_> = truth.keys().filter_map(|key| key.strip_prefix("waiter ")).collect();
    assert_eq!(waiters.len() as u64, WAITERS);
    for tid in waiters {
        let thread =
            threads.iter().find(|one| one["tid"].as_u64() == Some(tid.parse().unwrap())).unwrap();
        assert_eq!(thread["acquired"], json!(ROUNDS));
        let [waited] = about(list(thread, "waits"), gate).collect::<Vec<_>>()[..] else {
            panic!("{thread:#}")
        };
        assert_eq!(waited["contended"], json!(ROUNDS));
        let of_thread = truth[&format!("waits {tid}")][0];
        assert_near("a thread's waits", number(&waited["wait_ns"]), of_thread, 0.05);
        let cpu = |part: &str| number(&thread["cpu"][part]);
        let all = cpu("program") + cpu("kernel") + cpu("lock_spin");
        assert_near("a thread's CPU time", all, truth[&format!("waiter {tid}")][0] / 1e9, 0.05);
    }
}

fn queues(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let gate = place(profiled, "gate (");
    let convoy = about(list(&profiled.json, "convoys"), gate).next().unwrap();
    assert_eq!(convoy["waiters_max"], json!(WAITERS), "{convoy:#}");
    let [at_least, at_most, early, late] = truth["queue"][..] else { panic!("{truth:?}") };
    let length = number(&convoy["length_ns"]);
    // The library's clock is another, to a hundredth.
    assert!((0.99 * at_least..1.01 * at_most).contains(&length), "{length} {at_least} {at_most}");
    // It began behind the holder's lock, and before all four waited.
    let start = number(&convoy["start"]) - program_start(profiled);
    let possible = early / 1e9..late / 1e9 + STARTING;
    assert!(possible.contains(&start), "{start} {early} {late}");
}

/// When the program's `main` began, in seconds of the profile: some milliseconds after its
/// statistics did.
fn program_start(profiled: &Profiled) -> f64 {
    number(&profiled.processes()[0]["started"])
}

/// The holder is recorded for sampled waits: of two holders, each has its share.
fn holders(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let gate = place(profiled, "gate (");
    let by = |function: &str| -> f64 {
        let blocking = about(list(&profiled.json, "blocking"), gate);
        let of = blocking.filter(|one| one["holder"][0]["function"] == function);
        of.map(|one| {
            assert_eq!(one["waiter"][0]["function"], "wait_for_gate", "{one:#}");
            number(&one["wait_ns"])
        })
        .sum()
    };
    let (long, short) = (by("hold_long"), by("hold_short"));
    let [true_long, true_short, squares_long, squares_short] = truth["holders"][..] else {
        panic!("{truth:?}")
    };
    let all = true_long + true_short;
    assert_near("all that is known of holders", long + short, all, 0.05);
    let share = true_long / all;
    // The variance of a sum whose parts are each sampled with the same probability.
    let variance = (SPIN_PERIOD - 1.0)
        * ((1.0 - share).powi(2) * squares_long + share.powi(2) * squares_short);
    let error = (4.0 * variance.sqrt() / all / share).max(0.05);
    assert_near("the long holder's share", long / (long + short), share, error);
}

/// The intervals add up to the whole, and each event is in the interval in which it happened.
fn over_time(profiled: &Profiled, truth: &HashMap<String, Vec<f64>>) {
    let intervals = list(&profiled.json["timeline"], "intervals");
    for name in ["gate (", "hot (", "timed ("] {
        let lock = place(profiled, name);
        let sum = |field: &str| -> f64 {
            let all = intervals.iter().flat_map(|interval| about(list(interval, "waits"), lock));
            all.map(|waited| number(&waited[field])).sum()
        };
        let whole = profiled.lock(name);
        assert_eq!(sum("contended"), number(&whole["contended"]), "{name}");
        assert_near(name, sum("wait_ns"), number(&whole["wait"]["total_ns"]), 0.001);
    }
    let length = number(&profiled.json["timeline"]["interval"]);
    let hot = place(profiled, "hot (");
    let [from, to] = truth["when"][..] else { panic!("{truth:?}") };
    for (at, interval) in intervals.iter().enumerate() {
        let begin = at as f64 * length - program_start(profiled);
        // Events between two polls are divided evenly among the intervals of the two.
        let near = from / 1e9 - length - STARTING..to / 1e9 + length + STARTING;
        let is_near = near.contains(&begin) || near.contains(&(begin + length));
        assert!(is_near || about(list(interval, "waits"), hot).count() == 0, "{at}: {interval:#}");
    }
    let parts = ["kernel", "program", "lock_spin"];
    let all = |cpu: &Value| parts.iter().map(|part| number(&cpu[part])).sum::<f64>();
    let sum: f64 = intervals.iter().map(|interval| all(&interval["cpu"])).sum();
    assert_near("CPU time over time", sum, all(&profiled.json["cpu"]), 0.05);
}

fn orders(profiled: &Profiled) {
    let (north, south) = (place(profiled, "north ("), place(profiled, "south ("));
    let orders = list(&profiled.json, "orders");
    let seen = |held: usize, wanted: usize, function: &str| {
        let found = orders.iter().position(|one| {
            one["held"] == held && one["wanted"] == wanted && one["seen"].as_u64() > Some(0)
        });
        let order = &orders[found.unwrap()];
        for frames in ["held_frames", "wanted_frames"] {
            assert_eq!(order[frames][0]["function"], function, "{order:#}");
        }
        (found.unwrap(), order["seen"].as_u64().unwrap())
    };
    let (down, up) = (seen(north, south, "down"), seen(south, north, "up"));
    assert_eq!((down.1, up.1), (70, 30));
    let [cycle] = &list(&profiled.json, "cycles")[..] else { panic!("{:#}", profiled.json) };
    let mut steps: Vec<_> = list(cycle, "orders").iter().map(|step| step.as_u64()).collect();
    steps.sort_unstable();
    let mut expected = [Some(down.0 as u64), Some(up.0 as u64)];
    expected.sort_unstable();
    assert_eq!((steps, &cycle["deadlocked"]), (expected.to_vec(), &json!(false)));
}

/// The time waited according to the kernel's tracepoints, for the unmodified program. It is within
/// 10 % of the program's own report for that run, as the library's is for its run.
#[test]
fn waits_agree_with_tracepoints() {
    let directory = directory();
    let program = compile(directory.path(), "truth", TRUTH, &["-O1", "-pthread"]);
    for means in MEANS {
        let (output, json) = profiled(means, &["--lock", "glibc"], &[program.to_str().unwrap()]);
        if output.status.code() == Some(77) {
            return skipped("there is one CPU only");
        }
        if !sees_futexes(&output, &json) {
            continue;
        }
        let truth = said(&stdout(&output));
        let gate = crate::support::real::named(&json, "gate (");
        assert_eq!(gate["kind"], "futex", "{gate:#}");
        assert_near("gate: total", number(&gate["wait"]["total_ns"]), truth["gate"][0], 0.1);
        assert_near("gate: waits", number(&gate["contended"]), (ROUNDS * WAITERS) as f64, 0.1);
        let timed = crate::support::real::named(&json, "timed (");
        assert_near("timed: total", number(&timed["wait"]["total_ns"]), truth["timed"][0], 0.1);
        // glibc's condition variable has two words, on which threads wait alternately.
        let bells = list(&json, "conditions").iter();
        let bells = bells.filter(|one| one["name"].as_str().unwrap().starts_with("bell+"));
        let waited = bells.map(|one| number(&one["wait"]["total_ns"])).sum();
        assert_near("bell: total", waited, truth["bell"][0], 0.1);
        // Over time, it is the same.
        let lock = json["locks"].as_array().unwrap().iter().position(|lock| lock == gate).unwrap();
        let intervals = list(&json["timeline"], "intervals").iter();
        let waits = intervals.flat_map(|interval| about(list(interval, "waits"), lock));
        let (mut count, mut ns) = (0, 0.0);
        for waited in waits {
            count += waited["contended"].as_u64().unwrap();
            ns += number(&waited["wait_ns"]);
        }
        assert_eq!(count, gate["contended"].as_u64().unwrap(), "{means}");
        assert_near("gate: over time", ns, number(&gate["wait"]["total_ns"]), 0.001);
    }
}
