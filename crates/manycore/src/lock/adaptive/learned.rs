//! What an [`Adaptive`](super::Adaptive) has learned, in three words: the duration of spins,
//! whether CPUs are oversubscribed and how often a thread then parks, and the time of the last such
//! parking. If all are zero, nothing was learned. The words control waiting and order nothing, so a
//! lost update does no harm.

// Times are in nanoseconds, as in the lock.

/// The longest spin, and the one that explores.
const LONGEST_SPIN: u64 = if cfg!(loom) { 0 } else { 100_000 };
/// The shortest spin while there are enough CPUs: less than a sleep costs.
const SHORTEST_SPIN: u64 = if cfg!(loom) { 0 } else { 24_000 };
/// The shortest spin while CPUs are oversubscribed.
const SHORTEST_SPIN_OVERSUBSCRIBED: u64 = if cfg!(loom) { 0 } else { 560 };
/// A spin ends without success after this many times the usual spin.
const PERSISTENCE: u64 = 4;
/// Spins are long if at least this many of 256 end with the lock.
const WORTH_WHILE: u32 = 32;
/// One spin in this many explores, ...
const EXPLORE: u64 = 32;
/// ... and where spins are hopeless, for less long.
const EXPLORE_HOPELESS: u64 = 128;
/// If fewer than this do, a spin is as short as if CPUs were oversubscribed. The holder does not
/// run, for example because the two share a CPU.
const HOPELESS: u32 = 12;
/// After this many failures in a row further failures teach nothing.
const FAILURES: u32 = 32;
/// Waits that are shorter are short.
const SHORT_WAIT: u32 = 240;
/// While CPUs are oversubscribed, one newcomer parks in each interval without a poll. Where waits
/// are short, intervals are long, ...
const INTERVAL_OF_SHORT_WAITS: u32 = if cfg!(loom) { 0 } else { 160_000 };
/// ... otherwise as long as this many usual waits, ...
const INTERVAL_WAITS: u32 = if cfg!(loom) { 0 } else { 8 };
/// ... and at least as long as was learned: between this (6.4 us) ...
const SHORTEST_INTERVAL: u32 = 16;
/// ... and this (51 us), both in units of [`Oversubscription::UNIT`].
const LONGEST_INTERVAL: u32 = Oversubscription::INTERVALS;
/// If a thread that parked voluntarily is woken sooner, probably no other thread has used its CPU.
const WOKEN_SOON: u64 = if cfg!(loom) { 0 } else { 60_000 };
/// If a thread waits for longer, many were before it.
const WOKEN_LATE: u64 = if cfg!(loom) { 0 } else { 100_000 };

/// The recent results of spinning. The low 18 bits are the duration of spins that ended with the
/// lock. The next 3 bits are votes that the lock's line was near then. Another 3 are votes that the
/// releasing thread comes back before the lock could be handed over. The high 8 bits are the number
/// of spins, out of 256, that did not end with the lock. If all are zero, nothing is known; then
/// lines are assumed to be remote, and spins to be worth the time.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Spins(pub u32);

impl Spins {
    const USUAL: u32 = (1 << 18) - 1;
    const VOTES: u32 = 7;
    const STAY: u32 = 7;

    fn with(self, paid: u32, votes: u32, usual: u32) -> Self {
        Self((255 - paid) << 24 | self.stay() << 21 | votes << 18 | usual)
    }

    fn stay(self) -> u32 {
        self.0 >> 21 & Self::STAY
    }

    /// Whether the releasing thread is likely to come back before the lock could be handed over.
    pub(super) fn stays(self) -> bool {
        self.stay() > Self::STAY / 2
    }

    /// The count after a wait that shows that the owner should have kept the lock; or after one
    /// that shows that the owner had not come back when the first waiter checked.
    pub(super) fn and_stay(self, stays: bool) -> Self {
        let stay = if stays { Self::STAY } else { self.stay().saturating_sub(1) };
        Self(self.0 & !(Self::STAY << 21) | stay << 21)
    }

    pub(super) fn usual(self) -> u32 {
        self.0 & Self::USUAL
    }

    fn votes(self) -> u32 {
        self.0 >> 18 & Self::VOTES
    }

    /// How many of 256 spins end with the lock.
    fn paid(self) -> u32 {
        255 - (self.0 >> 24)
    }

    /// Whether waits are short: a switch of threads costs as much as many of the sections.
    pub(super) fn are_short(self) -> bool {
        self.usual() < SHORT_WAIT
    }

