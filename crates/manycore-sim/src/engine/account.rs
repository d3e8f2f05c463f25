//! Accounts of the threads' time.

use crate::machine::Cycles;

/// A thread's present activity, as the thread itself announces it; its time is counted as that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Its work.
    #[default]
    Work,
    /// Acquiring or releasing a lock.
    Lock,
    /// Waiting for a grace period, until other threads have left their sections.
    Quiescence,
    /// Keeping or applying a log.
    Log,
    /// In a part of the operating system in which threads are not preempted. Only the operating
    /// system sets this.
    System,
}

impl Phase {
    const ALL: [Self; 5] = [Self::Work, Self::Lock, Self::Quiescence, Self::Log, Self::System];
}

/// The kinds of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    /// Instructions, and accesses that the core's caches satisfy.
    Computing,
    /// Waiting for a line.
    Stalled,
    /// Spinning or pausing until another thread does something.
    Waiting,
    /// Sleeping until another thread does something.
    Asleep,
    /// In the operating system, and being switched to.
    System,
    /// Runnable, without a CPU.
    Ready,
    /// Sleeping for a time of its own choice.
    Idle,
}

/// A thread's time, in cycles. The parts add up to its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// The thread's own instructions, and accesses that its core's caches satisfy.
    pub compute: Cycles,
    /// Waiting for lines, for any purpose.
    pub stall: Cycles,
    /// Acquiring and releasing locks on a CPU, except for the stalls: spinning, pausing, and the
    /// instructions of locks.
    pub lock_spin: Cycles,
    /// Sleeping while waiting for a lock.
    pub lock_wait: Cycles,
    /// Spinning or sleeping while waiting for a grace period.
    pub quiescence_wait: Cycles,
    /// Keeping or applying a log.
    pub log_work: Cycles,
    /// System calls and context switches.
    pub system: Cycles,
    /// Runnable, without a CPU.
    pub ready: Cycles,
    /// Sleeping for a time of its own choice, or until other threads had ended.
    pub idle: Cycles,
    /// The same time once more, as far as the thread had a CPU.
    pub cpu: CpuTime,
}

/// CPU time by the functions in which a profiler would find the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub program: Cycles,
    /// In the functions of locks, for any reason, including stalls; also spinning elsewhere, except
    /// for a grace period.
    pub locks: Cycles,
    /// Waiting for a grace period, including stalls.
    pub quiescence: Cycles,
    /// In the operating system.
    pub system: Cycles,
}

impl CpuTime {
    /// The sum of all parts.
    pub fn total(&self) -> Cycles {
        self.program + self.locks + self.quiescence + self.system
    }
}

/// A thread's time: a row for each phase, a column for each kind of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times([[Cycles; WAYS]; Phase::ALL.len()]);

/// The number of kinds.
const WAYS: usize = Spent::Idle as usize + 1;

impl Times {
    #[inline]
    pub(crate) fn add(&mut self, phase: Phase, spent: Spent, cycles: Cycles) {
        self.0[phase as usize][spent as usize] += cycles;
    }

    /// The sums that are reported.
    pub(crate) fn breakdown(&self) -> Breakdown {
        let mut times = Breakdown::default();
        for (phase, ways) in Phase::ALL.into_iter().zip(self.0) {
            let [computing, stalled, waiting, asleep, system, ready, idle] = ways;
            times.stall += stalled;
            times.system += system;
            times.ready += ready;
            times.idle += idle;
            *match phase {
                Phase::Work => &mut times.compute,
                Phase::Lock => &mut times.lock_spin,
                Phase::Quiescence => &mut times.quiescence_wait,
                Phase::Log => &mut times.log_work,
                Phase::System => &mut times.system,
            } += computing;
            match phase {
                Phase::Quiescence => times.quiescence_wait += waiting + asleep,
                Phase::System => times.system += waiting,
                // A thread that waits in the middle of its work counts as waiting for a lock,
                // whether it announces that or not.
                Phase::Work | Phase::Lock | Phase::Log => {
                    times.lock_spin += waiting;
                    times.lock_wait += asleep;
                }
            }
            match phase {
                Phase::Lock => times.cpu.locks += computing + stalled + waiting,
                Phase::Quiescence => times.cpu.quiescence += computing + stalled + waiting,
                Phase::Work | Phase::Log => {
                    times.cpu.program += computing + stalled;
                    times.cpu.locks += waiting;
                }
                Phase::System => times.cpu.system += computing + stalled + waiting,
            }
            times.cpu.system += system;
        }
        times
    }
}

impl Breakdown {
    /// The sum of all parts.
    pub fn total(&self) -> Cycles {
        let Self { compute, stall, lock_spin, lock_wait, quiescence_wait, log_work, .. } = self;
        let waiting = lock_spin + lock_wait + quiescence_wait;
        compute + stall + waiting + log_work + self.system + self.ready + self.idle
    }
}
