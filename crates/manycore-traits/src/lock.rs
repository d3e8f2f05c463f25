//! Mutual exclusion: a lock's operations, and its description.

/// A mutual-exclusion lock without the data it protects.
///
/// Queue locks keep one record a waiter, its *node*, in which a thread spins and through which it
/// is handed the lock. The caller provides the node, so that a lock never allocates. Locks without
/// a queue use `()`.
///
/// # Safety
///
/// An implementation guarantees that between a `lock` (or successful `try_lock`) and its `unlock`
/// no other acquisition of the same lock returns, and that everything before an `unlock` happens
/// before the return of the next acquisition.
pub unsafe trait RawLock: Send + Sync {
    /// One thread's record while it waits for or holds the lock. One that other threads reach is
    /// not `Unpin`: otherwise the `&mut` by which its owner passes it on would forbid them to.
    type Node: Default;

    /// A lock that no thread holds.
    fn new() -> Self
    where
        Self: Sized;

    /// Acquires the lock, waiting for as long as that takes.
    ///
    /// # Safety
    ///
    /// `node` does not move and has no other use until the `unlock` to which it is passed has
    /// returned.
    unsafe fn lock(&self, node: &mut Self::Node);

    /// Acquires the lock if that needs no wait; returns whether it did.
    ///
    /// # Safety
    ///
    /// As for [`lock`](Self::lock), if it returns true.
    unsafe fn try_lock(&self, node: &mut Self::Node) -> bool;

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The lock is held, and was acquired with this `node`.
    unsafe fn unlock(&self, node: &mut Self::Node);
}

/// In which order waiting threads are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Strictly in order of arrival. With more runnable threads than CPUs each hand-off may have to
    /// wait until the scheduler runs the next thread in order.
    Fifo,
    /// In a queue, but not strictly in order of arrival, such as node of memory by node of memory.
    /// Each release still hands the lock to one thread, which may not be running.
    Queued,
    /// The thread that tries at the right moment; a running thread may overtake a sleeping one.
    Barging,
}

impl Order {
    /// Whether a release chooses the next owner, and no thread may overtake: inherently slow with
    /// more running threads than CPUs.
    #[must_use]
    pub const fn hands_over(self) -> bool {
        !matches!(self, Self::Barging)
    }
}

/// What a lock says about itself: a row of `manycore locks`.
#[derive(Clone, Copy, Debug)]
pub struct LockInfo {
    /// The name by which the command line and reports call it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// The order of service.
    pub order: Order,
    /// Whether a waiter ever gives up its CPU. Where it does not, one preempted thread stops all
    /// for a time slice.
    pub blocks: bool,
}
