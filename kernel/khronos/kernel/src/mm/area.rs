//! The contents of a space: areas, in the order of their addresses.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use super::frames::Frame;
use crate::call::errno::{Errno, Result};
use crate::sync::order::Rank;
use crate::sync::sleep::Sleep;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// What may be done with an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection(pub u64);

impl Protection {
    /// Reading.
    pub const READ: u64 = 1;
    /// Writing.
    pub const WRITE: u64 = 2;
    /// Executing.
    pub const EXECUTE: u64 = 4;

    /// Whether it allows all of these.
    pub fn allows(self, what: u64) -> bool {
        self.0 & what == what
    }
}

/// A file whose bytes can be mapped.
pub trait Content: Send + Sync {
    /// Reads bytes from a position; the buffer beyond the file's end stays unchanged.
    fn read_at(&self, offset: u64, into: &mut [u8]);
}

/// Pages that several spaces have.
pub struct Shared(Sleep<BTreeMap<u64, Frame>>);

impl Shared {
    /// Zeros.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Sleep::new(Rank::Page, BTreeMap::new())))
    }

    /// The frame of a page, which is allocated at the first request.
    pub fn frame(&self, page: u64) -> Option<Frame> {
        let mut pages = self.0.lock();
        if let Some(frame) = pages.get(&page) {
            return Some(frame.clone());
        }
        let frame = Frame::zeroed()?;
        pages.insert(page, frame.clone());
        Some(frame)
    }
}

/// Where an area's pages come from.
#[derive(Clone)]
pub enum Source {
    /// Zeros.
    Zeros,
    /// A part of a file, between two positions; zeros follow.
    File {
        /// The file.
        content: Arc<dyn Content>,
        /// The position of the area's first byte.
        offset: u64,
        /// Where zeros begin.
        limit: u64,
    },
    /// Pages that other address spaces share, from this page on.
    Shared(Arc<Shared>, u64),
}

impl Source {
    /// The same, from `bytes` further on.
    fn from(&self, bytes: u64) -> Self {
        match self {
            Self::Zeros => Self::Zeros,
            Self::File { content, offset, limit } => {
                Self::File { content: content.clone(), offset: offset + bytes, limit: *limit }
            }
            Self::Shared(shared, page) => Self::Shared(shared.clone(), page + bytes / PAGE),
        }
    }

    /// Whether writes go to the pages of others.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(..))
    }
}

/// A part of a space.
pub struct Area {
    /// Its first address.
    pub start: u64,
    /// Behind its last.
    pub end: u64,
    /// What may be done with it.
    protection: AtomicU64,
    /// Where its pages come from.
    pub source: Source,
}

impl Area {
    /// From one address to another.
    pub fn new(start: u64, end: u64, protection: Protection, source: Source) -> Self {
        Self { start, end, protection: AtomicU64::new(protection.0), source }
    }

    /// What may be done with it.
    pub fn protection(&self) -> Protection {
        // Relaxed, as below: under its space's locks.
        Protection(self.protection.load(Ordering::Relaxed))
    }

    /// The same between two other addresses.
    pub fn moved(&self, start: u64, end: u64) -> Self {
        Self::new(start, end, self.protection(), self.source.clone())
    }

    /// Changes that; written only if it is another.
    pub fn protect(&self, protection: Protection) {
        if self.protection() != protection {
            self.protection.store(protection.0, Ordering::Relaxed);
        }
    }
}

impl Clone for Area {
    fn clone(&self) -> Self {
        self.moved(self.start, self.end)
    }
}

/// All areas of a space.
#[derive(Clone, Default)]
pub struct Areas {
    /// Each area has cache lines of its own: its protection changes while other areas are read.
    list: BTreeMap<u64, Box<Area>>,
    /// Where the heap begins, and ends.
    pub heap: (u64, u64),
}

/// Where mappings go for which no address is asked.
const ANYWHERE: core::ops::Range<u64> = 0x7f00_0000_0000..0x7fff_0000_0000;

impl Areas {
    /// The area of an address.
    pub fn find(&self, address: u64) -> Option<&Area> {
        let (_, area) = self.list.range(..=address).next_back()?;
        (address < area.end).then_some(&**area)
    }

    /// The area that is just this range.
    pub fn exactly(&self, start: u64, end: u64) -> Option<&Area> {
        self.find(start).filter(|area| (area.start, area.end) == (start, end))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Area> {
        self.list.values().map(|area| &**area)
    }

    /// Those that have a part in the range.
    fn touching(&self, start: u64, end: u64) -> impl Iterator<Item = &Area> {
        let first = self.find(start).map_or(start, |area| area.start);
        self.list.range(first..end).map(|(_, area)| &**area)
    }

    /// Whether all of the range is in areas.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.find(at) {
                Some(area) => at = area.end,
                None => return false,
            }
        }
        true
    }

    /// Whether no area has a part in the range.
    pub fn is_free(&self, start: u64, end: u64) -> bool {
        self.touching(start, end).next().is_none()
    }

    /// A place that is free.
    pub fn place(&self, bytes: u64) -> Result<u64> {
        let mut at = ANYWHERE.start;
        for area in self.list.range(ANYWHERE).map(|(_, area)| area) {
            if area.start - at >= bytes {
                break;
            }
            at = area.end;
        }
        if bytes <= ANYWHERE.end - at { Ok(at) } else { Err(Errno::NO_MEMORY) }
    }

    /// Adds an area to a range that is free.
    pub fn insert(&mut self, area: Area) {
        debug_assert!(self.is_free(area.start, area.end), "two areas overlap");
        self.list.insert(area.start, Box::new(area));
    }

    /// Makes the address a border between areas.
    fn split(&mut self, at: u64) {
        let Some(area) = self.find(at).filter(|area| area.start < at) else { return };
        let before = area.moved(area.start, at);
        let source = area.source.from(at - area.start);
        let behind = Area::new(at, area.end, area.protection(), source);
        self.list.insert(at, Box::new(behind));
        self.list.insert(before.start, Box::new(before));
    }

    /// Takes the range out of areas.
    pub fn remove(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        self.list.retain(|&at, _| !(start..end).contains(&at));
    }

    /// Changes what may be done with the range.
    pub fn protect(&mut self, start: u64, end: u64, protection: Protection) {
        self.split(start);
        self.split(end);
        self.list.range(start..end).for_each(|(_, area)| area.protect(protection));
    }
}
