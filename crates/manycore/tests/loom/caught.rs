//! Runs a model with a mutation, and requires the expected failure.
//!
//! A model that crashes, runs out of time, or panics about something else has not noticed the
//! mutation.
// This is an ordinary program, to which the rules for algorithms do not apply.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The model checker has found two accesses to the same location without an order between them.
#[allow(dead_code, reason = "each test binary has its own mutations")]
pub const RACE: &str = "Causality violation: ";

/// The model checker has found an execution in which all threads sleep.
#[allow(dead_code, reason = "each test binary has its own mutations")]
pub const DEADLOCK: &str = "deadlock; threads = ";

/// A loop that waits for another thread's write never ends.
#[allow(dead_code, reason = "as above")]
pub const ENDLESS: &str = "Model exceeded maximum number of branches";

/// Each model takes seconds at most.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs the test with the mutation; returns the fault, unless its first panic has the expected
/// text.
pub fn missed(mutation: &str, test: &str, verdict: &str) -> Option<String> {
    let (status, text) = run(mutation, test);
    assert!(text.contains("running 1 test"), "there is no test {test}: {text}");
    let found = match first_panic(&text) {
        _ if status.success() => "passes".to_owned(),
        // The later output, of the destructors' panics and accesses, is from a model that is torn
        // down half-way.
        Some(message) if message.contains(verdict) => return None,
        Some(message) => format!("fails for another reason, {message:?}"),
        None => format!("ends without a panic, {status}"),
    };
    Some(format!("{mutation}: {test} {found}; expected {verdict:?}"))
}

/// How the test ended, and all that it has printed.
fn run(mutation: &str, test: &str) -> (ExitStatus, String) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]).env("MANYCORE_MUTATION", mutation);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("this program starts");
    let printed = child.stdout.take().expect("a pipe");
    let told = child.stderr.take().expect("a pipe");
    let [printed, told] = [Box::new(printed) as Box<dyn Read + Send>, Box::new(told)]
        .map(|pipe| thread::spawn(|| std::io::read_to_string(pipe).unwrap_or_default()));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("our child") {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill().expect("our child");
        }
        thread::sleep(Duration::from_millis(2));
    };
    (status, [printed, told].map(|pipe| pipe.join().expect("it has ended")).concat())
}

/// The text of the first panic: the line after its location.
pub fn first_panic(text: &str) -> Option<&str> {
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at "));
    lines.nth(1)
}

/// All mutations, each with the test and the expected text.
pub fn all(mutations: &[(&str, &str, &str)]) {
    let missed: Vec<_> = mutations
        .iter()
        .filter_map(|(mutation, test, verdict)| missed(mutation, test, verdict))
        .collect();
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}
