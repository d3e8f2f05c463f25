//! What a kernel shares between calls, whatever it is.

/// What one thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    OpenAndClose,
    Stat,
    Link,
}

/// What a kernel shares between calls. `work` computes that part of a call.
pub(super) trait Shared {
    /// Whether there is something for this call.
    fn knows(&self, part: Part) -> bool;

    fn open_and_close(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn stat(&self, _links: bool, _work: &dyn Fn(f64)) {}

    fn link(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    /// Whether all is as it was before, when all threads have ended.
    fn verify(&self) -> Result<(), String>;
}
