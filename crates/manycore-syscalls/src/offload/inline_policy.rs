//! When to leave calls in place: measured, for each route.
//!
//! # Idea
//!
//! A moved call costs a hand-over, and saves the loss from the caller's caches. Which is more
//! depends on the machine, on other load and on the call. So both ways are timed, and the faster
//! one becomes the route's preference.
//!
//! A route begins with the preference shared by its process and all processes forked from the same
//! one, which at first is in place. Out of [`PERIOD`] calls on a route, [`BURST`] in a row go the
//! other way, because the first ones pay for waking the executing thread. The first calls on some
//! routes do so, too, more often in the beginning, because short connections never reach [`PERIOD`]
//! calls. Out of [`SAMPLE`] calls in place one is timed. All moved calls are timed, except those
//! that have a thread made; the route learns from each of them, and the shared preference from one
//! out of [`SAMPLE`]. The preference changes when the other way is faster by a quarter.
//!
//! A call that waits for another program takes as long as that program. So the policy compares the
//! first quartile of the calls' times. It starts with the second shortest of the first [`FIRST`]
//! calls. Then each call moves the estimate a step: up if the call took longer, and down by three
//! times as much if it was shorter.
//!
//! # Cost
//!
//! In place: a counter, and two reads of the clock for one call out of [`SAMPLE`]. With hand-overs
//! of 20 us, as measured on a machine with two busy CPUs, the bursts add 20 ns to a call on
//! average.
//!
//! # When not to use it
//!
//! Where the program's own time counts, and not the time of its calls: the policy does not see that
//! caches stay warm for the program.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use manycore::sync::{clock, cpu};

/// After `PERIOD` calls the other way has its turn.
pub const PERIOD: u32 = 8192;
/// A burst is `BURST` calls in a row.
pub const BURST: u32 = 8;
/// One of this many calls in place is timed. It is a prime, so that programs that alternately send
/// and receive have both timed.
pub const SAMPLE: u32 = 61;
/// One of this many routes begins with a trial. Among the first ones, each whose number is a power
/// of two does.
const ROUTES: u32 = 1024;
/// Before `FIRST` calls were timed their duration is unknown.
const FIRST: u32 = 8;

/// Relaxed throughout: these are measurements, which concurrent threads may overwrite.
const ORDER: Ordering = Ordering::Relaxed;

/// An estimate of the lower quartile of durations, in ticks: a quarter of the calls takes less.
#[derive(Debug, Default)]
struct Quartile {
    /// The second shortest of the first calls.
    value: AtomicU32,
    /// The shortest of the first calls.
    least: AtomicU32,
    /// How many were added, as far as that matters.
    seen: AtomicU32,
}

impl Quartile {
    const fn new() -> Self {
        Self { value: AtomicU32::new(0), least: AtomicU32::new(0), seen: AtomicU32::new(0) }
    }

    /// What is known, if it is enough.
    fn get(&self) -> Option<u64> {
        (self.seen.load(ORDER) >= FIRST).then(|| u64::from(self.value.load(ORDER)))
    }

    fn reset(&self) {
        self.seen.store(0, ORDER);
    }

    fn add(&self, ticks: u64) {
        let sample = u32::try_from(ticks).unwrap_or(u32::MAX / 2).clamp(1, u32::MAX / 2);
        let (seen, old) = (self.seen.load(ORDER), self.value.load(ORDER));
        if seen < FIRST {
            self.seen.store(seen + 1, ORDER);
            let least = if seen == 0 { u32::MAX } else { self.least.load(ORDER) };
            let second = if seen < 2 { u32::MAX } else { old };
            self.least.store(least.min(sample), ORDER);
            return self.value.store(second.min(least.max(sample)), ORDER);
        }
        let step = (old / 16).max(3);
        let new = match old {
            _ if sample < old => (old - step.min(old)).max(sample),
            _ => (old + step / 3).min(sample),
        };
        self.value.store(new.max(1), ORDER);
    }
}

/// The durations of calls in both ways, and the preferred way.
#[derive(Debug, Default)]
pub struct PathPreference {
    moved: Quartile,
    in_place: Quartile,
    calls: AtomicU32,
    is_moving: AtomicBool,
}

impl PathPreference {
    /// Prefers calls in place, without any measurement.
    pub const fn new() -> Self {
        Self {
            moved: Quartile::new(),
            in_place: Quartile::new(),
            calls: AtomicU32::new(0),
            is_moving: AtomicBool::new(false),
        }
    }

    /// Begins the policy of a new route, with the values that all routes have.
    pub fn begin(&self, all: &Self) {
        let opened = all.calls.fetch_add(1, ORDER);
        let has_trial =
            opened.is_multiple_of(ROUTES) || (opened < ROUTES && opened.is_power_of_two());
        // Each route begins at another point between two timed calls, so that some short
        // connections have a timed call as well.
        let begin = if has_trial { 0 } else { BURST + opened % SAMPLE };
        self.calls.store(begin, ORDER);
        self.is_moving.store(all.is_moving.load(ORDER), ORDER);
        self.moved.reset();
        self.in_place.reset();
    }

