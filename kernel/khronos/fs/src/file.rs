//! The bytes of a file, in pages of 4 KiB.
//!
//! Many read at the same time without a shared line that is written: BRAVO's readers mark a slot of
//! a table. Who writes excludes all others of the same file. Pages that were never written are
//! zeros, and are not there.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use manycore::lock::Bravo;
use manycore::sync::atomic::{AtomicU64, Ordering};

use crate::Errno;
use crate::sync::page::{Guarded, PAGE_BYTES, Page};

/// The largest size, which a position of 63 bits allows.
const SIZE_MAX: u64 = i64::MAX as u64;

/// The bytes of a file.
pub(crate) struct File {
    pages: Guarded<BTreeMap<u64, Page>, Bravo>,
    /// Written by writers only.
    size: AtomicU64,
}

/// A part of a page.
struct Part {
    page: u64,
    from: usize,
    /// Of the bytes that are read or written.
    begin: usize,
    end: usize,
}

/// The parts of pages from a position on.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = Part> {
    let mut begin = 0;
    core::iter::from_fn(move || {
        let position = offset + begin as u64;
        #[expect(clippy::cast_possible_truncation, reason = "less than a page")]
        let from = (position % PAGE_BYTES as u64) as usize;
        let end = length.min(begin + PAGE_BYTES - from);
        let part = Part { page: position / PAGE_BYTES as u64, from, begin, end };
        (begin < length).then(|| {
            begin = end;
            part
        })
    })
}

impl File {
    pub fn new() -> Box<Self> {
        Box::new(Self { pages: Guarded::new(BTreeMap::new()), size: AtomicU64::new(0) })
    }

    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire) // Acquire: partner of the Releases of writers
    }

    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        self.pages.read(|pages| {
            let size = self.size();
            let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
            let length = left.min(buffer.len());
            for Part { page, from, begin, end } in parts(offset, length) {
                let into = &mut buffer[begin..end];
                match pages.get(&page) {
                    Some(page) => page.read(from, into),
                    None => into.fill(0),
                }
            }
            length
        })
    }

    /// Writes at a position, or at the end; returns where, and how many bytes.
    pub fn write(&self, offset: Option<u64>, data: &[u8]) -> Result<(u64, usize), Errno> {
        self.pages.write(|pages| {
            let size = self.size();
            let offset = offset.unwrap_or(size);
            let room = usize::try_from(SIZE_MAX.saturating_sub(offset)).unwrap_or(usize::MAX);
            let data = &data[..data.len().min(room)];
            if room == 0 && !data.is_empty() || offset > SIZE_MAX {
                return Err(Errno::TooLarge);
            }
            let mut written = 0;
            for Part { page, from, begin, end } in parts(offset, data.len()) {
                let page = match pages.entry(page) {
                    alloc::collections::btree_map::Entry::Occupied(page) => page.into_mut(),
                    alloc::collections::btree_map::Entry::Vacant(place) => match Page::new() {
                        Some(page) => place.insert(page),
                        None => break,
                    },
                };
                page.write(from, &data[begin..end]);
                written = end;
            }
            if written == 0 && !data.is_empty() {
                return Err(Errno::NoSpace);
            }
            let end = offset + written as u64;
            if written > 0 && end > size {
                // Release: partner of the Acquire in `size`
                self.size.store(end, Ordering::Release);
            }
            Ok((offset, written))
        })
    }

    pub fn truncate(&self, size: u64) -> Result<(), Errno> {
        if size > SIZE_MAX {
            return Err(Errno::TooLarge);
        }
        self.pages.write(|pages| {
            drop(pages.split_off(&size.div_ceil(PAGE_BYTES as u64)));
            #[expect(clippy::cast_possible_truncation, reason = "less than a page")]
            let left = (size % PAGE_BYTES as u64) as usize;
            if let (1.., Some(page)) = (left, pages.get_mut(&(size / PAGE_BYTES as u64))) {
                page.clear(left);
            }
            self.size.store(size, Ordering::Release); // Release: partner of the Acquire in `size`
            Ok(())
        })
    }
}