    pub(super) fn is_remote_line(self) -> bool {
        self.votes() <= Self::VOTES / 2
    }

    /// How long to spin from now on.
    pub(super) fn allowance(self, now: u64, oversubscribed: bool) -> u64 {
        let shortest = if oversubscribed { SHORTEST_SPIN_OVERSUBSCRIBED } else { SHORTEST_SPIN };
        // Not under loom, whose executions have to be repeatable.
        let explores = |one_in| !cfg!(loom) && !oversubscribed && (now / 64).is_multiple_of(one_in);
        if self.paid() < HOPELESS {
            if explores(EXPLORE_HOPELESS) { SHORTEST_SPIN } else { SHORTEST_SPIN_OVERSUBSCRIBED }
        } else if explores(EXPLORE) {
            LONGEST_SPIN
        } else if self.paid() < WORTH_WHILE {
            shortest
        } else {
            (PERSISTENCE * u64::from(self.usual())).clamp(shortest, LONGEST_SPIN)
        }
    }

    /// How long after one voluntary park the next newcomer parks.
    pub(super) fn park_interval(self, oversubscription: Oversubscription) -> u64 {
        let interval = if self.are_short() {
            INTERVAL_OF_SHORT_WAITS
        } else {
            (INTERVAL_WAITS * self.usual())
                .max(oversubscription.min_park_interval() * Oversubscription::UNIT)
        };
        u64::from(interval)
    }

    /// After the lock's line has come once more. The vote moves by one, so that it takes some dozen
    /// to change it.
    pub(super) fn after_transfer(self, is_near: bool) -> Self {
        let votes = if is_near {
            (self.votes() + 1).min(Self::VOTES)
        } else {
            self.votes().saturating_sub(1)
        };
        self.with(self.paid(), votes, self.usual())
    }

    /// After a spin that took so long and ended with the lock: both numbers move by an eighth.
    pub(super) fn and_success(self, spun: u64) -> Self {
        let (usual, paid) = (self.usual(), self.paid());
        let spun = spun.min(LONGEST_SPIN) as i64;
        let usual = (i64::from(usual) + (spun - i64::from(usual)) / 8) as u32;
        self.with(paid + (255 - paid).div_ceil(8), self.votes(), usual)
    }

    /// After this many spins that did not.
    pub(super) fn and_failures(self, failed: u32) -> Self {
        // More do not change it any further.
        let paid = (0..failed.min(FAILURES)).fold(self.paid(), |paid, _| paid - paid.div_ceil(8));
        self.with(paid, self.votes(), self.usual())
    }
}

const _: () = assert!(LONGEST_SPIN <= Spins::USUAL as u64);

/// Three numbers in one word. The high 24 bits have the time of the last sign that CPUs are scarce,
/// in units of 256 ns. The next 7 bits have the shortest interval between voluntary parks, in units
/// of 400 ns. The lowest bit tells whether there was a sign recently. All zero: no sign yet, and
/// the shortest interval.
#[derive(Clone, Copy)]
pub(super) struct Oversubscription(pub u32);

impl Oversubscription {
    /// The unit of intervals.
    const UNIT: u32 = if cfg!(loom) { 0 } else { 400 };
    const INTERVALS: u32 = 0x7F;
    const SIGN: u32 = 1;

    pub(super) fn has_sign(self) -> bool {
        self.0 & Self::SIGN != 0
    }

    /// How long ago the last sign was.
    pub(super) fn since_sign(self, now: u64) -> u32 {
        (now as u32 & !0xFF).wrapping_sub(self.0 & !0xFF)
    }

    pub(super) fn with_sign(self, now: u64) -> Self {
        Self(now as u32 & !0xFF | self.0 & 0xFF | Self::SIGN)
    }

    pub(super) fn without_sign(self) -> Self {
        Self(self.0 & !Self::SIGN)
    }

    /// The least interval between voluntary parks, in units.
    pub(super) fn min_park_interval(self) -> u32 {
        (self.0 >> 1 & Self::INTERVALS).max(SHORTEST_INTERVAL)
    }

    /// After a thread has parked voluntarily, and was woken after this long. Intervals become
    /// shorter faster than they grow: the longest waits come from a row of long intervals.
    pub(super) fn after_voluntary_park(self, waited: u64) -> Self {
        let interval = self.min_park_interval();
        let interval = if waited < WOKEN_SOON {
            (interval + (interval / 16).max(1)).min(LONGEST_INTERVAL)
        } else if waited >= WOKEN_LATE {
            interval - interval.div_ceil(8)
        } else {
            interval
        };
        Self(self.0 & !(Self::INTERVALS << 1) | interval << 1)
    }
}

