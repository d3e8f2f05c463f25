//! A process' open files, by their numbers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::file::File;
use crate::call::errno::{Errno, Result};
use crate::sync::order::Rank;
use crate::sync::spin::Spin;

/// Files of a process at most.
const MOST: usize = 1024;

#[derive(Clone)]
struct Slot {
    file: Arc<File>,
    closes_on_exec: bool,
}

/// The table. The lowest number that is free is given, as programs expect.
pub struct Table(Spin<Vec<Option<Slot>>>);

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// Empty.
    pub fn new() -> Self {
        Self(Spin::new(Rank::Files, Vec::new()))
    }

    /// The same files, for a child.
    pub fn copy(&self) -> Self {
        Self(Spin::new(Rank::Files, self.0.lock().clone()))
    }

    /// The file with this number.
    pub fn get(&self, number: u64) -> Result<Arc<File>> {
        let slots = self.0.lock();
        let slot = slots.get(number as u32 as usize).and_then(Option::as_ref);
        slot.map(|slot| slot.file.clone()).ok_or(Errno::BAD_FILE)
    }

    /// Gives the file the lowest number that is free, from `from` on.
    pub fn add(&self, file: Arc<File>, closes_on_exec: bool, from: usize) -> Result<u64> {
        let mut slots = self.0.lock();
        let is_free = |number: &usize| slots.get(*number).is_none_or(Option::is_none);
        let number = (from..MOST).find(is_free).ok_or(Errno::TOO_MANY_FILES)?;
        if number >= slots.len() {
            slots.resize(number + 1, None);
        }
        slots[number] = Some(Slot { file, closes_on_exec });
        Ok(number as u64)
    }

    /// Gives the file this number, whose file before is closed.
    pub fn put(&self, file: Arc<File>, closes_on_exec: bool, number: u64) -> Result<()> {
        let number = number as usize;
        if number >= MOST {
            return Err(Errno::BAD_FILE);
        }
        let mut slots = self.0.lock();
        if number >= slots.len() {
            slots.resize(number + 1, None);
        }
        let before = slots[number].replace(Slot { file, closes_on_exec });
        drop(slots); // closing may take time
        drop(before);
        Ok(())
    }

    /// Closes a file.
    pub fn close(&self, number: u64) -> Result<()> {
        let mut slots = self.0.lock();
        let slot = slots.get_mut(number as u32 as usize).and_then(Option::take);
        drop(slots); // closing may take time
        slot.map(drop).ok_or(Errno::BAD_FILE)
    }

    /// Whether `exec` closes it.
    pub fn closes_on_exec(&self, number: u64) -> Result<bool> {
        let slots = self.0.lock();
        let slot = slots.get(number as usize).and_then(Option::as_ref);
        slot.map(|slot| slot.closes_on_exec).ok_or(Errno::BAD_FILE)
    }

    /// Sets whether `exec` closes it.
    pub fn set_closes_on_exec(&self, number: u64, closes: bool) -> Result<()> {
        let mut slots = self.0.lock();
        let slot = slots.get_mut(number as usize).and_then(Option::as_mut);
        slot.map(|slot| slot.closes_on_exec = closes).ok_or(Errno::BAD_FILE)
    }

    /// Closes what `exec` closes; all, if the process ends.
    pub fn close_some(&self, all: bool) {
        let mut slots = self.0.lock();
        let is_one =
            |slot: &mut Option<Slot>| slot.as_ref().is_some_and(|slot| all || slot.closes_on_exec);
        let closed: Vec<_> =
            slots.iter_mut().filter_map(|slot| is_one(slot).then(|| slot.take())).collect();
        drop(slots); // closing may take time
        drop(closed);
    }
}
