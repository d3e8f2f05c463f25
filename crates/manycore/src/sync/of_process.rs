//! What is one for the whole process, by name.

/// Distinguishes the objects of which a process has one, where the process is not the host's: the
/// simulator has a word for each.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
#[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "elsewhere each has a static"))]
pub enum OfProcess {
    /// [`tuning::rounds`](super::tuning::rounds)
    Rounds,
    /// [`tuning::delay`](super::tuning::delay)
    Delay,
    /// [`tuning::give_up`](super::tuning::give_up)
    GiveUp,
    /// [`tuning::give_up_cost`](super::tuning::give_up_cost)
    GiveUpCost,
    /// [`tuning::pause_cost`](super::tuning::pause_cost)
    PauseCost,
    /// [`tuning::spin_limit`](super::tuning::spin_limit)
    SpinLimit,
    /// [`tuning::few_cpus`](super::tuning::few_cpus)
    FewCpus,
    /// When `adaptive` last saw a sign of oversubscription.
    Oversubscription,
    /// When a thread last parked voluntarily in `adaptive`.
    LastPark,
    /// [`table`](super::table)
    Slots,
    /// The buckets of `parking-lot`.
    Buckets,
    /// The marks of readers of `adaptive-rw`.
    Marks,
    /// And which lines of them were ever used.
    UsedLines,
}
