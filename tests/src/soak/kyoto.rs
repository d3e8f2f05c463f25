//! Kyoto Cabinet's own test of random operations on a cache that all threads share.
//!
//! `kccachetest wicked` writes, reads, removes, iterates and begins transactions at random, and
//! checks the results. A run ends by itself. A soak is a series of runs, each with another seed and
//! the next of several shapes. A run's memory ends with the run, so its growth over time is not
//! checked.

use std::time::{Duration, Instant};

use super::launch::{Launch, complaints};
use super::process::{Process, tail};
use super::{Crowd, Failure, Result, STANDSTILL, ensure, installed, interrupt, place};

/// Threads and other options of a run.
const SHAPES: &[(usize, &[&str])] = &[
    (4, &[]),
    (16, &["-tc"]),
    (8, &["-capcnt", "5000"]),
    (2, &["-bnum", "100"]),
    (32, &["-bnum", "5000", "-capsiz", "1000000"]),
];
const ITERATIONS: &str = "2";
/// Operations of all threads together in an iteration. The program reports its progress after each
/// tenth.
const OPERATIONS: usize = 80_000;

/// Runs seeds until the time is over; what came of it.
pub fn soak(launch: Launch, crowd: Crowd, length: Duration) -> Result<String> {
    let start = Instant::now();
    let mut runs = 0;
    while runs == 0 || start.elapsed() < length {
        let seed = fastrand::u32(1..);
        let (threads, options) = SHAPES[runs % SHAPES.len()];
        let threads = crowd.threads(threads);
        run(launch, seed, threads, options).map_err(Failure::because(format!(
            "KCRNDSEED={seed}, {threads} threads, {options:?}"
        )))?;
        runs += 1;
    }
    Ok(format!("{runs} seeds"))
}

fn run(launch: Launch, seed: u32, threads: usize, options: &[&str]) -> Result<()> {
    let place = place()?;
    let mut command = launch.command(&installed("kccachetest", "kyotocabinet-utils")?);
    command.env("KCRNDSEED", seed.to_string());
    command.args(["wicked", "-th", &threads.to_string(), "-it", ITERATIONS]).args(options);
    command.arg((OPERATIONS / threads).to_string());
    let process = Process::start("kccachetest", &mut command, place.path())?;
    watch(&process)?;
    let (said, output) = (process.said(), process.stdout());
    let status = process.finish(STANDSTILL)?;
    let ended_well = status.success() && output.trim_end().ends_with("ok");
    let complains = said.contains("ERROR") || complaints(&said).next().is_some();
    ensure(ended_well && !complains, || format!("kccachetest: {status}"))
        .map_err(|failure| failure.with("it said last", &tail(&said)))
}

/// Waits for the end of a run that makes progress.
fn watch(process: &Process) -> Result<()> {
    let mut progress = (0, Instant::now());
    while !process.ends_within(Duration::from_millis(200))? {
        interrupt::check()?;
        let written = process.written();
        if written != progress.0 {
            progress = (written, Instant::now());
        } else if progress.1.elapsed() >= STANDSTILL {
            return Err(process.hangs(&format!("stands still after {written} bytes of output")));
        }
    }
    Ok(())
}
