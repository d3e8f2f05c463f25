//! A slice counts what ran, and notices locks that are none.

use std::time::Duration;

use manycore_bench::contender::{self, Contender, Visitor};
use manycore_bench::mix::Mix;
use manycore_bench::slice::{self, Pinning, Settings, Slice};
use manycore_bench::work::{Length, Pace};

fn mix(locks: u32, reads: f64) -> Mix {
    Mix::uniform(locks, Length::exponential(1_000.0), Length::fixed(2_000.0), reads)
}

fn settings() -> Settings {
    Settings {
        threads: 4,
        mix: mix(1, 0.0),
        pinning: Pinning::Auto,
        warm_up: Duration::from_millis(5),
        measured: Duration::from_millis(100),
        drain: Duration::from_secs(5),
        sample: 3,
        pace: Pace::measure(),
        seed: 1,
    }
}

struct Run<'a>(&'a Settings);

impl Visitor for Run<'_> {
    type Output = Result<Slice, String>;

    fn visit<C: Contender>(self) -> Self::Output {
        slice::run::<C>(self.0)
    }
}

#[test]
fn sections_that_move_more_lines_take_longer() {
    // With one thread, so that other programs do not decide; sections that move data only.
    let of = |lines| {
        let mix = Mix::uniform(1, Length::fixed(0.0), Length::fixed(0.0), 0.0).with_data(lines);
        run("futex", &Settings { threads: 1, mix, ..settings() }).throughput()
    };
    let (one, many) = (of(1), of(512));
    assert!(one > 4.0 * many, "{one} sections a second with a line, {many} with 512");
}

#[test]
fn every_lock_excludes_and_is_counted() {
    let settings = Settings { mix: mix(3, 0.0), ..settings() };
    // Locks that never block may get nowhere while other programs keep the CPUs busy.
    let ours = contender::locks().iter().filter(|info| info.blocks).map(|info| info.name);
    for name in ours.chain(contender::peers(false)).chain(contender::peers(true)) {
        let slice = run(name, &settings);
        assert_eq!((slice.counts.len(), slice.stuck), (4, 0), "{name}");
        let sections: u64 = slice.counts.iter().sum();
        assert!(
            sections > 0 && slice.throughput() > 0.0 && slice.fairness() >= 1.0,
            "{name}: {slice:?}"
        );
        assert!(slice.elapsed_ns >= 100e6, "{name}: {}", slice.elapsed_ns);
        // A third of the sections is timed; and those that a reading or a switch of CPUs cut off.
        assert!(
            slice.waits.count() <= sections * 2 / 5 + 16,
            "{name}: {} of {sections}",
            slice.waits.count()
        );
    }
    for info in contender::locks().iter().filter(|info| !info.blocks) {
        assert_eq!(run(info.name, &settings).counts.len(), 4, "{}", info.name);
    }
}

fn run(name: &str, settings: &Settings) -> Slice {
    contender::with(name, Run(settings)).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn readers_share_where_the_lock_lets_them() {
    for name in contender::peers(true) {
        let settings = Settings { mix: mix(1, 90.0), ..settings() };
        assert!(run(name, &settings).throughput() > 0.0, "{name}");
    }
}

/// Excludes no thread.
struct Open;

impl Contender for Open {
    fn new() -> Self {
        Self
    }

    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        section()
    }
}

#[test]
fn a_lock_that_does_not_lock_is_found_out() {
    let settings = Settings {
        mix: Mix::uniform(1, Length::fixed(100_000.0), Length::fixed(2_000.0), 0.0),
        ..settings()
    };
    let error = slice::run::<Open>(&settings).unwrap_err();
    assert!(error.contains("let two threads in") || error.contains("lost updates"), "{error}");
}

/// Fails as the C library's locks do when they return an error.
struct Broken;

impl Contender for Broken {
    fn new() -> Self {
        Self
    }

    fn exclusive<R>(&self, _: impl FnOnce() -> R) -> R {
        panic!("expected by the test: the lock is broken")
    }
}

#[test]
fn a_lock_that_fails_yields_no_result() {
    assert!(slice::run::<Broken>(&settings()).unwrap_err().contains("panicked"));
}
