//! The interface of the data that a kernel's calls share.

/// A thread's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    OpenAndClose,
    Stat,
    Link,
    Semaphore,
    StatName,
}

/// The data that a kernel's calls share. `work` computes that part of a call.
pub(super) trait Shared {
    /// Whether this call is implemented.
    fn knows(&self, part: Part) -> bool;

    fn open_and_close(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn stat(&self, _links: bool, _work: &dyn Fn(f64)) {}

    fn link(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn semop(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn stat_name(&self, _work: &dyn Fn(f64)) {}

    /// Checks that the state after the end of all threads is that of before.
    fn verify(&self) -> Result<(), String>;
}
