//! Recording of calls: thread, operation, times and result.
//!
//! Moments are drawn from one counter, before the call and after the return. So, on any machine, a
//! call whose moment is later than another call's return happens after that call: a
//! read-modify-write of one word orders everything before it before everything after the next one.
//! A time-stamp counter does not ensure that: a store may become visible after its CPU has read the
//! time. In a simulation, drawing a moment is no step, and takes no time.

use std::sync::atomic::{AtomicU64, Ordering};

/// One operation, from its call to its return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<O, R> {
    /// The thread that called.
    pub thread: u32,
    /// What.
    pub operation: O,
    /// What it returned.
    pub result: R,
    /// A moment before.
    pub called: u64,
    /// A moment after; later than `called`.
    pub returned: u64,
}

/// The counter from which the threads of one run draw their moments.
#[derive(Debug, Default)]
pub struct Clock {
    next: AtomicU64,
}

impl Clock {
    /// Before the first moment.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next moment: later than all that were drawn before.
    pub fn moment(&self) -> u64 {
        // AcqRel: partner of itself, see the page.
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// A record for a thread.
    pub fn log<O, R>(&self, thread: u32) -> Log<'_, O, R> {
        Log { clock: self, thread, calls: Vec::new() }
    }
}

/// What one thread did.
#[derive(Debug)]
pub struct Log<'c, O, R> {
    clock: &'c Clock,
    thread: u32,
    calls: Vec<Call<O, R>>,
}

impl<O, R> Log<'_, O, R> {
    /// Does an operation, and records it.
    pub fn call(&mut self, operation: O, does: impl FnOnce(&O) -> R) {
        let called = self.clock.moment();
        let result = does(&operation);
        let returned = self.clock.moment();
        self.calls.push(Call { thread: self.thread, operation, result, called, returned });
    }

    /// Runs a function that answers several questions at once, and records each question as an
    /// operation of its own.
    pub fn call_all(&mut self, does: impl FnOnce() -> Vec<(O, R)>) {
        let called = self.clock.moment();
        let answers = does();
        let (thread, returned) = (self.thread, self.clock.moment());
        let call = |(operation, result)| Call { thread, operation, result, called, returned };
        self.calls.extend(answers.into_iter().map(call));
    }

    /// What was recorded, in order.
    pub fn into_calls(self) -> Vec<Call<O, R>> {
        self.calls
    }
}