/// The time at which a newcomer last parked voluntarily, in units of 1024 ns, with the lowest 2
/// bits of its CPU's number in the lowest 2 bits. The time wraps after 18 minutes, which does
/// little harm.
#[derive(Clone, Copy)]
pub(super) struct LastPark(pub u32);

impl LastPark {
    const UNIT: u32 = 10;
    const CPU: u32 = 0b11;

    pub(super) fn new(now: u64, cpu: u32) -> Self {
        Self(((now >> Self::UNIT) as u32) << 2 | cpu & Self::CPU)
    }

    /// How long ago it was.
    pub(super) fn since(self, now: u64) -> u64 {
        let units = ((now >> Self::UNIT) as u32).wrapping_sub(self.0 >> 2) << 2 >> 2;
        u64::from(units) << Self::UNIT
    }

    /// Whether it was another CPU than this; of other numbers, one in four is taken for this one.
    pub(super) fn was_elsewhere(self, cpu: u32) -> bool {
        self.0 & Self::CPU != cpu & Self::CPU
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_while_parks_help_nobody_and_shrink_while_many_wait() {
        let after = |state: Oversubscription, waited, times| {
            (0..times).fold(state, |state, _| state.after_voluntary_park(waited))
        };
        let state = Oversubscription(0).with_sign(1 << 20);
        assert_eq!(state.min_park_interval(), SHORTEST_INTERVAL);
        let soon = after(state, WOKEN_SOON - 1, 5);
        assert!(
            soon.min_park_interval() > SHORTEST_INTERVAL
                && soon.min_park_interval() < LONGEST_INTERVAL
        );
        assert_eq!(after(soon, WOKEN_SOON, 100).min_park_interval(), soon.min_park_interval());
        let longest = after(soon, 0, 100);
        assert_eq!(longest.min_park_interval(), LONGEST_INTERVAL);
        assert_eq!(after(longest, WOKEN_LATE, 100).min_park_interval(), SHORTEST_INTERVAL);
        // The other half of the word is as it was.
        assert!(longest.has_sign() && longest.since_sign((1 << 20) + 512) == 512);
        assert_eq!(longest.without_sign().min_park_interval(), LONGEST_INTERVAL);
    }

    #[test]
    fn lines_are_far_until_most_are_seen_to_be_near() {
        let spins = Spins(0).and_success(800);
        assert!(spins.is_remote_line());
        let near = (0..100).fold(spins, |spins, _| spins.after_transfer(true));
        assert!(!near.is_remote_line());
        assert!(!near.after_transfer(false).is_remote_line(), "one of many is an accident");
        let far = (0..40).fold(near, |spins, _| spins.after_transfer(false));
        assert!(far.is_remote_line());
        assert_eq!((far.usual(), far.paid()), (100, 255));
    }

    #[test]
    fn a_word_has_room_for_the_longest_spin() {
        let spins = (0..200).fold(Spins(0), |spins, _| spins.and_success(u64::MAX));
        assert!(spins.usual() > LONGEST_SPIN as u32 - 8 && spins.paid() == 255);
        assert_eq!(spins.votes(), 0);
    }

    #[test]
    fn failures_change_only_how_many_spins_pay() {
        let spins = (0..40).fold(Spins(0), |spins, _| spins.and_success(800).after_transfer(true));
        let failed = |times| spins.and_failures(times);
        assert!(failed(0) == spins && failed(1).paid() < spins.paid());
        assert_eq!(failed(3).paid(), failed(1).and_failures(2).paid());
        assert_eq!((failed(u32::MAX).paid(), failed(FAILURES).paid()), (0, 0));
        assert_eq!((failed(9).usual(), failed(9).votes()), (spins.usual(), spins.votes()));
    }

    #[test]
    fn turns_know_their_moment_and_their_cpu() {
        let now = 0x1234_5678_9ABC;
        let last = LastPark::new(now, 6);
        assert!(!last.was_elsewhere(6) && last.was_elsewhere(7) && last.since(now) == 0);
        let (soon, late) = (last.since(now + 3_072), last.since(now + (1 << 25)));
        assert!((2_048..=3_072).contains(&soon) && late == 1 << 25, "{soon} {late}");
    }
}
