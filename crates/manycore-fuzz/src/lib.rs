//! Feeds readers of files with random bytes, for tests.
//!
//! A file may be cut, of another version, or an attack. Whatever it contains, its reader ends soon,
//! takes no more memory than the file is worth, and does not panic: it describes the fault.
//!
//! ```
//! manycore_fuzz::texts("numbers", &["1 2 3"], |text| {
//!     let _: Vec<Option<u8>> = text.split(' ').map(|word| word.parse().ok()).collect();
//! });
//! ```
//!
//! Half of the inputs are valid ones with a few changes, the others random bytes. They are the same
//! each time, and as many as take some tenths of a second; with `MANYCORE_FUZZ_SECONDS=60` they are
//! different each time, for this long for each reader. A failure is shown with as few changes as
//! possible.

mod input;
mod watch;

use std::time::{Duration, Instant};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// How many inputs are tried, unless there is a time to fill.
const CASES: u32 = 256;

/// Calls `read` with inputs derived from the valid ones.
///
/// # Panics
///
/// If `read` does; the message shows the input. The process is aborted if an input takes long, or
/// much memory.
pub fn bytes(name: &str, valid: &[&[u8]], read: impl Fn(&[u8])) {
    feed(name, CASES, valid, read);
}

/// The same, for a reader of much that takes tens of milliseconds each time.
///
/// # Panics
///
/// As [`bytes`] does.
pub fn bytes_of_much(name: &str, valid: &[&[u8]], read: impl Fn(&[u8])) {
    feed(name, CASES / 8, valid, read);
}

fn feed(name: &str, cases: u32, valid: &[&[u8]], read: impl Fn(&[u8])) {
    let inputs = input::inputs(valid);
    let run = |runner: &mut TestRunner| {
        let result = runner.run(&inputs, |input| {
            let _watch = watch::over(name, &input);
            read(&input);
            Ok::<_, TestCaseError>(())
        });
        match result {
            Ok(()) => {}
            Err(TestError::Fail(why, input)) => {
                panic!("{name} fails: {why}\nwith the input \"{}\"", input.escape_ascii())
            }
            Err(TestError::Abort(why)) => panic!("{name} was not tried: {why}"),
        }
    };
    valid.iter().for_each(|input| read(input));
    match seconds() {
        None => run(&mut TestRunner::new_with_rng(
            config(cases),
            TestRng::deterministic_rng(RngAlgorithm::ChaCha),
        )),
        Some(limit) => {
            let start = Instant::now();
            while start.elapsed() < limit {
                run(&mut TestRunner::new(config(64)));
            }
        }
    }
}

/// The same, for a reader of text: bytes that are not UTF-8 are replaced.
///
/// # Panics
///
/// As [`bytes`] does.
pub fn texts(name: &str, valid: &[&str], read: impl Fn(&str)) {
    let valid: Vec<_> = valid.iter().map(|text| text.as_bytes()).collect();
    bytes(name, &valid, |input| read(&String::from_utf8_lossy(input)));
}

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_time: 60_000, ..Config::default() }
}

/// For how long each reader is fed, if that was asked for.
fn seconds() -> Option<Duration> {
    let seconds = std::env::var("MANYCORE_FUZZ_SECONDS").ok()?;
    let seconds = seconds.parse().unwrap_or_else(|_| {
        panic!(
            "MANYCORE_FUZZ_SECONDS='{seconds}' is no number: say how many seconds a reader is fed"
        )
    });
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "with the input \"")]
    fn what_fails_is_found() {
        texts("a reader that cannot stand two sevens", &["1234567890"], |text| {
            assert!(!text.contains("77"));
        });
    }

    #[test]
    fn inputs_are_as_large_as_valid_ones() {
        let longest = std::cell::Cell::new(0);
        bytes("any", &[&[0; 10_000]], |input| longest.set(longest.get().max(input.len())));
        assert!((10_000..40_000).contains(&longest.get()), "{}", longest.get());
    }
}
