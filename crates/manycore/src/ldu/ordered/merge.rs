//! The lock owner's knowledge of the runs: the items taken out of each, and the run from which the
//! next item is taken.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr;

use super::run::{Reader, Run, Stamped, Writer};
use super::tournament::{NONE, Tournament};
use crate::clock::Clock;
use crate::sync::cell::UnsafeCell;
use crate::sync::mutation;
use crate::thread_registry::{ThreadRegistry, ThreadSlot};

/// Which item comes out next.
pub trait Discipline: sealed::Sealed {
    /// Whether it is the newest.
    #[doc(hidden)]
    const NEWEST: bool;
}

/// First in, first out.
#[derive(Clone, Copy, Debug)]
pub enum Oldest {}

/// Last in, first out.
#[derive(Clone, Copy, Debug)]
pub enum Newest {}

impl Discipline for Oldest {
    const NEWEST: bool = false;
}

impl Discipline for Newest {
    const NEWEST: bool = true;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Oldest {}
    impl Sealed for super::Newest {}
}

/// The number of items that are taken out of a run at a time if the oldest are requested: enough
/// that its line rarely changes hands.
const LIMIT: u32 = 256;

type Place<T> = ThreadSlot<Run<T>, Writer<T>>;

/// An item that was taken out of a run. In a cell, so that the simulator charges for it.
struct TakenItem<T>(UnsafeCell<Stamped<T>>);

/// A run, and what was taken out of it.
struct Side<T> {
    slot: *const Place<T>,
    reader: Reader<T>,
    taken: VecDeque<TakenItem<T>>,
}

impl<T> Side<T> {
    /// Takes more out of the run; returns whether there was something.
    ///
    /// # Safety
    ///
    /// The slot is there.
    unsafe fn look(&mut self, limit: u32) -> bool {
        // SAFETY: the slot is there (contract of this function).
        let run = unsafe { &*self.slot };
        let to = |item| {
            self.taken.push_back(TakenItem(UnsafeCell::new(item)));
            // Written here, as far as the simulator is concerned.
            self.taken.back().expect("just put there").0.with_mut(|_| ());
        };
        // SAFETY: `meet` has made the reader and the slot's pointer of one run.
        unsafe { self.reader.take(run, limit, to) > 0 }
    }

    /// The next item's key: the smaller, the earlier it comes out.
    fn key<D: Discipline>(&self) -> u64 {
        let next = if D::NEWEST { self.taken.back() } else { self.taken.front() };
        // SAFETY: `Side` has the entry to itself and borrows it; `with_mut` is used only where one
        // is made.
        let stamp = next.map(|entry| entry.0.with(|item| unsafe { (*item).stamp }));
        stamp.map_or(NONE, |stamp| if D::NEWEST { !stamp } else { stamp })
    }
}

/// All runs, as far as they are known.
pub(super) struct Merge<T, D> {
    sides: Vec<Side<T>>,
    /// The slot that was added last, of those that are known.
    newest: *const Place<T>,
    tournament: Tournament,
    /// For the oldest: a time before the reads of the runs that were found empty since. For the
    /// newest: not used.
    looked: u64,
    /// Whether the runs have to be read before the next removal. For the newest, because another
    /// item may be newer than the remaining ones; for the oldest, because no thread has read them
    /// since this was requested.
    is_stale: bool,
    _discipline: PhantomData<D>,
}

impl<T, D: Discipline> Merge<T, D> {
    pub fn new() -> Self {
        Self {
            sides: Vec::new(),
            newest: ptr::null(),
            tournament: Tournament::new(),
            looked: 0,
            is_stale: true,
            _discipline: PhantomData,
        }
    }

    /// Gets to know the slots that were added.
    fn meet(&mut self, slots: &ThreadRegistry<Run<T>, Writer<T>>) {
        let known = self.newest;
        for slot in slots.iter().take_while(|slot| !ptr::eq(*slot, known)) {
            if ptr::eq(self.newest, known) {
                self.newest = slot;
            }
            // SAFETY: `newest` records the slots that were visited before, and these are skipped:
            // so each run has one reader.
            let reader = unsafe { slot.reader() };
            self.sides.push(Side { slot, reader, taken: VecDeque::new() });
            self.tournament.add();
        }
    }

