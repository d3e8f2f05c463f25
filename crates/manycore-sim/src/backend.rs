//! The base of a simulated program's own facade: accesses, waiting, clocks.
//!
//! A program that can be simulated names atomics only through a facade of its own. The facade's
//! back end for the simulator does each operation twice: here, to charge its cost, and for real.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use manycore_sim::{Machine, Simulation, backend};
//!
//! struct Simulated(AtomicU32);
//!
//! impl Simulated {
//!     fn fetch_add(&self, value: u32) -> u32 {
//!         backend::rmw((&raw const self.0).addr()); // returns at the moment when it takes effect
//!         self.0.fetch_add(value, Ordering::Relaxed) // Relaxed: the host has one thread
//!     }
//! }
//!
//! let report = Simulation::new(&Machine::example()).run(|| {
//!     let counter = Simulated(AtomicU32::new(0));
//!     counter.fetch_add(1) + counter.fetch_add(1)
//! });
//! assert_eq!(report.unwrap().result, 1);
//! ```
//!
//! On a host thread that is part of no simulation, nothing is charged, and a wait returns at once.
//! So a test can set up and read simulated data there.

use crate::coherence::Kind;
use crate::engine::{self, Handle};
use crate::explore;

/// The number of [`word`]s.
pub use crate::engine::WORDS;

/// Charges a load of up to 8 bytes. The caller executes the load when this returns, with nothing in
/// between. The other functions work the same way.
#[inline]
pub fn load(address: usize) {
    engine::access(address, Kind::Load);
}

/// Charges a store.
#[inline]
pub fn store(address: usize) {
    engine::access(address, Kind::Store);
}

/// Charges an atomic read-modify-write that changes a word whatever its value is.
#[inline]
pub fn rmw(address: usize) {
    engine::access(address, Kind::Rmw);
}

/// Charges a compare-and-swap, whether or not it is going to change anything.
#[inline]
pub fn compare_and_swap(address: usize) {
    engine::access(address, Kind::CompareAndSwap);
}

/// Requests a line ahead of its use. Waits only until the line's home serves the request, and not
/// until the line has arrived. If another thread changes the line meanwhile, it has to be fetched
/// again.
#[inline]
pub fn prefetch(address: usize) {
    engine::prefetch(address);
}

/// Charges a branch that goes either way equally often, unpredictably for a core: half of the cost
/// of a misprediction.
#[inline]
pub fn unforeseen_branch() {
    engine::unforeseen_branch();
}

/// Charges a full fence.
pub fn fence() {
    engine::fence();
}

/// Starts to write the line of an address back to persistent memory. The line stays in the cache.
/// The written data is safe when [`wait_until_safe`] has returned.
///
/// # Panics
///
/// If the machine has no persistent memory: see [`Machine::persist`](crate::Machine::persist).
pub fn write_back(address: usize) {
    engine::write_back(address);
}

/// Waits until all lines are safe that the caller has [written back](write_back), as x86's `sfence`
/// does.
pub fn wait_until_safe() {
    engine::wait_until_safe();
}

/// Charges the reading of plain data: each line of it.
pub fn read_plain(address: usize, bytes: usize) {
    engine::touch(address, bytes, Kind::Load);
}

/// Charges the writing of plain data: each line of it.
pub fn write_plain(address: usize, bytes: usize) {
    engine::touch(address, bytes, Kind::Store);
}

/// One iteration of a polling loop that goes on until another thread writes what it reads, or until
/// [`has_passed`] returns true. The simulator parks the CPU until then. A loop that ends by itself,
/// say after a number of iterations, uses [`pause`].
pub fn spin_loop() {
    match Handle::current() {
        Some(handle) => engine::spin_loop(handle),
        None => outside(),
    }
}

/// One iteration of a polling loop that ends by itself.
pub fn pause() {
    match Handle::current() {
        Some(handle) => engine::delay(handle, handle.get().machine.core.pause),
        None => outside(),
    }
}

/// Passes `ticks` of [`clock`] without giving up the CPU.
pub fn delay(ticks: u64) {
    match Handle::current() {
        Some(handle) => engine::delay(handle, handle.get().cycles(ticks)),
        None => outside(),
    }
}

/// Lets another thread have the CPU.
pub fn yield_now() {
    match Handle::current() {
        Some(handle) => engine::yield_now(handle),
        None => outside(),
    }
}

/// Sleeps for this many nanoseconds, and the timer's slack.
pub fn sleep(nanoseconds: u64) {
    match Handle::current() {
        Some(handle) => {
            let cycles = (nanoseconds as f64 * handle.get().machine.core.ghz) as u64;
            engine::sleep(handle, cycles);
        }
        None => outside(),
    }
}

/// The time-stamp counter of the caller's core; 0 on the host.
pub fn clock() -> u64 {
    Handle::current().map_or(0, engine::now)
}

/// The frequency of that counter in GHz; 1 on the host.
pub fn counter_ghz() -> f64 {
    Handle::current().map_or(1.0, |handle| {
        let core = &handle.get().machine.core;
        core.counter_ghz.unwrap_or(core.ghz)
    })
}

