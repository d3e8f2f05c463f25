//! Events, counted for each CPU.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::cpu;

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $event:ident $name:literal,)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Event { $($(#[doc = $doc])* $event,)* }

        /// The names of the counters for programs, in order.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

counters! {
    /// Ticks of timers.
    Ticks "ticks",
    /// From a thread to another.
    Switches "switches",
    /// Because a slice was over.
    Preemptions "preemptions",
    /// Threads taken from another CPU's queue.
    Steals "steals",
    /// Interrupts that wake a CPU without work.
    WakeInterrupts "wake_interrupts",
    /// System calls.
    SystemCalls "system_calls",
    /// Page faults in kernel memory; there are none.
    KernelFaults "kernel_faults",
    /// Page faults that gave a zeroed page.
    ZeroFaults "zero_faults",
    /// Page faults that read a file.
    FileFaults "file_faults",
    /// Page faults that copied a shared page.
    CopyFaults "copy_faults",
    /// CPUs that were interrupted to forget translations.
    Shootdowns "shootdowns",
    /// Frames taken.
    FramesTaken "frames_taken",
    /// Spin locks that were not free.
    SpinWaits "spin_waits",
    /// How often threads of the kernel slept on a word, for a lock of the library or of the kernel.
    FutexSleeps "futex_sleeps",
    /// Sleeping locks that were not free.
    SleepWaits "sleep_waits",
    /// Processes begun.
    Forks "forks",
    /// Programs begun.
    Execs "execs",
    /// Signals delivered.
    Signals "signals",
    /// Blocks of 4 KB read from the disk.
    BlocksRead "blocks_read",
    /// Blocks of 4 KB written to the disk.
    BlocksWritten "blocks_written",
    /// Requests to the disk to make its writes durable.
    Flushes "flushes",
    /// Written batches that `fsync` and similar calls have requested.
    Batches "batches",
    /// Calls of `fsync` that another one's batch has served.
    SharedBatches "shared_batches",
}

/// A CPU's counts.
#[repr(align(128))]
pub struct Counts([AtomicU64; NAMES.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self::new()
    }
}

impl Counts {
    /// All zero.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; NAMES.len()])
    }
}

/// One more.
pub fn count(event: Event) {
    // Relaxed: a number. Atomic, because the thread may be moved between finding the CPU and this.
    cpu::this().counts.0[event as usize].fetch_add(1, Ordering::Relaxed);
}

/// The sum over all CPUs.
pub fn total(event: Event) -> u64 {
    cpu::all().iter().map(|cpu| cpu.counts.0[event as usize].load(Ordering::Relaxed)).sum() // Relaxed: a number
}

/// All, with their names.
pub fn totals() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().enumerate().map(|(place, &name)| {
        // Relaxed: numbers
        let of = |cpu: &cpu::Cpu| cpu.counts.0[place].load(Ordering::Relaxed);
        (name, cpu::all().iter().map(of).sum())
    })
}
