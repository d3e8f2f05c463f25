//! Loads whose locks are the kernel's: many processes, and many threads in one address space.
//!
//! Both are the situations of "An Analysis of Lock Contention in Linux Memory Management for
//! Many-core System" (J. Kyong and S.-S. Lim, 2015): there the loads are AIM7's multiuser mix on
//! tmpfs, and SPECjbb2013. These here are our own loads.
//!
//! | module | what is in it |
//! |---|---|
//! | `forks` | processes that each do one job after the other |
//! | `jobs` | the jobs, and the order in which they come |
//! | `faults` | threads that map memory while others touch theirs |
//! | `command`, `forks_command`, `faults_command` | flags, and measuring by rounds |
//! | `process` | the process that is the load, from outside |
//! | `measured` | what was measured |
//! | `output`, `picture` | results as records, as text and as a figure |
//!
//! A load runs in a process of its own, which executes an [`Order`]. That process is small and has
//! one thread, so a fork costs as much as in a small program.

mod command;
mod faults;
mod faults_command;
mod forks;
mod forks_command;
mod jobs;
mod measured;
mod output;
mod picture;
mod process;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use manycore_launch::terminal::Terminal;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::front::{Front, Run};
use crate::workload::Workload;
pub use jobs::Mix;

/// The most processes or threads of a load.
pub const PARALLEL_MAX: u32 = 4_095;

/// Loads on the kernel.
pub(crate) struct KernelLoad;

impl Workload for KernelLoad {
    fn measured(&self) -> Vec<Front> {
        vec![
            Front::of::<forks_command::Options>(),
            Front::of::<faults_command::Options>(),
            Front::named::<Serve>("load"),
        ]
    }
}

/// The process that puts the load on the kernel. This command starts it itself.
#[derive(Args, Debug)]
#[command(hide = true)]
struct Serve {
    order: String,
}

impl Run for Serve {
    fn run(&self, _: &Terminal) -> manycore_launch::failure::Result<()> {
        Ok(serve(&self.order)?)
    }
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Which load.
    pub what: What,
    /// How many processes or threads.
    pub parallel: u32,
    /// How long they run before it counts.
    pub warm_up: Duration,
    /// How long it counts.
    pub measured: Duration,
    /// The seed of all that is drawn.
    pub seed: u64,
}

/// Which load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// Processes do jobs.
    Forks {
        /// How often each kind comes.
        mix: Mix,
        /// Where they make files.
        directory: PathBuf,
    },
    /// Threads of one process touch memory and map it.
    Faults {
        /// The share of operations that map memory, in percent.
        update: f64,
    },
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Jobs or operations while it counted.
    pub operations: u64,
    /// How long it counted, in nanoseconds.
    pub elapsed_ns: f64,
    /// The time from before the start of the first process or thread until the end of the last one,
    /// in nanoseconds.
    pub whole_ns: f64,
}

impl Answer {
    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.operations as f64 / (self.elapsed_ns / 1e9).max(f64::MIN_POSITIVE)
    }
}

/// Executes an order, given as JSON, and prints the answer. This is all that the process does.
fn serve(order: &str) -> Result<(), Failure> {
    let order: Order = serde_json::from_str(order)
        .map_err(|error| Failure::Usage(format!("no order for a load: {error}")))?;
    let answer = run(&order)?;
    let text = serde_json::to_string(&answer).expect("numbers can be written");
    writeln!(io::stdout(), "{text}")
        .map_err(|error| Failure::Failed(format!("the answer cannot be written: {error}")))
}

fn run(order: &Order) -> Result<Answer, Failure> {
    if !(1..=PARALLEL_MAX).contains(&order.parallel) {
        return Err(Failure::Usage(format!("{} at a time: 1 to {PARALLEL_MAX}", order.parallel)));
    }
    match &order.what {
        What::Forks { mix, directory } => forks::run(order, *mix, directory),
        What::Faults { update } => faults::run(order, *update),
    }
}

/// The work done by one process or thread, in a cache line of its own.
#[repr(align(128))]
struct Counter(AtomicU64);

impl Counter {
    fn count(&self) {
        // Relaxed: only its owner writes it, and a reader needs only an approximate count.
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Lets the load warm up, counts for some time, and then ends it. Returns the number of operations
/// and the time.
fn count(order: &Order, counters: &[Counter], enough: &AtomicU64) -> (u64, f64) {
    // Relaxed: as in `Counter::count`.
    let done = || counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum::<u64>();
    std::thread::sleep(order.warm_up);
    let (begin, before) = (Instant::now(), done());
    std::thread::sleep(order.measured);
    let (elapsed, after) = (begin.elapsed(), done());
    // Relaxed: an order that comes a little later does no harm.
    enough.store(1, Ordering::Relaxed);
    (after - before, elapsed.as_nanos() as f64)
}

/// Maps private, zeroed memory. The caller unmaps it.
fn map(bytes: usize) -> io::Result<*mut u8> {
    let (rights, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, placed by the kernel, overlaps no other.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast()) }
}

/// Gives it back.
///
/// # Safety
/// `bytes` from `at` on are a mapping of [`map`], and no code uses it any more.
unsafe fn unmap(at: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: `map` has made the mapping, and no code uses it any more (contract of this function).
    match unsafe { libc::munmap(at.cast(), bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The usual size of a page. On a machine with larger ones, some pages are touched more than once.
const PAGE: usize = 4096;

/// Writes to each page of memory.
///
/// # Safety
/// `bytes` from `at` on are mapped for writing, and no other thread uses them.
unsafe fn touch(at: *mut u8, bytes: usize) {
    for offset in (0..bytes).step_by(PAGE) {
        // SAFETY: the offset is below `bytes`, and `bytes` are mapped for writing and used by no
        // other thread (contract of this function).
        unsafe { at.add(offset).write_volatile(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(what: What, parallel: u32) -> Order {
        let time = Duration::from_millis(20);
        Order { what, parallel, warm_up: time / 5, measured: time, seed: 1 }
    }

    #[test]
    fn threads_fault_and_map() {
        for update in [0.0, 50.0, 100.0] {
            let answer = run(&order(What::Faults { update }, 3)).unwrap();
            assert!(answer.operations > 0, "{update}: {answer:?}");
            assert!(
                answer.whole_ns >= answer.elapsed_ns && answer.elapsed_ns >= 20e6,
                "{answer:?}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in
            [order(What::Faults { update: 1.0 }, 0), order(What::Faults { update: 101.0 }, 1)]
        {
            assert!(matches!(run(&wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
        assert!(matches!(serve("{}"), Err(Failure::Usage(_))));
    }
}
