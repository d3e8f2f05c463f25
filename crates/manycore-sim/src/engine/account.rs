//! What threads spend their time on.

use crate::machine::Cycles;

/// What a thread is about, as it says itself: decides what its time is counted as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Its work.
    #[default]
    Work,
    /// Acquiring or releasing a lock.
    Lock,
    /// Waiting until other threads have left what they read.
    Quiescence,
    /// Keeping or applying a log.
    Log,
}

/// How time passes.
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
    /// Sleeping because it wants to.
    Idle,
}

/// A thread's time, in cycles. The parts add up to its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Instructions of its work, and accesses that its core's caches satisfy.
    pub compute: Cycles,
    /// Waiting for lines, whatever for.
    pub stall: Cycles,
    /// Acquiring and releasing locks but for the stalls: spinning, pausing, sleeping on a futex.
    pub lock_wait: Cycles,
    /// The same while waiting for a grace period.
    pub quiescence_wait: Cycles,
    /// Keeping or applying a log.
    pub log_work: Cycles,
    /// System calls and context switches.
    pub system: Cycles,
    /// Runnable, without a CPU.
    pub ready: Cycles,
    /// Sleeping because it wanted to, or until other threads had ended.
    pub idle: Cycles,
    /// The same time once more, as far as the thread had a CPU.
    pub cpu: CpuTime,
}

/// CPU time, as a profiler tells it apart by the functions that it finds a program in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub program: Cycles,
    /// In the functions of locks, whatever for: stalls and spinning, too.
    pub locks: Cycles,
    /// In the operating system.
    pub system: Cycles,
}

impl CpuTime {
    fn add(&mut self, phase: Phase, spent: Spent, cycles: Cycles) {
        match (spent, phase) {
            (Spent::Asleep | Spent::Ready | Spent::Idle, _) => {}
            (Spent::System, _) => self.system += cycles,
            (Spent::Waiting, _) | (_, Phase::Lock) => self.locks += cycles,
            (Spent::Computing | Spent::Stalled, _) => self.program += cycles,
        }
    }

    /// All of it.
    pub fn total(&self) -> Cycles {
        self.program + self.locks + self.system
    }
}

impl Breakdown {
    pub(crate) fn add(&mut self, phase: Phase, spent: Spent, cycles: Cycles) {
        let part = match (spent, phase) {
            (Spent::Stalled, _) => &mut self.stall,
            (Spent::System, _) => &mut self.system,
            (Spent::Ready, _) => &mut self.ready,
            (Spent::Idle, _) => &mut self.idle,
            (Spent::Computing, Phase::Work) => &mut self.compute,
            (Spent::Computing, Phase::Log) => &mut self.log_work,
            (Spent::Computing | Spent::Waiting | Spent::Asleep, Phase::Quiescence) => {
                &mut self.quiescence_wait
            }
            // Who waits in the middle of its work waits for a lock, whether it says so or not.
            (Spent::Computing, Phase::Lock) | (Spent::Waiting | Spent::Asleep, _) => {
                &mut self.lock_wait
            }
        };
        *part += cycles;
        self.cpu.add(phase, spent, cycles);
    }

    /// All of it.
    pub fn total(&self) -> Cycles {
        let Self {
            compute, stall, lock_wait, quiescence_wait, log_work, system, ready, idle, ..
        } = self;
        compute + stall + lock_wait + quiescence_wait + log_work + system + ready + idle
    }
}
