//! A process' open files, by their numbers.
//!
//! Threads that use files write no common cache line, see [`Shelf`]. A thread that searches for a
//! free number does not contend with users of the numbers before it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, Ordering};

use once_cell::race::OnceBox;

use super::file::File;
use crate::call::errno::{Errno, Result};
use crate::sync::shelf::{Lent, Shelf, Users};
use crate::task::user;

/// The largest number of files of a process, and the number of slots that are made together.
const MOST: usize = 1024;
const CHUNK: usize = 16;

/// What a number is.
const FREE: u8 = 0;
const USED: u8 = 1;
/// `exec` closes it.
const USED_HERE: u8 = 2;

fn used(closes_on_exec: bool) -> u8 {
    if closes_on_exec { USED_HERE } else { USED }
}

struct Slot {
    /// The thread that gets the number changes it from free; other changes are made with the
    /// shelf's lock held.
    state: AtomicU8,
    file: Shelf<File>,
}

impl Slot {
    const fn new() -> Self {
        Self { state: AtomicU8::new(FREE), file: Shelf::new() }
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed) // Relaxed, here and below: the lock orders what is there
    }

    fn set_state(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }
}

/// The table. It gives out the lowest free number, as programs expect.
pub struct Table {
    slots: [OnceBox<[Slot; CHUNK]>; MOST / CHUNK],
    users: Users<File>,
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// Empty.
    pub fn new() -> Self {
        Self { slots: [const { OnceBox::new() }; MOST / CHUNK], users: Users::new() }
    }

    /// The same files, for a child.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        for (number, slot) in self.slots() {
            if let (Some(file), Ok(to)) = (slot.file.get(), copy.slot(number)) {
                to.file.put(Some(file), number, &copy.users, |_| to.set_state(slot.state()));
            }
        }
        copy
    }

    /// Threads that use it: see [`Users`].
    pub fn users(&self) -> &Users<File> {
        &self.users
    }

    /// Slots that were made, with their numbers.
    fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        let chunks = self.slots.iter().enumerate();
        chunks.flat_map(|(chunk, slots)| {
            let slots = slots.get().into_iter().flat_map(|slots| slots.iter());
            (chunk * CHUNK..).zip(slots)
        })
    }

    /// The slot of a number, if the shelf of that number exists.
    fn find(&self, number: u64) -> Result<(usize, &Slot)> {
        let number = number as u32 as usize;
        let slots = self.slots.get(number / CHUNK).and_then(OnceBox::get).ok_or(Errno::BAD_FILE)?;
        Ok((number, &slots[number % CHUNK]))
    }

    /// The slot of a number.
    fn slot(&self, number: usize) -> Result<&Slot> {
        let chunk = self.slots.get(number / CHUNK).ok_or(Errno::BAD_FILE)?;
        let slots = chunk.get_or_init(|| Box::new([const { Slot::new() }; CHUNK]));
        Ok(&slots[number % CHUNK])
    }

    /// The file with this number, borrowed for the time of a call.
    pub fn lend(&self, number: u64) -> Result<Lent<'_, File>> {
        let (number, slot) = self.find(number)?;
        let row = user::current().and_then(|user| user.row);
        slot.file.lend(row, number, &self.users).ok_or(Errno::BAD_FILE)
    }

    /// The file with this number, for longer.
    pub fn get(&self, number: u64) -> Result<Arc<File>> {
        self.find(number)?.1.file.get().ok_or(Errno::BAD_FILE)
    }

    /// Gives the file the lowest free number, from `from` on.
    pub fn add(&self, file: Arc<File>, closes_on_exec: bool, from: usize) -> Result<u64> {
        let state = used(closes_on_exec);
        for number in from..MOST {
            let slot = self.slot(number)?;
            let (free, relaxed) = (slot.state() == FREE, Ordering::Relaxed); // as above
            if free && slot.state.compare_exchange(FREE, state, relaxed, relaxed).is_ok() {
                slot.file.put(Some(file), number, &self.users, |_| slot.set_state(state));
                return Ok(number as u64);
            }
        }
        Err(Errno::TOO_MANY_FILES)
    }

    /// Gives the file this number. Its earlier file is closed.
    pub fn put(&self, file: Arc<File>, closes_on_exec: bool, number: u64) -> Result<()> {
        let number = usize::try_from(number).map_err(|_| Errno::BAD_FILE)?;
        let slot = self.slot(number)?;
        let state = used(closes_on_exec);
        slot.file.put(Some(file), number, &self.users, |_| slot.set_state(state));
        Ok(())
    }

    /// Closes a file; returns whether there was one. If a thread has got the number but has not
    /// stored its file yet, the number stays reserved for it.
    fn take(&self, number: usize, slot: &Slot) -> bool {
        let mut was_open = false;
        slot.file.put(None, number, &self.users, |was| {
            was_open = was;
            if was {
                slot.set_state(FREE);
            }
        });
        was_open
    }

    /// Closes a file.
    pub fn close(&self, number: u64) -> Result<()> {
        let (number, slot) = self.find(number)?;
        if self.take(number, slot) { Ok(()) } else { Err(Errno::BAD_FILE) }
    }

    /// Whether `exec` closes it.
    pub fn closes_on_exec(&self, number: u64) -> Result<bool> {
        match self.find(number)?.1.state() {
            FREE => Err(Errno::BAD_FILE),
            state => Ok(state == USED_HERE),
        }
    }

    /// Sets whether `exec` closes it.
    pub fn set_closes_on_exec(&self, number: u64, closes: bool) -> Result<()> {
        let (_, slot) = self.find(number)?;
        let relaxed = Ordering::Relaxed; // as above
        let set = |state| (state != FREE).then_some(used(closes));
        slot.state.fetch_update(relaxed, relaxed, set).map(|_| ()).map_err(|_| Errno::BAD_FILE)
    }

    /// Closes what `exec` closes; all, if the process ends.
    pub fn close_some(&self, all: bool) {
        for (number, slot) in self.slots() {
            if all || slot.state() == USED_HERE {
                self.take(number, slot);
            }
        }
    }
}
