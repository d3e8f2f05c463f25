//! The process-wide parameters of spinning locks: set once at start, or measured, and only read
//! afterwards.
//!
//! They live here and not in the locks because an algorithm may not have a `static` of its own, and
//! because the inline form of a lock has no room for them.

use super::backend::global::{Global, shortened};
use super::of_process::OfProcess;
use super::{clock, hint};

/// How a waiter that has spun for long enough gives up its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum GiveUp {
    /// `sleep(0)`, as published. On today's Linux it costs the timer slack: 50 us and more.
    Sleep = 0,
    /// `sched_yield`: a fraction of a microsecond when nothing else wants the CPU.
    Yield = 1,
}

static ROUNDS: Global = Global::new(OfProcess::Rounds, 30);
static DELAY: Global = Global::new(OfProcess::Delay, 6);
static GIVE_UP: Global = Global::new(OfProcess::GiveUp, GiveUp::Sleep as u32);
static GIVE_UP_COST: Global = Global::new(OfProcess::GiveUpCost, 0);
static SPIN_LIMIT: Global = Global::new(OfProcess::SpinLimit, 0);
static PAUSE_COST: Global = Global::new(OfProcess::PauseCost, 0);
static OVERSUBSCRIPTION: Global = Global::new(OfProcess::Oversubscription, 0);
static LAST_PARK: Global = Global::new(OfProcess::LastPark, 0);
static FEW_CPUS: Global = Global::new(OfProcess::FewCpus, 8);

/// How often a lock of the InnoDB family tests the lock before it blocks
/// (`innodb_sync_spin_loops`).
pub fn rounds() -> u32 {
    shortened(ROUNDS.get(), 2)
}

/// The longest delay between two tests (`innodb_spin_wait_delay`), in units of [`delay_unit`].
pub fn delay() -> u32 {
    DELAY.get()
}

/// Sets the parameters of the InnoDB family.
pub fn set_spin(rounds: u32, delay: u32) {
    ROUNDS.set(rounds);
    DELAY.set(delay);
}

/// InnoDB's unit of delay, 50 iterations of a loop around the CPU's pause instruction, in ticks as
/// measured here.
pub fn delay_unit() -> u32 {
    50 * pause_cost()
}

/// The CPU's pause instruction, in ticks as measured here.
pub fn pause_cost() -> u32 {
    measured(&PAUSE_COST, || shortest(16, || (0..64).for_each(|_| hint::pause())).div_ceil(64))
}

/// For a lock with a usual number of rounds of its own: how often it tests before it blocks.
pub fn rounds_of(usual: u32) -> u32 {
    shortened(usual, 1)
}

/// How often a waiter polls again before it queues: for about as long as a short section takes, 1
/// to 5 us.
pub fn polls() -> u32 {
    shortened(100, 1)
}

/// How long the waiter of a queue lock spins before it sleeps, in ticks: about the cost of a sleep
/// and a wake-up, 3 to 40 us.
pub fn spin_limit() -> u64 {
    spin_limit_or(|| 16 * u64::from(delay_unit()))
}

/// The same for a thread that has a usual limit of its own.
pub fn spin_limit_or(usual: impl FnOnce() -> u64) -> u64 {
    match SPIN_LIMIT.get() {
        0 => usual(),
        limit => u64::from(limit),
    }
}

/// Sets [`spin_limit`], and how long RLU's writers poll for a grace period; 0 for the usual ones.
/// Where threads are never more than CPUs, the longer the better: a waiter that sleeps makes all
/// behind it wait until it is awake.
pub fn set_spin_limit(ticks: u32) {
    SPIN_LIMIT.set(ticks);
}

/// How often a waiter that was woken may be overtaken before it insists that the lock is handed to
/// it.
pub fn lenience() -> u32 {
    shortened(3, 1)
}

/// How often readers of `adaptive-rw` meet before they leave marks.
pub fn meetings() -> u32 {
    shortened(15, 0)
}

/// How often in a row a lock that sets waiters aside is handed over among the others, before the
/// oldest waiter that was set aside gets it.
pub fn passes() -> u32 {
    shortened(1000, 1)
}

/// The number of passes over a list with nothing to do for an entry, after which the entry is
/// removed.
pub fn idle_passes() -> u32 {
    shortened(256, 0)
}

/// How many slots are used of an array that has more of them only to keep CPUs apart.
#[inline]
pub fn places(there_are: usize) -> usize {
    shortened(there_are as u32, 3) as usize
}

/// On how many CPUs waiters of `adaptive` do without a queue.
pub fn few_cpus() -> u32 {
    shortened(FEW_CPUS.get(), 0)
}

/// Sets [`few_cpus`]: 0 for a queue everywhere.
pub fn set_few_cpus(cpus: u32) {
    FEW_CPUS.set(cpus);
}

/// When there was a sign that there are more runnable threads than CPUs, as `adaptive` notes it.
pub(crate) fn oversubscription() -> u32 {
    OVERSUBSCRIPTION.get()
}

/// Notes it.
pub(crate) fn set_oversubscription(state: u32) {
    OVERSUBSCRIPTION.set(state);
}

/// When a thread last parked voluntarily, as `adaptive` notes it.
pub(crate) fn last_park() -> u32 {
    LAST_PARK.get()
}

/// Notes it.
pub(crate) fn set_last_park(state: u32) {
    LAST_PARK.set(state);
}

/// How a waiter gives up its CPU.
pub fn give_up() -> GiveUp {
    if GIVE_UP.get() == GiveUp::Yield as u32 { GiveUp::Yield } else { GiveUp::Sleep }
}

/// Chooses how a waiter gives up its CPU; the cost of that is measured again.
pub fn set_give_up(way: GiveUp) {
    GIVE_UP.set(way as u32);
    GIVE_UP_COST.set(0);
}

/// Gives up the CPU in the chosen way.
pub fn give_up_cpu() {
    match give_up() {
        GiveUp::Sleep => hint::sleep_zero(),
        GiveUp::Yield => hint::yield_now(),
    }
}

/// The cost of giving up the CPU here, in ticks: measured at the first call, which takes about half
/// a millisecond.
pub fn give_up_cost() -> u32 {
    measured(&GIVE_UP_COST, || shortest(8, give_up_cpu))
}

fn measured(cell: &Global, measure: impl FnOnce() -> u32) -> u32 {
    match cell.get() {
        0 => {
            let cost = measure().max(1);
            cell.set(cost);
            cost
        }
        cost => cost,
    }
}

/// The shortest of several runs, because other activity of the machine can only make a run longer.
fn shortest(runs: u32, f: impl Fn()) -> u32 {
    let once = || {
        let start = clock::now();
        f();
        clock::now().wrapping_sub(start)
    };
    (0..runs).map(|_| once()).min().unwrap_or(1).min(u64::from(u32::MAX)) as u32
}
