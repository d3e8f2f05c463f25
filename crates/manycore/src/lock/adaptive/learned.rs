//! What an [`Adaptive`](super::Adaptive) has learned, in three words: how long spins take, whether
//! there is a crowd and how long its turns are, and when things happened last. All zero is nothing.
//! They steer waiting and order nothing, so that a lost update does no harm.

// Times are in nanoseconds, as in the lock.

/// The longest spin, and the one that explores.
const LONGEST_SPIN: u64 = if cfg!(loom) { 0 } else { 100_000 };
/// The shortest spin while CPUs are to spare: less than a sleep costs.
const SHORTEST_SPIN: u64 = if cfg!(loom) { 0 } else { 24_000 };
/// The shortest spin in a crowd.
const SHORTEST_SPIN_IN_CROWD: u64 = if cfg!(loom) { 0 } else { 560 };
/// A spin lasts this many times the usual one before it is given up.
const PERSISTENCE: u64 = 4;
/// Spins are worth while if at least this many of 256 end with the lock.
const WORTH_WHILE: u32 = 32;
/// One spin in this many explores, ...
const EXPLORE: u64 = 32;
/// ... and where spins are hopeless, for less long.
const EXPLORE_HOPELESS: u64 = 128;
/// If fewer do, a spin is as short as in a crowd: the holder does not run, as where the two share a
/// CPU.
const HOPELESS: u32 = 12;
/// After this many failures in a row there is no more to learn from them.
const FAILURES: u32 = 32;
/// Waits that are shorter are short.
const SHORT_WAIT: u32 = 240;
/// In a crowd, one newcomer sleeps at once in each turn. Where waits are short, turns are long, ...
const TURN_AMONG_SHORT_WAITS: u32 = if cfg!(loom) { 0 } else { 160_000 };
/// ... otherwise as long as this many usual waits, ...
const TURN_WAITS: u32 = if cfg!(loom) { 0 } else { 8 };
/// ... and at least as long as was learned: between this (6.4 us) ...
const SHORTEST_TURN: u32 = 16;
/// ... and this (51 us), both in units of [`Crowd::TURN`].
const LONGEST_TURN: u32 = Crowd::TURNS;
/// A thread that is woken sooner has made room for nobody, or nearly so.
const WOKEN_SOON: u64 = if cfg!(loom) { 0 } else { 60_000 };
/// A thread that waits for longer has many before it.
const WOKEN_LATE: u64 = if cfg!(loom) { 0 } else { 100_000 };

