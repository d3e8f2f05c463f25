//! Ends the process if an input takes long, or much memory: neither can be caught as a panic is.

use std::fs;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Each input takes milliseconds; a busy machine may take a thousand times as long.
const LIMIT: Duration = Duration::from_secs(60);

/// Inputs are kilobytes, and tests beside this one take some megabytes.
const MEMORY_MAX: u64 = 2 << 30;

struct Run {
    thread: ThreadId,
    name: String,
    input: Vec<u8>,
    since: Instant,
}

/// What is being read: one input a thread.
static RUNS: Mutex<Vec<Run>> = Mutex::new(Vec::new());

/// Until it is dropped, the input is being read.
pub struct Watch(ThreadId);

/// Begins to watch a reader.
pub fn over(name: &str, input: &[u8]) -> Watch {
    static WATCHER: Once = Once::new();
    WATCHER.call_once(|| drop(thread::spawn(watch)));
    let thread = thread::current().id();
    let (name, input) = (name.to_owned(), input.to_vec());
    runs().push(Run { thread, name, input, since: Instant::now() });
    Watch(thread)
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut runs = runs();
        let ended = runs.iter().position(|run| run.thread == self.0).expect("it was begun");
        runs.swap_remove(ended);
    }
}

fn runs() -> std::sync::MutexGuard<'static, Vec<Run>> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    loop {
        thread::sleep(Duration::from_millis(20));
        let memory = memory();
        for run in runs().iter() {
            let took = run.since.elapsed();
            if took > LIMIT || memory > MEMORY_MAX {
                eprintln!(
                    "{}: not done after {took:?}, {memory} bytes of memory\nwith the input \"{}\"",
                    run.name,
                    run.input.escape_ascii()
                );
                std::process::abort();
            }
        }
    }
}

/// Bytes that this process has in memory.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kilobytes << 10
}