/// Whether `ticks` have passed since the counter stood at `start`. True on the host.
pub fn has_passed(start: u64, ticks: u64) -> bool {
    Handle::current().is_none_or(|handle| engine::has_passed(handle, start, ticks))
}

/// The largest difference between the counters of two cores, as measured by threads: see
/// [`Core::clock_boundary`](crate::machine::Core::clock_boundary). None on the host, and none where
/// schedules are explored, because times mean nothing there.
pub fn boundary() -> Option<u64> {
    Handle::current().and_then(engine::boundary)
}

/// Nanoseconds since the simulation began; 0 on the host.
pub fn nanoseconds() -> u64 {
    Handle::current().map_or(0, engine::nanoseconds)
}

/// Sleeps if `unchanged` returns true, until [`futex_wake`] of the address or the moment `until`
/// (in [`nanoseconds`]); returns whether that moment had come.
///
/// The check, the read of the word, and going to sleep are one step. On the host there is no other
/// thread to wait for.
pub fn futex_wait(address: usize, unchanged: impl FnOnce() -> bool, until: Option<u64>) -> bool {
    let Some(handle) = Handle::current() else {
        outside();
        return until.is_some();
    };
    let ghz = handle.get().machine.core.ghz;
    let until = until.map(|nanoseconds| (nanoseconds as f64 * ghz).ceil() as u64);
    engine::futex_wait(handle, address, unchanged, until)
}

/// Wakes at most `count` threads that sleep on the address.
pub fn futex_wake(address: usize, count: u32) {
    if let Some(handle) = Handle::current() {
        engine::futex_wake(handle, address, count);
    }
}

/// The number of CPUs that the simulated program may use; 1 on the host.
pub fn cpus() -> u32 {
    Handle::current().map_or(1, |handle| handle.get().cpus_allowed())
}

/// The CPU on which the caller runs; 0 on the host.
pub fn cpu() -> u32 {
    Handle::current().map_or(0, |handle| handle.get().cpu)
}

/// The number of the calling thread; 0 on the host.
pub fn thread() -> u32 {
    Handle::current().map_or(0, |handle| handle.get().current)
}

/// The number of memory nodes of the machine; 1 on the host.
pub fn nodes() -> u32 {
    Handle::current().map_or(1, |handle| handle.get().machine.topology.nodes())
}

/// The memory node of the caller's CPU; 0 on the host.
pub fn node() -> u32 {
    Handle::current().map_or(0, |handle| {
        let (cpu, topology) = (handle.get().cpu, &handle.get().machine.topology);
        topology.node_of(topology.socket_of(topology.core_of(cpu)))
    })
}

/// Charges an atomic read-modify-write of something that only the caller's core uses.
pub fn local_rmw() {
    if let Some(handle) = Handle::current() {
        engine::local_rmw(handle);
    }
}

/// Runs code that is not part of the simulated program: it costs nothing, and its allocations are
/// the host's.
pub fn on_host<R>(f: impl FnOnce() -> R) -> R {
    crate::arena::global::host(f)
}

/// Zeroed memory of the simulated program, of `bytes` bytes: it replaces a large `static`. It
/// exists until the simulation ends, and need not be freed. None on the host.
pub fn memory(bytes: usize) -> Option<std::ptr::NonNull<u8>> {
    crate::arena::global::lasting(bytes)
}

/// One of the [`WORDS`] globals of the simulated program, all 0 at its start: they replace statics.
/// Free of charge. 0 on the host.
pub fn word(number: usize) -> u64 {
    Handle::current().map_or(0, |handle| handle.get().words[number])
}

/// Sets a [`word`]. Without effect on the host.
pub fn set_word(number: usize, value: u64) {
    if let Some(handle) = Handle::current() {
        handle.get().words[number] = value;
    }
}

/// Two numbers that the calling thread has stored for itself, 0 at its start. They replace
/// thread-local memory. Free of charge. 0 on the host.
pub fn thread_words() -> [u64; 2] {
    Handle::current().map_or([0; 2], |handle| handle.get().thread().words)
}

/// Sets [`thread_words`]. Without effect on the host.
pub fn set_thread_words(words: [u64; 2]) {
    if let Some(handle) = Handle::current() {
        handle.get().thread().words = words;
    }
}

/// Whether the caller is a thread of a running simulation. Returns false after the simulation has
/// failed, while its threads are unwound.
pub fn is_simulating() -> bool {
    Handle::current().is_some()
}

/// Whether schedules are explored. Then a spin that only serves speed may be shorter.
pub fn explores() -> bool {
    Handle::current().is_some_and(|handle| handle.get().policy.explores())
}

/// A wait on a thread of the host.
#[cold]
fn outside() {
    // A simulation has failed. A destructor of its simulated code waits for another thread, which
    // will never act.
    if std::thread::panicking() {
        let seed = explore::seed().map(|seed| format!("schedule {seed}"));
        let what = seed.as_deref().unwrap_or("the simulation");
        eprintln!("manycore-sim: {what} has failed: a destructor waits for a thread that is gone");
        std::process::abort();
    }
    std::thread::yield_now();
}
