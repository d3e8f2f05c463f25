//! Threads of a simulated program, and their announcements and questions about themselves.
//!
//! ```
//! use manycore_sim::{Machine, Simulation, thread};
//!
//! let report = Simulation::new(&Machine::example()).run(|| {
//!     let squares = thread::parallel(4, |number| {
//!         thread::compute(1000);
//!         number * number
//!     });
//!     squares.iter().sum::<u32>()
//! });
//! assert_eq!(report.unwrap().result, 14);
//! ```

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::Footprint;
use crate::backend::on_host;
pub use crate::engine::Phase;
use crate::engine::{self, Handle, State, Why};

/// Runs `body` on `threads` threads, which begin at the same time on the CPUs of the simulation's
/// placement, and waits for all of them. They have the numbers 0, 1, ... among themselves.
///
/// # Panics
///
/// If the caller is no simulated thread.
pub fn parallel<T>(threads: u32, body: impl Fn(u32) -> T) -> Vec<T> {
    let start = |number| {
        let (cpu, pinned) = caller().get().place(number);
        StartCpu { cpu, pinned }
    };
    parallel_at(&(0..threads).map(start).collect::<Vec<_>>(), body)
}

/// The CPU on which a thread begins, and whether it stays there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartCpu {
    /// The number of the CPU.
    pub cpu: u32,
    /// Whether the thread must not move to an idle CPU.
    pub pinned: bool,
}

/// Like [`parallel`], with a first CPU for each thread, so that some threads stay where they are
/// and others move to idle CPUs.
///
/// # Panics
///
/// If the caller is no simulated thread, or the machine does not have such a CPU.
pub fn parallel_at<T>(starts: &[StartCpu], body: impl Fn(u32) -> T) -> Vec<T> {
    let handle = caller();
    let results: Vec<Cell<Option<T>>> = starts.iter().map(|_| Cell::new(None)).collect();
    let started: Vec<_> = results
        .iter()
        .zip(starts)
        .zip(0..)
        .map(|((result, start), number)| {
            let body = &body;
            let StartCpu { cpu, pinned } = *start;
            assert!((cpu as usize) < handle.get().cpus.len(), "there is no CPU {cpu}");
            // SAFETY: this function does not return before they have ended. If the simulation
            // fails, they are removed before this frame is, because they are younger.
            unsafe { engine::spawn(handle, move || result.set(Some(body(number))), cpu, pinned) }
        })
        .collect();
    started.into_iter().for_each(|thread| wait_for(handle, thread));
    results.into_iter().map(|result| result.into_inner().expect("the thread has ended")).collect()
}

/// Starts a thread, on the next CPU of the simulation's placement.
///
/// # Panics
///
/// If the caller is no simulated thread.
pub fn spawn<T: 'static>(body: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    let handle = caller();
    let result = Rc::new(Cell::new(None));
    let of_thread = result.clone();
    let engine = handle.get();
    let (cpu, pinned) = engine.place(engine.threads.len() as u32);
    // SAFETY: the body is `'static`, so that it borrows nothing that could end before the thread.
    let thread = unsafe { engine::spawn(handle, move || of_thread.set(Some(body())), cpu, pinned) };
    JoinHandle { thread, result, _simulated: PhantomData }
}

/// A thread that was started.
pub struct JoinHandle<T> {
    thread: u32,
    result: Rc<Cell<Option<T>>>,
    _simulated: PhantomData<*mut ()>,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended, and returns its result.
    pub fn join(self) -> T {
        wait_for(caller(), self.thread);
        self.result.take().expect("the thread has ended")
    }
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("JoinHandle").field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// The number of the calling thread in its simulation; the first is 0.
pub fn id() -> u32 {
    caller().get().current
}

/// The CPU on which the calling thread runs.
pub fn cpu() -> u32 {
    caller().get().cpu
}

/// Calls `f`, and returns the lines of simulated memory that the calling thread has read and
/// written meanwhile.
///
/// # Panics
///
/// If the caller is no simulated thread, or is in another `footprint`.
pub fn footprint<R>(f: impl FnOnce() -> R) -> (R, Footprint) {
    let handle = caller();
    let before = on_host(|| handle.get().thread().footprint.replace(Box::default()));
    assert!(before.is_none(), "a footprint in a footprint");
    let result = f();
    let noted = handle.get().thread().footprint.take().expect("set above");
    (result, on_host(|| *noted))
}

/// Computes for this many cycles: time without effects that other threads see.
pub fn compute(cycles: u64) {
    engine::compute(caller(), cycles);
}

/// True time in cycles. Reading it is free, and no simulated program could know it: for
/// measurements.
pub fn now() -> u64 {
    caller().get().clock()
}

/// The number of bytes that the simulated program has allocated and not freed, in whole blocks of
/// the simulated heap. Reading it is free: for measurements.
pub fn heap_bytes() -> usize {
    crate::arena::global::in_use()
}

/// Announces the calling thread's activity from now on; returns its earlier one.
pub fn phase(phase: Phase) -> Phase {
    let engine = caller().get();
    std::mem::replace(&mut engine.threads[engine.current as usize].phase, phase)
}

/// Calls `f` in a phase.
pub fn in_phase<R>(phase: Phase, f: impl FnOnce() -> R) -> R {
    let before = self::phase(phase);
    let result = f();
    self::phase(before);
    result
}

/// Announces progress: a simulation without any for a long time counts as livelocked. [`compute`]
/// announces it by itself.
pub fn progress() {
    caller().get().note_progress();
}

#[track_caller]
fn caller() -> Handle {
    Handle::current().expect("called by a simulated thread")
}

fn wait_for(handle: Handle, thread: u32) {
    handle.turn();
    let engine = handle.get();
    if engine.threads[thread as usize].state == State::Finished {
        return;
    }
    let current = engine.current;
    crate::arena::global::host(|| engine.threads[thread as usize].joiners.push(current));
    engine.leave(State::Asleep(Why::Join(thread)));
    handle.suspend();
}
