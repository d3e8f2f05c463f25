//! What the library that interposes system calls calls.

use crate::call::{Answer, Call, Kind, Reason};
use crate::settings::Settings;

/// Where the calls on one open descriptor are executed: chosen when it is opened. All zero is nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lane {
    /// Its number plus one, among the lanes of the process.
    pub(crate) number: u32,
}

impl Lane {
    /// Nowhere: calls are executed in place.
    pub const NONE: Self = Self { number: 0 };
}

/// A moved call of one thread, while that waits. Zeroed before [`Steer::perform`], which leaves it so unless it is unwound
/// or jumped out of; then [`Steer::abandon`] ends the call.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Flight {
    /// The number plus one of the place where call and answer are.
    pub(crate) slot: u32,
}

/// When a call in place began, in ticks; 0 if it is not measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer(pub(crate) u64);

/// All lanes and workers of a process. One, in a `static`.
#[derive(Debug)]
pub struct Steer(());

impl Steer {
    /// Nothing is started: all calls are executed in place.
    pub const fn new() -> Self {
        Self(())
    }

    /// Takes the settings. Threads are made at the first calls. Once in a process, before anything else.
    pub fn start(&'static self, _settings: &Settings) {}

    /// Chooses where calls on a new descriptor are executed; [`Lane::NONE`] if there is no room. No system call, no thread.
    pub fn open(&'static self) -> Lane {
        Lane::NONE
    }

    /// No call will come on this lane any more, and none is in flight on it.
    pub fn close(&'static self, _lane: Lane) {}

    /// Has the call executed where the lane says, and waits for the answer; or says why it is to be executed in place.
    ///
    /// SIGPIPE that the call brought about has been raised in the caller when this returns.
    ///
    /// # Safety
    ///
    /// The call may be executed by any thread of the process: what its arguments point to is valid until this returns, or
    /// until [`abandon`](Self::abandon) has returned if this is left without returning.
    pub unsafe fn perform(
        &'static self,
        _lane: &Lane,
        _call: &Call,
        _kind: Kind,
        _flight: &mut Flight,
    ) -> Result<Answer, Reason> {
        Err(Reason::Off)
    }

    /// Interrupts the call in flight, waits until it is over, and returns its answer; none if there is no call in flight.
    /// For a thread that was cancelled in [`perform`](Self::perform), or jumped out of a handler that interrupted it.
    pub fn abandon(&'static self, _flight: &mut Flight) -> Option<Answer> {
        None
    }

    /// Begins to measure a call that is about to be executed in place, if it is one of the few that are measured.
    pub fn timer(&'static self, _lane: &Lane) -> Timer {
        Timer(0)
    }

    /// The call in place is over.
    pub fn stop(&'static self, _lane: &Lane, timer: Timer) {
        let Timer(_began) = timer;
    }

    /// In the child of a fork, by its one thread, before any other call here: the parent's threads are not there. Lanes stay
    /// valid in both; the child's get threads of their own at their first calls. Waits for nobody.
    pub fn forked(&'static self) {}

    /// All threads made here end; calls are executed in place from now on. Does not wait.
    pub fn retire(&'static self) {}

    /// How many threads made here live now.
    pub fn threads(&'static self) -> u32 {
        0
    }
}

impl Default for Steer {
    fn default() -> Self {
        Self::new()
    }
}
