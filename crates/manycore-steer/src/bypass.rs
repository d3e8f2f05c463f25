//! When to leave calls in place: measured, for each lane.
//!
//! # Idea
//!
//! A moved call costs a hand-over, and saves what the caller's caches would have lost. Which is more depends on the machine, on
//! what else runs there and on the call; so both ways are timed, and the faster one is the lane's habit.
//!
//! A lane begins with the habit of its process, and that begins in place. Of [`PERIOD`] calls on a lane [`BURST`] in a row go the
//! other way: the first ones pay for waking who executes them. One of [`SAMPLE`] calls in place is timed, and all that are
//! moved. The habit changes when the other way is faster by a quarter.
//!
//! Calls that wait for somebody take as long as that somebody does. What is compared is therefore the time that a quarter of the
//! calls stay below, which is followed step by step: a third as far up as down.
//!
//! # Cost
//!
//! In place: a counter, and two looks at the clock for one call of [`SAMPLE`]. With hand-overs of 20 us, as measured on a machine
//! with two busy CPUs, the bursts add 20 ns to a call on the average.
//!
//! # When not to use it
//!
//! Where a program's own time counts, and not that of its calls: that caches stay warm for the program is not seen here.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use manycore::sync::{clock, cpu};

/// After so many calls the other way is tried.
pub const PERIOD: u32 = 8192;
/// So many calls in a row.
pub const BURST: u32 = 8;
/// One of so many calls in place is timed: a prime, so that programs which send and receive in turns have both timed.
pub const SAMPLE: u32 = 61;
/// One of so many lanes begins with a trial: short connections never come to [`PERIOD`] calls.
const LANES: u32 = 1024;

/// Relaxed throughout: measurements, which may be lost where threads meet.
const ORDER: Ordering = Ordering::Relaxed;

/// What calls take, in ticks: a quarter of them takes less. 0 is unknown.
#[derive(Debug, Default)]
struct Quartile(AtomicU32);

impl Quartile {
    fn add(&self, ticks: u64) {
        let sample = u32::try_from(ticks).unwrap_or(u32::MAX / 2).clamp(1, u32::MAX / 2);
        let old = self.0.load(ORDER);
        let step = (old / 16).max(3);
        let new = match old {
            0 => sample,
            _ if sample < old => (old - step.min(old)).max(sample),
            _ => (old + step / 3).min(sample),
        };
        self.0.store(new.max(1), ORDER);
    }
}

/// What calls take in both ways, and which is the habit.
#[derive(Debug, Default)]
pub struct Habit {
    moved: Quartile,
    in_place: Quartile,
    calls: AtomicU32,
    is_moving: AtomicBool,
}

/// The habit of the process: what new lanes begin with.
static PROCESS: Habit = Habit {
    moved: Quartile(AtomicU32::new(0)),
    in_place: Quartile(AtomicU32::new(0)),
    calls: AtomicU32::new(0),
    is_moving: AtomicBool::new(false),
};

impl Habit {
    /// A new lane's, with this number among the lanes.
    pub fn begin(&self, _number: u32) {
        let opened = PROCESS.calls.fetch_add(1, ORDER);
        self.calls.store(if opened % LANES == LANES - 1 { 0 } else { BURST }, ORDER);
        self.is_moving.store(PROCESS.is_moving.load(ORDER), ORDER);
        self.moved.0.store(0, ORDER);
        self.in_place.0.store(0, ORDER);
    }

    /// Counts a call. If it is to stay in place: when it began, or 0 if it is none of those that are timed.
    #[inline]
    pub fn stay(&self) -> Option<u64> {
        let call = self.calls.fetch_add(1, ORDER);
        let is_trial = call % PERIOD < BURST;
        // One CPU: whoever executes the call elsewhere has to wait for the same.
        if self.is_moving.load(ORDER) != is_trial && cpu::count() > 1 {
            return None;
        }
        let is_timed = is_trial || call.is_multiple_of(SAMPLE);
        Some(if is_timed { clock::now() } else { 0 })
    }

    /// A call in place is over that began then.
    pub fn stayed(&self, began: u64) {
        if began != 0 {
            let ticks = clock::now().wrapping_sub(began);
            PROCESS.in_place.add(ticks);
            self.in_place.add(ticks);
            self.decide();
        }
    }

    /// A moved call is over that began then.
    pub fn moved(&self, began: u64) {
        let ticks = clock::now().wrapping_sub(began);
        PROCESS.moved.add(ticks);
        self.moved.add(ticks);
        self.decide();
    }

    fn decide(&self) {
        PROCESS.prefer();
        self.prefer();
    }

    /// Changes the habit if the other way is faster by a quarter.
    fn prefer(&self) {
        let (moved, in_place) =
            (u64::from(self.moved.0.load(ORDER)), u64::from(self.in_place.0.load(ORDER)));
        if moved == 0 || in_place == 0 {
            return;
        }
        if moved * 5 < in_place * 4 {
            self.is_moving.store(true, ORDER);
        } else if in_place * 5 < moved * 4 {
            self.is_moving.store(false, ORDER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has calls take so long, one way and the other; says how many of the last thousands were moved.
    fn moved_of(moved: u64, in_place: u64, calls: u32) -> u32 {
        let habit = Habit { calls: AtomicU32::new(BURST), ..Habit::default() };
        let mut count = 0;
        for call in 0..calls {
            let stays = habit.stay();
            // Some wait, or have to wake somebody.
            let slow = if call % 5 == 0 { 50_000 } else { 0 };
            match stays {
                None => habit.moved.add(moved + slow),
                Some(0) => {}
                Some(_) => habit.in_place.add(in_place + slow),
            }
            habit.prefer();
            count += u32::from(stays.is_none() && call >= calls / 2);
        }
        count
    }

    #[test]
    fn a_lane_takes_to_what_is_faster() {
        if cpu::count() == 1 {
            return assert_eq!(moved_of(1, 2, PERIOD), 0);
        }
        let calls = 20 * PERIOD;
        assert_eq!(moved_of(20_000, 4_000, calls), 10 * BURST, "trials only");
        assert_eq!(moved_of(2_000, 4_000, calls), calls / 2 - 10 * BURST, "all but trials");
        assert_eq!(moved_of(4_100, 4_000, calls), 10 * BURST, "not worth a change");
    }

    #[test]
    fn a_quarter_is_below() {
        let quartile = Quartile::default();
        for sample in 0..100_000u64 {
            quartile.add(1000 + sample.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1000);
        }
        let found = quartile.0.load(ORDER);
        assert!((1150..1350).contains(&found), "{found}");
    }
}
