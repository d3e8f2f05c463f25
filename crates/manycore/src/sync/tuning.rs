//! The process-wide parameters of spinning locks: set once at start, or measured, and only read afterwards.
//!
//! They live here and not in the locks because an algorithm may not have a `static` of its own, and because the
//! inline form of a lock has no room for them.

use super::atomic::{AtomicU32, Ordering};
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

static ROUNDS: AtomicU32 = AtomicU32::new(30);
static DELAY: AtomicU32 = AtomicU32::new(6);
static GIVE_UP: AtomicU32 = AtomicU32::new(GiveUp::Sleep as u32);
static GIVE_UP_COST: AtomicU32 = AtomicU32::new(0);
static PAUSE_COST: AtomicU32 = AtomicU32::new(0);

// Relaxed throughout: the values are independent of each other and of any other memory, and a thread that
// sees an older value of one spins a little longer or shorter.

/// How often a lock of the InnoDB family tests the lock before it blocks (`innodb_sync_spin_loops`).
pub fn rounds() -> u32 {
    ROUNDS.load(Ordering::Relaxed)
}

/// The longest delay between two tests (`innodb_spin_wait_delay`), in units of [`delay_unit`].
pub fn delay() -> u32 {
    DELAY.load(Ordering::Relaxed)
}

/// Sets the parameters of the InnoDB family.
pub fn set_spin(rounds: u32, delay: u32) {
    ROUNDS.store(rounds, Ordering::Relaxed);
    DELAY.store(delay, Ordering::Relaxed);
}

/// InnoDB's unit of delay, 50 turns of a loop around the CPU's pause instruction, in ticks as measured here.
pub fn delay_unit() -> u32 {
    50 * measured(&PAUSE_COST, || {
        shortest(16, || (0..64).for_each(|_| hint::spin_loop())).div_ceil(64)
    })
}

/// How often a waiter looks again before it queues: for about as long as a short section takes, 1 to 5 us.
pub fn polls() -> u32 {
    100
}

/// How often a waiter that was woken may be overtaken before it insists that the lock is handed to it.
pub fn lenience() -> u32 {
    3
}

/// How a waiter gives up its CPU.
pub fn give_up() -> GiveUp {
    if GIVE_UP.load(Ordering::Relaxed) == GiveUp::Yield as u32 {
        GiveUp::Yield
    } else {
        GiveUp::Sleep
    }
}

/// Chooses how a waiter gives up its CPU; what that costs is measured anew.
pub fn set_give_up(way: GiveUp) {
    GIVE_UP.store(way as u32, Ordering::Relaxed);
    GIVE_UP_COST.store(0, Ordering::Relaxed);
}

/// Gives up the CPU in the chosen way.
pub fn give_up_cpu() {
    match give_up() {
        GiveUp::Sleep => hint::sleep_zero(),
        GiveUp::Yield => hint::yield_now(),
    }
}

/// What giving up the CPU costs here, in ticks: measured at the first call, which takes about half a millisecond.
pub fn give_up_cost() -> u32 {
    measured(&GIVE_UP_COST, || shortest(8, give_up_cpu))
}

fn measured(cell: &AtomicU32, measure: impl FnOnce() -> u32) -> u32 {
    match cell.load(Ordering::Relaxed) {
        0 => {
            let cost = measure().max(1);
            cell.store(cost, Ordering::Relaxed);
            cost
        }
        cost => cost,
    }
}

/// The shortest of several runs: what else the machine does can only make one longer.
fn shortest(runs: u32, f: impl Fn()) -> u32 {
    let once = || {
        let start = clock::now();
        f();
        clock::now().wrapping_sub(start)
    };
    (0..runs).map(|_| once()).min().unwrap_or(1).min(u64::from(u32::MAX)) as u32
}
