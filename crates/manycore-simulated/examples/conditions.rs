//! Condition variables on simulated machines: the cost of a broadcast, by its way of waking.
//!
//! ```console
//! $ cargo run --release -p manycore-simulated --example conditions [MACHINE]...
//! ```
//!
//! There are two programs. In the first, one thread wakes 8 to 64 others. All of them have to wait
//! again before it does so again. In the second, equal numbers of threads put something into one
//! slot and take it out. The mutex is `adaptive`. There are two ways to wake:
//!
//! - `word`: all waiters sleep on one word, and a broadcast wakes them by one call. Rust's std does
//!   so, and also glibc, apart from its measures against stolen signals.
//! - `queue`: the condition variable of this library. Each waiter polls and sleeps on a word of its
//!   own; a broadcast wakes eight waiters, and each of these wakes another one.
//!
//! Prints rounds a second; every figure is simulated.

use std::cell::Cell;

use manycore_sim::{Machine, Simulation, model, thread};
use manycore_simulated::lock::{Adaptive, PlainLock, WaitQueue, Waiter};
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};
use manycore_simulated::sync::futex;

const MACHINES: [&str; 3] = ["epyc-2x96-like", "graviton-64-like", "xeon-e5-2699v4-2x22-like"];
const NANOSECONDS: f64 = 20e6;

trait Condition {
    fn new() -> Self;
    /// Releases the mutex, waits, and acquires it again.
    ///
    /// # Safety
    ///
    /// This thread has acquired the mutex.
    unsafe fn wait(&self, mutex: &Adaptive);
    fn signal(&self);
    fn broadcast(&self);
}

/// `word`.
struct Word(AtomicU32);

impl Condition for Word {
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    unsafe fn wait(&self, mutex: &Adaptive) {
        let seen = self.0.load(Ordering::Relaxed); // Relaxed, throughout: the mutex orders
        // SAFETY: this thread has acquired the mutex (contract of this function).
        unsafe { mutex.release() };
        futex::wait(&self.0, seen, None);
        mutex.acquire();
    }

    fn signal(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        futex::wake(&raw const self.0, 1);
    }

    fn broadcast(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        futex::wake(&raw const self.0, u32::MAX);
    }
}

/// `queue`.
struct Queue(WaitQueue);

impl Condition for Queue {
    fn new() -> Self {
        Self(WaitQueue::new())
    }

    unsafe fn wait(&self, mutex: &Adaptive) {
        let waiter = Waiter::new();
        // SAFETY: this thread has acquired the mutex (contract of this function); the waiter is
        // here until it was signalled.
        unsafe {
            self.0.enqueue(&waiter);
            mutex.release();
        }
        waiter.park(None);
        // SAFETY: this thread's, and it was signalled.
        unsafe { waiter.wake_next() };
        mutex.acquire();
    }

    fn signal(&self) {
        self.0.signal();
    }

    fn broadcast(&self) {
        self.0.broadcast();
    }
}

/// What the threads share, and change with the mutex held.
struct Shared<C> {
    mutex: Adaptive,
    go_on: C,
    is_done: C,
    generation: Cell<u64>,
    arrived: Cell<u32>,
    is_full: Cell<bool>,
    stops: Cell<bool>,
    done: Cell<u64>,
}

impl<C: Condition> Shared<C> {
    fn new() -> Self {
        Self {
            mutex: Adaptive::new(),
            go_on: C::new(),
            is_done: C::new(),
            generation: Cell::new(0),
            arrived: Cell::new(0),
            is_full: Cell::new(false),
            stops: Cell::new(false),
            done: Cell::new(0),
        }
    }

    /// Whether the time is over; then all are told.
    fn is_over(&self, cycles: u64) -> bool {
        if thread::now() >= cycles && !self.stops.replace(true) {
            self.go_on.broadcast();
            self.is_done.broadcast();
        }
        self.stops.get()
    }

