//! Address spaces of programs: areas, and page tables that are filled when pages are used.
//!
//! Addresses are in *blocks*. A fault takes one of the areas' locks, by the number of its block;
//! and so does a call about a part of one block after which there are the same areas as before.
//! Others take all locks. So threads whose pages are in different blocks do not meet, as long as
//! areas neither come nor go.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::area::{Area, Areas, PAGE, Protection, Source};
use super::frames::Frame;
use super::tables::{self, ADDRESS, Entry, NO_EXECUTE, PRESENT, USER, WRITABLE};
use super::{direct_map, shootdown, user};
use crate::call::errno::{Errno, Result};
use crate::sync::order::Rank;
use crate::sync::parted::Parted;
use crate::watch::counters::{Event, count};

/// A space.
pub struct Space {
    /// No other space has had it.
    pub number: u64,
    root: Frame,
    /// The CPUs that have its tables now.
    pub cpus: AtomicU64,
    areas: Parted<Areas>,
}

/// Bytes of a block.
const BLOCK: u64 = 64 << 10;

/// The block that contains a range; `None` if the range is in several.
fn block_of(start: u64, end: u64) -> Option<u64> {
    (start < end && start / BLOCK == (end - 1) / BLOCK).then_some(start / BLOCK)
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

fn up(address: u64) -> Result<u64> {
    address.checked_next_multiple_of(PAGE).filter(|&end| end <= user::END).ok_or(Errno::NO_MEMORY)
}

impl Space {
    /// An empty one.
    pub fn new() -> Result<Self> {
        Ok(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed), // Relaxed: a number
            root: tables::new_root().ok_or(Errno::NO_MEMORY)?,
            cpus: AtomicU64::new(0),
            areas: Parted::new(Rank::Space, Areas::default()),
        })
    }

    /// The physical address of its page tables.
    pub fn root(&self) -> u64 {
        self.root.address()
    }

    /// A copy of this address space. Pages are copied when one of the two is written.
    pub fn fork(&self) -> Result<Self> {
        let mut child = Self::new()?;
        let areas = self.areas.write();
        let mut result = Ok(());
        for area in areas.iter() {
            let root = self.root();
            tables::for_each(root, area.start, area.end, |address, entry| {
                if !area.source.is_shared() {
                    entry.fetch_and(!WRITABLE, Ordering::Relaxed); // Relaxed, all: under the lock
                }
                let value = entry.load(Ordering::Relaxed);
                match tables::entry(child.root(), address, true) {
                    Some(copy) => {
                        let frame = Frame::clone(&borrow(value));
                        copy.store(value & !ADDRESS | frame.into_raw(), Ordering::Relaxed);
                    }
                    None => result = Err(Errno::NO_MEMORY),
                }
            });
        }
        *child.areas.get_mut() = areas.clone();
        self.forget();
        drop(areas);
        result.map(|()| child)
    }

    fn forget(&self) {
        // SeqCst: after the change of the tables; partner of the scheduler's, which adds itself
        // before it loads them.
        shootdown::forget(self.cpus.load(Ordering::SeqCst));
    }

    /// Maps a range: at the address if `fixed` is set or the address is free, otherwise elsewhere.
    /// Earlier mappings in a fixed range are removed.
    pub fn map(
        &self,
        address: u64,
        bytes: u64,
        fixed: bool,
        protection: Protection,
        source: Source,
    ) -> Result<u64> {
        let bytes = up(bytes)?;
        if bytes == 0 || fixed && !address.is_multiple_of(PAGE) {
            return Err(Errno::INVALID);
        }
        let end = up(address.saturating_add(bytes));
        if fixed && matches!(source, Source::Zeros) && self.renew(address, end?, protection) {
            return Ok(address);
        }
        let mut areas = self.areas.write();
        let start = if fixed {
            self.remove(&mut areas, address, end?);
            address
        } else {
            let wish = up(address).unwrap_or(0);
            let fits = wish > 0
                && wish.checked_add(bytes).is_some_and(|end| end <= user::END)
                && areas.is_free(wish, wish + bytes);
            if fits { wish } else { areas.place(bytes)? }
        };
        areas.insert(Area::new(start, start + bytes, protection, source));
        Ok(start)
    }

    /// Replaces an area of zeros by zeros, if the range is in one block: then the areas stay as
    /// they are.
    fn renew(&self, start: u64, end: u64, protection: Protection) -> bool {
        let Some(block) = block_of(start, end) else { return false };
        let areas = self.areas.read(block);
        let same = areas.exactly(start, end).filter(|area| matches!(area.source, Source::Zeros));
        same.inspect(|area| {
            area.protect(protection);
            self.drop_pages(start, end);
        })
        .is_some()
    }

    /// Unmaps a range.
    pub fn unmap(&self, start: u64, bytes: u64) -> Result<()> {
        if !start.is_multiple_of(PAGE) || bytes == 0 {
            return Err(Errno::INVALID);
        }
        let end = up(start.checked_add(bytes).ok_or(Errno::INVALID)?)?;
        if self.areas.read(start / BLOCK).is_free(start, end) {
            return Ok(());
        }
        self.remove(&mut self.areas.write(), start, end);
        Ok(())
    }

    fn remove(&self, areas: &mut Areas, start: u64, end: u64) {
        areas.remove(start, end);
        self.drop_pages(start, end);
    }

    /// Unmaps the pages of a range; faults map them again as their areas say. The caller holds the
    /// lock of the range's block, or all locks.
    fn drop_pages(&self, start: u64, end: u64) {
        let mut frames = Vec::new();
        tables::for_each(self.root(), start, end, |_, entry| {
            frames.push(take(entry));
        });
        // No CPU may write to a frame that is in other use.
        if !frames.is_empty() {
            self.forget();
        }
    }

    /// Bytes of the area that begins at an address.
    pub fn bytes_from(&self, start: u64) -> Option<u64> {
        let areas = self.areas.read(start / BLOCK);
        areas.find(start).filter(|area| area.start == start).map(|area| area.end - start)
    }

    /// The contents of a range are forgotten (`madvise`).
    pub fn discard(&self, start: u64, bytes: u64) -> Result<()> {
        let end = up(start.checked_add(bytes).ok_or(Errno::INVALID)?)?;
        let start = start & !(PAGE - 1);
        let (_one, _all) = match block_of(start, end) {
            Some(block) => (Some(self.areas.read(block)), None),
            None => (None, Some(self.areas.write())),
        };
        self.drop_pages(start, end);
        Ok(())
    }

    /// Changes what may be done with a range.
    pub fn protect(&self, start: u64, bytes: u64, protection: Protection) -> Result<()> {
        if !start.is_multiple_of(PAGE) {
            return Err(Errno::INVALID);
        }
        let end = up(start.checked_add(bytes).ok_or(Errno::NO_MEMORY)?)?;
        if let Some(block) = block_of(start, end) {
            let areas = self.areas.read(block);
            if !areas.covers(start, end) {
                return Err(Errno::NO_MEMORY);
            }
            if let Some(area) = areas.exactly(start, end) {
                area.protect(protection);
                self.protect_pages(start, end, protection);
                return Ok(());
            }
        }
        let mut areas = self.areas.write();
        if !areas.covers(start, end) {
            return Err(Errno::NO_MEMORY);
        }
        areas.protect(start, end, protection);
        self.protect_pages(start, end, protection);
        Ok(())
    }

    /// Under the lock of the range's block, or all.
    fn protect_pages(&self, start: u64, end: u64, protection: Protection) {
        tables::for_each(self.root(), start, end, |_, entry| {
            // Writing comes back by a fault, which knows whether the frame is shared.
            let value = entry.load(Ordering::Relaxed) & (ADDRESS | PRESENT); // Relaxed: the lock
            entry.store(value | flags(protection) & !WRITABLE, Ordering::Relaxed); // as above
        });
        self.forget();
    }

    /// Sets where the heap begins, when a program does.
    pub fn set_heap(&self, start: u64) {
        self.areas.write().heap = (start, start);
    }

    /// Sets the heap's end, if that is possible; returns the heap's end.
    pub fn set_heap_end(&self, wanted: u64) -> u64 {
        let mut areas = self.areas.write();
        let (start, end) = areas.heap;
        if wanted < start || wanted > start + (16 << 30) {
            return end;
        }
        let (old, new) = (end.next_multiple_of(PAGE), wanted.next_multiple_of(PAGE));
        if new > old {
            if !areas.is_free(old, new) {
                return end;
            }
            let protection = Protection(Protection::READ | Protection::WRITE);
            areas.insert(Area::new(old, new, protection, Source::Zeros));
        } else if new < old {
            self.remove(&mut areas, new, old);
        }
        areas.heap.1 = wanted;
        wanted
    }

    /// Makes a mapping longer, at its place or at another (`mremap`); returns its address.
    pub fn grow(&self, start: u64, old: u64, new: u64, may_move: bool) -> Result<u64> {
        let (old, new) = (up(old)?, up(new)?);
        let mut areas = self.areas.write();
        let area = areas.find(start).cloned().ok_or(Errno::FAULT)?;
        if start + old > area.end {
            return Err(Errno::FAULT);
        }
        if new <= old {
            self.remove(&mut areas, start + new, start + old);
            return Ok(start);
        }
        if area.end == start + old && areas.is_free(area.end, start + new) {
            areas.remove(area.start, area.end);
            areas.insert(area.moved(area.start, start + new));
            return Ok(start);
        }
        if !may_move || area.start != start || area.end != start + old {
            return Err(Errno::NO_MEMORY);
        }
        let to = areas.place(new)?;
        areas.remove(start, start + old);
        areas.insert(area.moved(to, to + new));
        let mut result = Ok(to);
        tables::for_each(self.root(), start, start + old, |address, entry| {
            match tables::entry(self.root(), to + (address - start), true) {
                // Relaxed, both: under the lock.
                Some(moved) => moved.store(entry.swap(0, Ordering::Relaxed), Ordering::Relaxed),
                None => result = Err(Errno::NO_MEMORY),
            }
        });
        self.forget();
        result
    }

    /// Maps the page of a fault, if the access is allowed.
    pub fn fault(&self, address: u64, write: bool, execute: bool) -> bool {
        let areas = self.areas.read(address / BLOCK);
        let Some(area) = areas.find(address) else { return false };
        let is_allowed = match (write, execute) {
            (true, _) => area.protection().allows(Protection::WRITE),
            (_, true) => area.protection().allows(Protection::EXECUTE),
            _ => area.protection().0 != 0,
        };
        is_allowed && self.fill(area, address & !(PAGE - 1), write).is_some()
    }

    fn fill(&self, area: &Area, page: u64, write: bool) -> Option<()> {
        let entry = tables::entry(self.root(), page, true)?;
        let value = entry.load(Ordering::Relaxed); // Relaxed, all: under the block's lock
        if value & PRESENT == 0 {
            let frame = new_frame(area, page)?;
            // Release: partner of a CPU's walk through the tables, which sees the contents.
            entry.store(frame.into_raw() | PRESENT | flags(area.protection()), Ordering::Release);
        } else if write && value & WRITABLE == 0 {
            self.make_writable(area, entry, value)?;
        }
        Some(())
    }

    fn make_writable(&self, area: &Area, entry: &Entry, value: u64) -> Option<()> {
        if area.source.is_shared() || borrow(value).is_only() {
            entry.store(value | WRITABLE, Ordering::Relaxed); // Relaxed: under the block's lock
            return Some(());
        }
        count(Event::CopyFaults);
        let copy = Frame::copy_of(&borrow(value))?;
        let old = take(entry);
        // Release: partner of a CPU's walk through the tables, which sees the copy.
        entry.store(copy.into_raw() | PRESENT | flags(area.protection()), Ordering::Release);
        // Other threads may read the old frame, which may have another owner in a moment.
        self.forget();
        drop(old);
        Some(())
    }

    /// Writes into a space that is not in use yet.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let mut at = address;
        let mut left = bytes;
        while !left.is_empty() {
            let room = ((PAGE - at % PAGE) as usize).min(left.len());
            let place = self.page_for_writing(at)? + at % PAGE;
            // SAFETY: `page_for_writing` has returned the address of a frame of this space, which
            // no program runs in yet, and `room` ends with the page.
            unsafe {
                direct_map::physical(place).copy_from_nonoverlapping(left.as_ptr(), room);
            }
            at += room as u64;
            left = &left[room..];
        }
        Ok(())
    }

    fn page_for_writing(&self, address: u64) -> Result<u64> {
        if !self.fault(address, true, false) {
            return Err(Errno::NO_MEMORY);
        }
        let entry = tables::entry(self.root(), address, false).ok_or(Errno::NO_MEMORY)?;
        Ok(entry.load(Ordering::Relaxed) & ADDRESS) // Relaxed: the caller's own space
    }

    /// The key of a futex at this address, common to all processes that share the memory.
    pub fn futex_key(&self, address: u64) -> crate::sync::futex::Key {
        let areas = self.areas.read(address / BLOCK);
        if let Some(Area { start, source: Source::Shared(shared, first), .. }) = areas.find(address)
        {
            let page = first + (address - start) / PAGE;
            if let Some(frame) = shared.frame(page) {
                let address = frame.address() + address % PAGE;
                return crate::sync::futex::Key { space: 0, address };
            }
        }
        crate::sync::futex::Key { space: self.number, address }
    }

    /// The bytes of all areas, and those of mapped pages: for `ps`.
    pub fn sizes(&self) -> (u64, u64) {
        let areas = self.areas.read(0);
        let mut pages = 0;
        for area in areas.iter() {
            tables::for_each(self.root(), area.start, area.end, |_, _| pages += 1);
        }
        (areas.iter().map(|area| area.end - area.start).sum(), pages * PAGE)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        debug_assert!(*self.cpus.get_mut() == 0, "a space goes that a CPU uses");
        let root = self.root();
        for area in self.areas.get_mut().iter() {
            tables::for_each(root, area.start, area.end, |_, entry| drop(take(entry)));
        }
        // SAFETY: no CPU uses it: those that do have a reference to the space.
        unsafe { tables::free_user_tables(root) };
    }
}

