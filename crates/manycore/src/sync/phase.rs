//! A thread's activity, for a back end that accounts for its time: the simulator. On every other
//! back end announcing it costs nothing.

/// What a thread is about, other than its work and locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting until other threads have left what they read.
    Quiescence,
    /// Keeping or applying a log.
    Log,
}

/// Does something that belongs to a phase.
#[cfg(not(feature = "sim"))]
#[inline(always)]
pub fn during<R>(_: Phase, f: impl FnOnce() -> R) -> R {
    f()
}

/// Does something that belongs to a phase.
#[cfg(feature = "sim")]
pub fn during<R>(phase: Phase, f: impl FnOnce() -> R) -> R {
    use manycore_sim::thread;
    let phase = match phase {
        Phase::Quiescence => thread::Phase::Quiescence,
        Phase::Log => thread::Phase::Log,
    };
    thread::in_phase(phase, f)
}
