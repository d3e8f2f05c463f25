//! Waiting until something is so.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use super::order::Rank;
use super::pin::{might_sleep, pin};
use super::spin::IrqSpin;
use crate::task::sched;
use crate::task::thread::{self, Thread};
use crate::task::{signal, timer};

/// Why a wait has ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// A signal has come.
    Signal,
    /// The deadline has passed.
    Deadline,
}

/// Whom a waiter listens to besides its condition.
#[derive(Clone, Copy, Default)]
pub struct Patience {
    /// Whether a signal ends the wait.
    pub signals: bool,
    /// When the wait ends, in nanoseconds since boot.
    pub deadline: Option<u64>,
}

impl Patience {
    /// Until the condition holds.
    pub const ENDLESS: Self = Self { signals: false, deadline: None };
    /// Or a signal comes.
    pub const SIGNALS: Self = Self { signals: true, deadline: None };
}

/// Threads that wait for an event that will be reported here.
pub struct WaitQueue(IrqSpin<VecDeque<Arc<Thread>>>);

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    /// No thread waits.
    pub const fn new() -> Self {
        Self(IrqSpin::new(Rank::Wait, VecDeque::new()))
    }

    /// Waits until `get` returns a value. `get` must not sleep: it is called pinned. A thread that
    /// changes the result of `get` calls [`wake_all`](Self::wake_all) afterwards.
    #[track_caller]
    pub fn wait<R>(
        &self,
        patience: Patience,
        mut get: impl FnMut() -> Option<R>,
    ) -> Result<R, Early> {
        might_sleep();
        loop {
            let this = thread::current_arc();
            let pin = pin();
            sched::prepare_to_sleep(&this, patience.signals);
            self.0.lock().push_back(this.clone());
            let result = sleep_unless(&this, patience, &mut get);
            drop(pin);
            self.0.lock().retain(|thread| !Arc::ptr_eq(thread, &this));
            if let Some(result) = result {
                return result;
            }
        }
    }

    /// Wakes all.
    pub fn wake_all(&self) {
        loop {
            let Some(thread) = self.0.lock().pop_front() else { return };
            sched::wake(&thread);
        }
    }
}

/// Makes the calling thread sleep once, unless `get` returns a value. It has [prepared to
/// sleep](sched::prepare_to_sleep), and is on a list of threads to be woken. Called pinned.
pub fn sleep_unless<R>(
    this: &Arc<Thread>,
    patience: Patience,
    get: impl FnOnce() -> Option<R>,
) -> Option<Result<R, Early>> {
    let mut result = get().map(Ok);
    if result.is_none() && patience.signals && signal::is_due() {
        result = Some(Err(Early::Signal));
    }
    if result.is_none() && patience.deadline.is_some_and(timer::has_passed) {
        result = Some(Err(Early::Deadline));
    }
    let timer = match (&result, patience.deadline) {
        (None, Some(deadline)) => Some(timer::set(deadline, timer::Target::Thread(this.clone()))),
        _ => None,
    };
    if result.is_some() && sched::stay(this) {
        return result;
    }
    sched::sleep();
    if let Some(timer) = timer {
        timer::withdraw(timer);
    }
    result
}

/// Sleeps until the deadline, in nanoseconds since boot, or a signal.
pub fn sleep_until(deadline: u64) -> Result<(), Early> {
    let queue = WaitQueue::new();
    let patience = Patience { signals: true, deadline: Some(deadline) };
    match queue.wait(patience, || None::<()>) {
        Err(Early::Deadline) => Ok(()),
        other => other,
    }
}