fn flags(protection: Protection) -> u64 {
    let mut flags = 0;
    if protection.0 != 0 {
        flags |= USER;
    }
    if protection.allows(Protection::WRITE) {
        flags |= WRITABLE;
    }
    if !protection.allows(Protection::EXECUTE) {
        flags |= NO_EXECUTE;
    }
    flags
}

fn new_frame(area: &Area, page: u64) -> Option<Frame> {
    match &area.source {
        Source::Zeros => {
            count(Event::ZeroFaults);
            Frame::zeroed()
        }
        Source::Shared(shared, first) => shared.frame(first + (page - area.start) / PAGE),
        Source::File { content, offset, limit } => {
            count(Event::FileFaults);
            let frame = Frame::zeroed()?;
            let at = offset + (page - area.start);
            let bytes = limit.saturating_sub(at).min(PAGE) as usize;
            // SAFETY: the frame is new and no other thread has it; `bytes` is at most a page.
            let into = unsafe { core::slice::from_raw_parts_mut(frame.bytes(), bytes) };
            content.read_at(at, into);
            Some(frame)
        }
    }
}

/// The frame of an entry, whose reference stays there.
fn borrow(value: u64) -> core::mem::ManuallyDrop<Frame> {
    // SAFETY: an entry that is present counts as one reference to its frame, which `ManuallyDrop`
    // leaves to it.
    core::mem::ManuallyDrop::new(unsafe { Frame::from_raw(value & ADDRESS) })
}

/// The frame of an entry, which is empty then.
fn take(entry: &Entry) -> Frame {
    let value = entry.swap(0, Ordering::Relaxed); // Relaxed: under the block's lock, or all
    // SAFETY: an entry that is present counts as one reference to its frame, which the swap has
    // taken out of it.
    unsafe { Frame::from_raw(value & ADDRESS) }
}

/// The running process' address space. It is valid until the thread changes to another one, which
/// is its last use of this one.
pub fn current() -> Option<&'static Space> {
    crate::task::user::current().and_then(|user| user.space())
}