    /// # Safety
    ///
    /// This thread has acquired the mutex; it has it afterwards, too.
    unsafe fn broadcast(&self, me: u32, crowd: u32, cycles: u64) {
        let mut seen = 0;
        while !self.is_over(cycles) {
            if me == crowd {
                while self.arrived.get() < crowd && !self.stops.get() {
                    // SAFETY: acquired (contract of this function), and again by each wait.
                    unsafe { self.is_done.wait(&self.mutex) };
                }
                self.arrived.set(0);
                self.generation.set(self.generation.get() + 1);
                self.done.set(self.done.get() + 1);
                self.go_on.broadcast();
                continue;
            }
            self.arrived.set(self.arrived.get() + 1);
            if self.arrived.get() == crowd {
                self.is_done.signal();
            }
            while self.generation.get() == seen && !self.stops.get() {
                // SAFETY: acquired (contract of this function), and again by each wait.
                unsafe { self.go_on.wait(&self.mutex) };
            }
            seen = self.generation.get();
        }
    }

    /// # Safety
    ///
    /// This thread has acquired the mutex; it has it afterwards, too.
    unsafe fn slot(&self, fills: bool, cycles: u64) {
        let (mine, others) =
            if fills { (&self.is_done, &self.go_on) } else { (&self.go_on, &self.is_done) };
        while !self.is_over(cycles) {
            while self.is_full.get() == fills && !self.stops.get() {
                // SAFETY: this thread holds the mutex: it enters with it (contract of this
                // function), and each wait and each round's end acquire it again.
                unsafe { mine.wait(&self.mutex) };
            }
            self.is_full.set(fills);
            self.done.set(self.done.get() + u64::from(fills));
            others.signal();
            // SAFETY: this thread holds the mutex: it enters with it (contract of this function),
            // and each round acquires it again at its end.
            unsafe { self.mutex.release() };
            self.mutex.acquire();
        }
    }
}

/// Rounds in a second: of broadcasts to `count` threads, or of `count` threads on either side of
/// the slot.
fn rounds<C: Condition>(machine: &Machine, is_slot: bool, count: u32) -> f64 {
    let cycles = (NANOSECONDS * machine.core.ghz) as u64;
    let threads = if is_slot { 2 * count } else { count + 1 };
    let program = move || {
        let shared = Box::new(Shared::<C>::new());
        thread::parallel(threads, |me| {
            shared.mutex.acquire();
            match is_slot {
                // SAFETY: this thread has acquired the mutex above.
                true => unsafe { shared.slot(me < count, cycles) },
                // SAFETY: this thread has acquired the mutex above.
                false => unsafe { shared.broadcast(me, count, cycles) },
            }
            // SAFETY: `slot` and `broadcast` return with the mutex acquired.
            unsafe { shared.mutex.release() };
        });
        shared.done.get()
    };
    let has_cpus = threads <= machine.topology.cpus();
    let report = Simulation::new(machine).pinned(has_cpus).run(program);
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    report.result as f64 / (report.cycles as f64 / machine.core.ghz) * 1e9
}

fn main() {
    let asked: Vec<_> = std::env::args().skip(1).collect();
    let machines = if asked.is_empty() { MACHINES.map(String::from).to_vec() } else { asked };
    for name in machines {
        let machine = model::find(&name).unwrap_or_else(|problem| panic!("{problem}")).machine();
        println!("{name} (simulated): rounds a second, and over `word`");
        for (what, is_slot, counts) in
            [("broadcast", false, [2, 8, 32, 64]), ("slot", true, [1, 2, 8, 32])]
        {
            for count in counts {
                let word = rounds::<Word>(&machine, is_slot, count);
                let queue = rounds::<Queue>(&machine, is_slot, count);
                println!(
                    "{what:9} {count:3}   word {word:8.0}   queue {queue:8.0} {:5.2}x",
                    queue / word
                );
            }
        }
    }
}