    /// Counts a call. If the call has to stay in place, returns the time at which it began, or 0 if
    /// this call is not timed.
    #[inline]
    pub fn stay(&self) -> Option<u64> {
        let call = self.calls.fetch_add(1, ORDER);
        let is_trial = call % PERIOD < BURST;
        // With one CPU, a thread that executes the call has to wait for the same CPU as the caller.
        if self.is_moving.load(ORDER) != is_trial && cpu::count() > 1 {
            return None;
        }
        let is_timed = is_trial || call.is_multiple_of(SAMPLE);
        Some(if is_timed { clock::now() } else { 0 })
    }

    /// Records a call in place that began at this time, for its route and for the shared
    /// preference.
    pub fn stayed(&self, began: u64, all: &Self) {
        if began != 0 {
            let ticks = clock::now().wrapping_sub(began);
            for habit in [all, self] {
                habit.in_place.add(ticks);
                habit.prefer();
            }
        }
    }

    /// Records a moved call that began at this time, in the same way. If it is no trial, the shared
    /// preference learns from only one in [`SAMPLE`]: all processes of a server write its line.
    pub fn moved(&self, began: u64, all: &Self) {
        let ticks = clock::now().wrapping_sub(began);
        let call = self.calls.load(ORDER).wrapping_sub(1);
        let is_told = call % PERIOD < BURST || call.is_multiple_of(SAMPLE);
        for habit in [self].into_iter().chain(is_told.then_some(all)) {
            habit.moved.add(ticks);
            habit.prefer();
        }
    }

    /// Changes the preferred way if the other one is faster by a quarter.
    fn prefer(&self) {
        let (Some(moved), Some(in_place)) = (self.moved.get(), self.in_place.get()) else { return };
        let is_moving = self.is_moving.load(ORDER);
        let other = if is_moving { in_place * 5 < moved * 4 } else { moved * 5 < in_place * 4 };
        if other {
            self.is_moving.store(!is_moving, ORDER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates calls with these durations for both ways; returns how many of the last thousands
    /// were moved.
    fn moved_of(moved: u64, in_place: u64, calls: u32) -> u32 {
        let habit = PathPreference { calls: AtomicU32::new(BURST), ..PathPreference::default() };
        let mut count = 0;
        for call in 0..calls {
            let stays = habit.stay();
            // Some wait, or have to wake a thread.
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
    fn a_route_takes_to_what_is_faster() {
        if cpu::count() == 1 {
            return assert_eq!(moved_of(1, 2, PERIOD), 0);
        }
        let calls = 20 * PERIOD;
        assert_eq!(moved_of(20_000, 4_000, calls), 10 * BURST, "trials only");
        assert_eq!(moved_of(2_000, 4_000, calls), calls / 2 - 10 * BURST, "all but trials");
        assert_eq!(moved_of(4_100, 4_000, calls), 10 * BURST, "not worth a change");
    }

    /// Children of a server, each with some short connections: one child's measurements help the
    /// others. The first moved call takes far longer.
    #[test]
    fn short_connections_take_to_what_is_faster() {
        if cpu::count() == 1 {
            return;
        }
        let all = PathPreference::new();
        let moved_of = |connections: u32, moved: u64| {
            let mut count = 0;
            for number in 0..connections {
                let route = PathPreference::new();
                route.begin(&all);
                for call in 0..10 {
                    let stays = route.stay();
                    let slow = if number == 0 && call == 0 { 100 } else { 1 };
                    for habit in [&all, &route] {
                        match stays {
                            None => habit.moved.add(slow * moved),
                            Some(0) => {}
                            Some(_) => habit.in_place.add(4000),
                        }
                        habit.prefer();
                    }
                    count += u32::from(stays.is_none());
                }
            }
            count
        };
        assert!(
            moved_of(128, 3000) >= 128,
            "nothing is known of calls in place before some were timed"
        );
        assert_eq!(moved_of(256, 3000), 2560 - 2 * BURST, "all but trials");
        moved_of(512, 20_000);
        let left = moved_of(1024, 20_000);
        assert!(left <= 2 * BURST, "trials only: {left}");
    }

    #[test]
    fn the_first_calls_of_all_do_not_count() {
        let quartile = Quartile::default();
        quartile.add(300_000);
        assert_eq!(quartile.get(), None);
        for sample in [3000, 3100, 2900, 90_000, 3050, 3150, 3200] {
            quartile.add(sample);
        }
        assert_eq!(quartile.get(), Some(3000));
    }

    #[test]
    fn a_quarter_is_below() {
        let quartile = Quartile::default();
        for sample in 0..100_000u64 {
            quartile.add(1000 + sample.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1000);
        }
        let found = quartile.get().unwrap();
        assert!((1150..1350).contains(&found), "{found}");
    }
}
