//! The phases of `src/asymmetry.rs`, of readers with and without a fence, in all schedules of a
//! machine on which a CPU's writes wait in a buffer before others see them, as on x86 (TSO). The
//! model checker of the other tests knows no barrier that one thread has all others pass, so this
//! is a model of the protocol, written out: a reader, a thread that waits for it, and two that wait
//! again and again, and take the phases on as they like.

use std::collections::HashSet;

/// The phases, counted on from one round to the next.
const BARE: u8 = 0;
const FENCED: u8 = 2;
const ROUND: u8 = 3;
/// So far they go: two rounds.
const LAST: u8 = 2 * ROUND;

/// A deliberate fault in the protocol, to check that the test finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    /// A reader does not look for the phase once more.
    OneRead,
    /// Readers are assumed to execute fences as soon as that was requested.
    NoMixedPhase,
    /// A waiting thread reads the phase before its own fence.
    EarlyPhase,
    /// Phases are not counted, so a thread that has made all others pass a barrier also ends the
    /// mixed phase of the next round.
    NotCounted,
}

/// The threads.
const READER: usize = 0;
const WAITER: usize = 1;
const STEERERS: [usize; 2] = [2, 3];
const THREADS: usize = 4;

/// The threads' states, and the contents of memory and of store buffers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct State {
    phase: u8,
    /// Whether the reader has announced itself: in its buffer, and in memory.
    announced: [bool; 2],
    /// Whether the waiter has changed what the reader reads: in its buffer, and in memory.
    changed: [bool; 2],
    /// Each thread's next step.
    at: [u8; THREADS],
    /// The phase as each has found it.
    found: [u8; THREADS],
    /// Whether the reader and the waiter still have to pass the barrier that a thread has
    /// requested.
    to_pass: [[bool; 2]; THREADS],
    /// Whether the reader has found the change, and the waiter the reader.
    reader_found: Option<bool>,
    waiter_found: Option<bool>,
}

impl State {
    /// What can come next, in one step of any thread.
    fn next(self, mistake: Mistake) -> impl Iterator<Item = Self> {
        let drained = [READER, WAITER].map(|thread| self.drained(thread));
        let barriers = (0..THREADS).flat_map(move |asker| {
            let asked = [READER, WAITER].into_iter().filter(move |of| self.to_pass[asker][*of]);
            asked.map(move |of| self.drained(of).passed(asker, of))
        });
        let steered = STEERERS.into_iter().flat_map(move |thread| self.steerer(thread, mistake));
        let moved = self.reader(mistake).into_iter().chain(self.waiter(mistake)).chain(steered);
        drained.into_iter().chain(barriers).chain(moved)
    }

    /// What is in a thread's buffer is seen.
    fn drained(mut self, thread: usize) -> Self {
        let place = if thread == READER { &mut self.announced } else { &mut self.changed };
        place[1] |= place[0];
        self
    }

    /// A thread has passed a barrier.
    fn passed(mut self, asker: usize, thread: usize) -> Self {
        self.to_pass[asker][thread] = false;
        self
    }

    /// Whether it can pass a fence.
    fn is_drained(&self, thread: usize) -> bool {
        *self == self.drained(thread)
    }

    fn go(mut self, thread: usize, step: u8) -> Self {
        self.at[thread] = step;
        self
    }

    /// Requests a barrier if the phase that was read needs one.
    fn ask(mut self, thread: usize) -> Self {
        if self.found[thread] % ROUND != FENCED {
            self.to_pass[thread] = [READER, WAITER].map(|other| other != thread);
        }
        self
    }

    fn has_barrier(&self, thread: usize) -> bool {
        self.to_pass[thread] == [false; 2]
    }

    fn reader(mut self, mistake: Mistake) -> Option<Self> {
        let is_bare = |phase| phase % ROUND == BARE;
        let (again, fence, read, end) = (2, 3, 4, 5);
        match self.at[READER] {
            0 => {
                self.found[READER] = self.phase;
                Some(self.go(READER, 1))
            }
            1 => {
                self.announced[0] = true;
                let unfenced = if mistake == Mistake::OneRead { read } else { again };
                let step = if is_bare(self.found[READER]) { unfenced } else { fence };
                Some(self.go(READER, step))
            }
            2 => Some(self.go(READER, if is_bare(self.phase) { read } else { fence })),
            3 => self.is_drained(READER).then(|| self.go(READER, read)),
            4 => {
                self.reader_found = Some(self.changed[1]);
                Some(self.go(READER, end))
            }
            _ => None,
        }
    }

    fn waiter(mut self, mistake: Mistake) -> Option<Self> {
        match self.at[WAITER] {
            0 => {
                self.changed[0] = true;
                self.found[WAITER] = self.phase;
                Some(self.go(WAITER, 1))
            }
            1 => self.is_drained(WAITER).then(|| self.go(WAITER, 2)), // a fence
            2 => {
                if mistake != Mistake::EarlyPhase {
                    self.found[WAITER] = self.phase;
                }
                Some(self.ask(WAITER).go(WAITER, 3))
            }
            3 if self.has_barrier(WAITER) => {
                self.waiter_found = Some(self.announced[1]);
                Some(self.go(WAITER, 4))
            }
            _ => None,
        }
    }

    /// Waits, advances the phase or not, and begins again. The duration of the wait is left out.
    fn steerer(mut self, thread: usize, mistake: Mistake) -> Vec<Self> {
        if self.at[thread] == 0 {
            self.found[thread] = self.phase;
            return vec![self.ask(thread).go(thread, 1)];
        }
        if !self.has_barrier(thread) {
            return Vec::new();
        }
        let left = self.go(thread, 0);
        let is_same = if mistake == Mistake::NotCounted {
            self.phase % ROUND == self.found[thread] % ROUND
        } else {
            self.phase == self.found[thread]
        };
        let skips = mistake == Mistake::NoMixedPhase && self.phase % ROUND == BARE;
        let taken_on = Self { phase: self.phase + if skips { 2 } else { 1 }, ..left };
        if is_same && taken_on.phase <= LAST { vec![left, taken_on] } else { vec![left] }
    }

    /// Neither has found the other.
    fn is_wrong(&self) -> bool {
        self.reader_found == Some(false) && self.waiter_found == Some(false)
    }
}

/// Counts the states, and searches for one in which neither thread has seen the other.
fn explore(mistake: Mistake) -> (usize, Option<State>) {
    let first = |phase| State { phase, ..State::default() };
    let mut ahead: Vec<_> = (0..ROUND).map(first).collect();
    let mut seen: HashSet<_> = ahead.iter().copied().collect();
    while let Some(state) = ahead.pop() {
        if state.is_wrong() {
            return (seen.len(), Some(state));
        }
        ahead.extend(state.next(mistake).filter(|next| seen.insert(*next)));
    }
    (seen.len(), None)
}

#[test]
fn one_finds_the_other() {
    let (states, wrong) = explore(Mistake::None);
    assert_eq!(wrong, None);
    assert!(states > 100_000, "{states} states are not all");
}

#[test]
fn mistakes_are_found() {
    use Mistake::{EarlyPhase, NoMixedPhase, NotCounted, OneRead};
    for mistake in [OneRead, NoMixedPhase, EarlyPhase, NotCounted] {
        let (states, wrong) = explore(mistake);
        assert!(wrong.is_some(), "{mistake:?} is not found in {states} states");
    }
}