/// What spinning has brought of late: in the low 18 bits, how long spins took that ended with the
/// lock; in the 3 bits above, votes for that the lock's line was near then, and in 3 more, for that
/// who has released it comes back before it could be handed over; in the high 8 bits, how many of
/// 256 did not end so. All zero is nothing known, and takes lines to come from afar and spins to be
/// worth while.
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

    /// Whether who has released the lock is likely to come back before it could be handed over.
    pub(super) fn stays(self) -> bool {
        self.stay() > Self::STAY / 2
    }

    /// After who has the lock would better have stayed; or has not come back when the first looked.
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

    pub(super) fn lines_come_from_afar(self) -> bool {
        self.votes() <= Self::VOTES / 2
    }

    /// How long to spin from now on.
    pub(super) fn allowance(self, now: u64, crowded: bool) -> u64 {
        let shortest = if crowded { SHORTEST_SPIN_IN_CROWD } else { SHORTEST_SPIN };
        // Not under loom, whose executions have to be repeatable.
        let explores = |one_in| !cfg!(loom) && !crowded && (now / 64).is_multiple_of(one_in);
        if self.paid() < HOPELESS {
            if explores(EXPLORE_HOPELESS) { SHORTEST_SPIN } else { SHORTEST_SPIN_IN_CROWD }
        } else if explores(EXPLORE) {
            LONGEST_SPIN
        } else if self.paid() < WORTH_WHILE {
            shortest
        } else {
            (PERSISTENCE * u64::from(self.usual())).clamp(shortest, LONGEST_SPIN)
        }
    }

    /// How long a turn is.
    pub(super) fn turn(self, crowd: Crowd) -> u64 {
        let turn = if self.are_short() {
            TURN_AMONG_SHORT_WAITS
        } else {
            (TURN_WAITS * self.usual()).max(crowd.turn() * Crowd::TURN)
        };
        u64::from(turn)
    }

    /// After the lock's line has come once more. The vote moves by one, so that it takes some dozen
    /// to change it.
    pub(super) fn and_line(self, is_near: bool) -> Self {
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

/// In the high 24 bits, when there was a sign that CPUs are scarce, in units of 256 ns; in the 7
/// bits below, how long turns are, in units of 400 ns; in the lowest, whether there was a sign of
/// late. All zero is none, and the shortest turns.
#[derive(Clone, Copy)]
pub(super) struct Crowd(pub u32);

impl Crowd {
    /// The unit of turns.
    const TURN: u32 = if cfg!(loom) { 0 } else { 400 };
    const TURNS: u32 = 0x7F;
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

    /// The shortest that turns are, in units.
    pub(super) fn turn(self) -> u32 {
        (self.0 >> 1 & Self::TURNS).max(SHORTEST_TURN)
    }

    /// After a thread has made room, and was woken after this long. Turns become shorter faster
    /// than they grow: what is waited for longest is a row of long ones.
    pub(super) fn with_room_made_for(self, waited: u64) -> Self {
        let turn = self.turn();
        let turn = if waited < WOKEN_SOON {
            (turn + (turn / 16).max(1)).min(LONGEST_TURN)
        } else if waited >= WOKEN_LATE {
            turn - turn.div_ceil(8)
        } else {
            turn
        };
        Self(self.0 & !(Self::TURNS << 1) | turn << 1)
    }
}

/// When a newcomer last made room, in units of 1024 ns, and in the lowest 2 bits, the end of its
/// CPU's number. That the time wraps, after 18 minutes, does little.
#[derive(Clone, Copy)]
pub(super) struct Turn(pub u32);

impl Turn {
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
    fn turns_grow_while_room_is_made_for_nobody_and_shrink_while_many_wait() {
        let after = |crowd: Crowd, waited, times| {
            (0..times).fold(crowd, |crowd, _| crowd.with_room_made_for(waited))
        };
        let crowd = Crowd(0).with_sign(1 << 20);
        assert_eq!(crowd.turn(), SHORTEST_TURN);
        let soon = after(crowd, WOKEN_SOON - 1, 5);
        assert!(soon.turn() > SHORTEST_TURN && soon.turn() < LONGEST_TURN);
        assert_eq!(after(soon, WOKEN_SOON, 100).turn(), soon.turn());
        let longest = after(soon, 0, 100);
        assert_eq!(longest.turn(), LONGEST_TURN);
        assert_eq!(after(longest, WOKEN_LATE, 100).turn(), SHORTEST_TURN);
        // The other half of the word is as it was.
        assert!(longest.has_sign() && longest.since_sign((1 << 20) + 512) == 512);
        assert_eq!(longest.without_sign().turn(), LONGEST_TURN);
    }

    #[test]
    fn lines_are_far_until_most_are_seen_to_be_near() {
        let spins = Spins(0).and_success(800);
        assert!(spins.lines_come_from_afar());
        let near = (0..100).fold(spins, |spins, _| spins.and_line(true));
        assert!(!near.lines_come_from_afar());
        assert!(!near.and_line(false).lines_come_from_afar(), "one of many is an accident");
        let far = (0..40).fold(near, |spins, _| spins.and_line(false));
        assert!(far.lines_come_from_afar());
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
        let spins = (0..40).fold(Spins(0), |spins, _| spins.and_success(800).and_line(true));
        let failed = |times| spins.and_failures(times);
        assert!(failed(0) == spins && failed(1).paid() < spins.paid());
        assert_eq!(failed(3).paid(), failed(1).and_failures(2).paid());
        assert_eq!((failed(u32::MAX).paid(), failed(FAILURES).paid()), (0, 0));
        assert_eq!((failed(9).usual(), failed(9).votes()), (spins.usual(), spins.votes()));
    }

    #[test]
    fn turns_know_their_moment_and_their_cpu() {
        let now = 0x1234_5678_9ABC;
        let turn = Turn::new(now, 6);
        assert!(!turn.was_elsewhere(6) && turn.was_elsewhere(7) && turn.since(now) == 0);
        let (soon, late) = (turn.since(now + 3_072), turn.since(now + (1 << 25)));
        assert!((2_048..=3_072).contains(&soon) && late == 1 << 25, "{soon} {late}");
    }
}
