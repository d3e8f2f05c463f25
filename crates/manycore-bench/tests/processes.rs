//! Benchmarks with real worker processes: this executable, started again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use manycore_bench::grid::{self, Effort};
use manycore_bench::lock::{self, Options, Rounds};
use manycore_bench::work::Length;
use manycore_bench::worker::Command;
use manycore_bench::{Failure, uncontended};
use manycore_measure::{Mechanism, Results};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, contender] = arguments.as_slice()
        && word == "worker"
    {
        manycore_bench::serve_worker(contender).expect("the harness is there");
        return;
    }
    let tests: [(&str, fn()); 6] = [
        ("rounds_make_records", rounds_make_records),
        ("a_budget_is_kept", a_budget_is_kept),
        ("a_library_that_is_not_loaded_is_noticed", a_library_that_is_not_loaded_is_noticed),
        ("a_grid_is_judged", a_grid_is_judged),
        ("pairs_are_timed_and_counted", pairs_are_timed_and_counted),
        ("a_worker_that_is_none_is_an_error", a_worker_that_is_none_is_an_error),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

/// Short, and without any claim on what the values are.
fn options() -> Options {
    Options {
        locks: vec!["futex".into(), "std".into()],
        threads: vec![1, 3],
        slice: Duration::from_millis(5),
        rounds: Rounds::Count(6),
        ..Options::new(Command::this_executable(["worker"]).unwrap())
    }
}

fn rounds_make_records() {
    let sections = vec![Length::fixed(100.0), Length::exponential(1_000.0)];
    let found = lock::run(&Options { sections, lock_count: 2, ..options() }).unwrap();
    assert_eq!(found.failures, Vec::<String>::new());
    assert_eq!(found.measurements.len(), 2 * 2 * 3);
    for measurement in &found.measurements {
        let base = measurement.mechanism == Mechanism::Lock("glibc".into());
        assert_eq!((measurement.repetitions, measurement.unit.as_str()), (6, "op/s"));
        assert!(measurement.value > 0.0 && measurement.low.is_some());
        assert_eq!(measurement.metrics.contains_key("ratio"), !base);
        assert_eq!(measurement.metrics.contains_key("wait_p99_9_ratio"), !base);
        assert!(measurement.metrics["wait_p50"].value <= measurement.metrics["wait_max"].value);
    }
    Results::of_this_host(found.measurements.clone()).to_json().unwrap();
    let text = lock::render(&found.measurements);
    assert_eq!(text.matches("base line").count(), 4, "{text}");
    assert!(
        text.contains(
            "3 threads, 2 locks, sections of about 1.00 us with 1 line of data, about 2.00 us between them, 6 rounds"
        ),
        "{text}"
    );
}

fn a_budget_is_kept() {
    let start = Instant::now();
    let options = Options { rounds: Rounds::Within(Duration::from_millis(500)), ..options() };
    let found = lock::run(&options).unwrap();
    assert!(found.measurements[0].repetitions >= 1);
    // A round takes a tenth of that; the rest is for a machine that is busy with other things.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

fn a_library_that_is_not_loaded_is_noticed() {
    let preload = Some(PathBuf::from("/nonexistent/libmanycore_preload.so"));
    let found = lock::run(&Options { preload, ..options() }).unwrap();
    let [failure] = found.failures.as_slice() else { panic!("{:?}", found.failures) };
    assert!(failure.starts_with("futex (preload): pthread_mutex_lock comes from"), "{failure}");
    assert_eq!(found.measurements.len(), 2 * 3, "the others are measured all the same");
}

fn a_grid_is_judged() {
    let grid = grid::options(Command::this_executable(["worker"]).unwrap(), None, Effort::Quick);
    let found = grid::run(&lock::Options {
        locks: vec!["futex".into(), "innodb".into(), "sleep".into(), "hybrid".into()],
        threads: vec![1, 8],
        slice: Duration::from_millis(2),
        ..grid
    });
    let found = found.unwrap();
    assert_eq!((found.failures.len(), found.measurements.len()), (0, 3 * 2 * 5));
    // Two against the best, waits, fairness, three under load, and two of each section.
    assert_eq!(found.claims.len(), 7 + 2 * 3);
    let claim = |id: &str| found.claims.iter().find(|claim| claim.id == id).unwrap();
    assert!(claim("futex-under-load-native").value.unwrap() > 0.0);
    assert_eq!(claim("adaptive-mean-native").note, "not judged: adaptive is not in this run");
    let text = grid::render(&found);
    assert_eq!(text.matches("Sections of").count(), 3 * 3, "{text}");
    let results = Results { claims: found.claims, ..Results::of_this_host(found.measurements) };
    assert_eq!(Results::from_json(&results.to_json().unwrap()).unwrap(), results);
}

fn pairs_are_timed_and_counted() {
    let worker = Command::this_executable(["worker"]).unwrap();
    let locks = vec!["futex".into(), "glibc-adaptive".into()];
    let times = uncontended::Options { locks, rounds: 6, ..uncontended::Options::new(worker) };
    let found = uncontended::run(&times).unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|m| m.value > 0.5 && m.unit == "ns" && m.low.is_some()));
    assert!(found[1].metrics["ratio"].value > 0.0);

    let counts = uncontended::run(&uncontended::Options { instructions: true, rounds: 1, ..times });
    match counts {
        Ok(found) => {
            let count = |index: usize| found[index].metrics["instructions"].value;
            // An atomic instruction to lock and another to unlock are the least that there is, and
            // counts are whole.
            assert!(
                (0..3).all(|index| count(index) >= 2.0 && count(index).fract() == 0.0),
                "{found:?}"
            );
            assert_eq!(found[1].metrics["instructions_ratio"].value, count(1) / count(0));
        }
        Err(Failure::Usage(text)) => assert!(text.contains("apt-get install valgrind"), "{text}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn a_worker_that_is_none_is_an_error() {
    let worker = Command { program: "/bin/false".into(), arguments: Vec::new() };
    let failure = lock::run(&Options { worker, ..options() }).unwrap_err();
    assert_eq!(failure, Failure::Failed("glibc: the worker has ended".into()));
}