    /// Reads a run, and says whether something was found.
    fn look_at(&mut self, index: usize) -> bool {
        let side = &mut self.sides[index];
        let limit = if D::NEWEST { u32::MAX } else { LIMIT };
        // SAFETY: slots are freed with the `ThreadRegistry` of the `Ordered` to which this belongs,
        // and the caller has its lock.
        let found = unsafe { side.look(limit) };
        if found {
            self.tournament.set(index, side.key::<D>());
        }
        found
    }

    /// Reads all runs from which the next item could come: all runs if the newest is requested, and
    /// otherwise those with no items left. Returns whether it found an item.
    fn look(&mut self, slots: &ThreadRegistry<Run<T>, Writer<T>>) -> bool {
        self.meet(slots);
        let mut found = false;
        for index in 0..self.sides.len() {
            if D::NEWEST || self.sides[index].taken.is_empty() {
                found |= self.look_at(index);
            }
        }
        found
    }

    /// Before items are asked for.
    pub fn begin(&mut self) {
        self.is_stale = !(mutation!("ordered-old-top") && self.tournament.winner().is_some());
    }

    /// The next item. After the first one since `begin`, returns one only if that needs no further
    /// read of the runs.
    pub fn another(
        &mut self,
        slots: &ThreadRegistry<Run<T>, Writer<T>>,
        clock: &impl Clock,
    ) -> Option<T> {
        let winner = self.tournament.winner().map(|(key, _)| key);
        let is_known = if D::NEWEST {
            !self.is_stale
        } else {
            self.is_stale || winner.is_some_and(|stamp| stamp <= self.looked)
        };
        is_known.then(|| self.next(slots, clock)).flatten()
    }

    /// The next item.
    pub fn next(
        &mut self,
        slots: &ThreadRegistry<Run<T>, Writer<T>>,
        clock: &impl Clock,
    ) -> Option<T> {
        if D::NEWEST { self.newest(slots, clock) } else { self.oldest(slots, clock) }
    }

    fn oldest(
        &mut self,
        slots: &ThreadRegistry<Run<T>, Writer<T>>,
        clock: &impl Clock,
    ) -> Option<T> {
        loop {
            let winner = self.tournament.winner();
            let is_settled = winner.is_some_and(|(stamp, _)| stamp <= self.looked);
            if is_settled || mutation!("ordered-one-look") && winner.is_some() {
                return winner.map(|(_, index)| self.take(index));
            }
            // An older one may have been added to a run before this one was, after that run was
            // read.
            let present = clock.present();
            let found = self.look(slots);
            (self.looked, self.is_stale) = (present, false);
            if !found {
                return winner.map(|(_, index)| self.take(index));
            }
        }
    }

    fn newest(
        &mut self,
        slots: &ThreadRegistry<Run<T>, Writer<T>>,
        clock: &impl Clock,
    ) -> Option<T> {
        if self.is_stale {
            self.looked = clock.present();
            self.look(slots);
        }
        let (key, index) = self.tournament.winner()?;
        // Another one may have been added below this one, to a run that had been read before.
        self.is_stale = !key > self.looked && !mutation!("ordered-trusts-look");
        Some(self.take(index))
    }

    /// The next item of a run, which has one.
    fn take(&mut self, index: usize) -> T {
        let side = &mut self.sides[index];
        let next = if D::NEWEST { side.taken.pop_back() } else { side.taken.pop_front() };
        let key = side.key::<D>();
        // The items left in the run when it was read are older than any that other runs may have.
        if D::NEWEST || key != NONE || !self.look_at(index) {
            self.tournament.set(index, key);
        }
        next.expect("the winner has an item").0.into_inner().value
    }

    /// Takes everything out of all runs, and frees them; it is dropped with this.
    ///
    /// # Safety
    ///
    /// No thread uses the runs any more, or will.
    pub unsafe fn finish(&mut self, slots: &ThreadRegistry<Run<T>, Writer<T>>) {
        self.meet(slots);
        for side in &mut self.sides {
            // SAFETY: the slots are borrowed. The runs are not used any more (contract of this
            // function), and `look` without a limit leaves nothing in them.
            unsafe {
                side.look(u32::MAX);
                side.reader.free();
            }
        }
    }
}
