//! Waiting for one of several files.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

use super::file::File;
use crate::call::errno::Result;
use crate::sync::wait::{Early, Patience, WaitQueue};

/// It can be read.
pub const READABLE: u32 = 1;
/// It can be written.
pub const WRITABLE: u32 = 4;
/// An error is pending.
pub const ERROR: u32 = 8;
/// The other side is gone.
pub const HUNG_UP: u32 = 16;
/// The descriptor is not open.
pub const NOT_OPEN: u32 = 32;

/// All polling threads wait here, and each change wakes all of them. That is enough for a shell,
/// and documented.
static POLLERS: WaitQueue = WaitQueue::new();
/// The number of polling threads, so that changes write no common line while there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Reports that some file can be read or written that could not before.
pub fn something_is_ready() {
    // SeqCst: after the change; partner of the count in `wait`, which comes before the look. So
    // either that one is seen here, or it sees the change. Relaxed: after the fence
    fence(Ordering::SeqCst);
    if COUNT.load(Ordering::Relaxed) > 0 {
        POLLERS.wake_all();
    }
}

/// What is asked of a file.
pub struct Asked {
    /// The file; none if the descriptor is not open.
    pub file: Option<Arc<File>>,
    /// The bits of interest.
    pub events: u32,
}

impl Asked {
    fn answer(&self) -> u32 {
        match &self.file {
            None => NOT_OPEN,
            Some(file) => file.object.readiness() & (self.events | ERROR | HUNG_UP),
        }
    }
}

/// Waits until one of the files is ready, or the deadline passes; returns the state of each.
pub fn wait(asked: &[Asked], deadline: Option<u64>) -> Result<Vec<u32>> {
    let answers = || -> Option<Vec<u32>> {
        let answers: Vec<u32> = asked.iter().map(Asked::answer).collect();
        answers.iter().any(|&answer| answer != 0).then_some(answers)
    };
    COUNT.fetch_add(1, Ordering::SeqCst); // SeqCst: partner of the fence in `something_is_ready`
    let result = POLLERS.wait(Patience { signals: true, deadline }, answers);
    COUNT.fetch_sub(1, Ordering::Relaxed); // Relaxed: a wake-up too many does no harm
    match result {
        Ok(answers) => Ok(answers),
        Err(Early::Deadline) => Ok(asked.iter().map(Asked::answer).collect()),
        Err(early) => Err(early.into()),
    }
}
