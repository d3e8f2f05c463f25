//! Who goes on next.

/// A thread that could go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    pub(crate) thread: u32,
    /// By the passing of time, rather than by what others have done.
    pub(crate) timer: bool,
}

/// Chooses.
pub(crate) trait Scheduler {
    /// The place of the thread that goes on, among those that could.
    fn choose(&mut self, choices: &[Choice]) -> usize;

    /// A thread has nothing to do for now.
    fn yielded(&mut self, thread: u32);
}
