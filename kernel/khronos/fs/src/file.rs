//! The bytes of a file, in pages of 4 KiB.
//!
//! Many threads read at the same time without writing a shared line: BRAVO's readers mark a slot of
//! a table. A writer excludes all others of the same file. Pages that were never written are zeros,
//! and do not exist.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use manycore::lock::Bravo;
use manycore::sync::atomic::{AtomicU64, Ordering};

use crate::Errno;
use crate::sync::page::{Guarded, PAGE_BYTES, Page};

/// The largest size: positions have 63 bits.
const SIZE_MAX: u64 = i64::MAX as u64;

/// The bytes of a file.
pub(crate) struct File {
    pages: Guarded<Pages, Bravo>,
    /// Written by writers only.
    size: AtomicU64,
}

#[derive(Default)]
struct Pages {
    pages: BTreeMap<u64, Page>,
    /// The changes since they were last taken; only if the file is kept on a disk.
    changed: Option<Changed>,
}

#[derive(Default)]
struct Changed {
    /// Pages that were written. Some of them may have been cut off since.
    pages: BTreeSet<u64>,
    /// The fewest bytes that the file has had.
    cut: Option<u64>,
}

/// The bytes of a page.
pub type PageBytes = [u8; PAGE_BYTES];

/// Bytes of a file that have changed.
#[derive(Debug)]
pub struct Taken {
    /// How many bytes the file has.
    pub size: u64,
    /// If the file has become shorter: the smallest number of pages that it had meanwhile. The
    /// pages beyond are removed.
    pub cut: Option<u64>,
    /// Pages that were written, by their numbers in the file.
    pub pages: Vec<(u64, Box<PageBytes>)>,
}

/// A part of a page.
struct Part {
    page: u64,
    from: usize,
    /// Begin and end of the bytes that are read or written.
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
    /// Creates a file without bytes. `records`: changes are recorded, because the file is kept on a
    /// disk.
    pub fn new(records: bool) -> Box<Self> {
        let changed = records.then(Changed::default);
        let pages = Guarded::new(Pages { pages: BTreeMap::new(), changed });
        Box::new(Self { pages, size: AtomicU64::new(0) })
    }

    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire) // Acquire: partner of the Releases of writers
    }

    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        self.pages.read(|Pages { pages, .. }| {
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
        self.pages.write(|Pages { pages, changed }| {
            let size = self.size();
            let offset = offset.unwrap_or(size);
            let room = usize::try_from(SIZE_MAX.saturating_sub(offset)).unwrap_or(usize::MAX);
            let data = &data[..data.len().min(room)];
            if room == 0 && !data.is_empty() || offset > SIZE_MAX {
                return Err(Errno::TooLarge);
            }
            let mut written = 0;
            for Part { page: number, from, begin, end } in parts(offset, data.len()) {
                let page = match pages.entry(number) {
                    alloc::collections::btree_map::Entry::Occupied(page) => page.into_mut(),
                    alloc::collections::btree_map::Entry::Vacant(place) => match Page::new() {
                        Some(page) => place.insert(page),
                        None => break,
                    },
                };
                page.write(from, &data[begin..end]);
                changed.as_mut().map(|changed| changed.pages.insert(number));
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
        self.pages.write(|Pages { pages, changed }| {
            drop(pages.split_off(&size.div_ceil(PAGE_BYTES as u64)));
            if let Some(Changed { cut, .. }) = changed
                && size < self.size()
            {
                *cut = Some(cut.unwrap_or(u64::MAX).min(size));
            }
            #[expect(clippy::cast_possible_truncation, reason = "less than a page")]
            let left = (size % PAGE_BYTES as u64) as usize;
            if let (1.., Some(page)) = (left, pages.get_mut(&(size / PAGE_BYTES as u64))) {
                page.clear(left);
                changed
                    .as_mut()
                    .map(|Changed { pages, .. }| pages.insert(size / PAGE_BYTES as u64));
            }
            self.size.store(size, Ordering::Release); // Release: partner of the Acquire in `size`
            Ok(())
        })
    }

    /// Takes pages that have changed, at most this many. From now on their changes count as
    /// durable.
    pub fn take(&self, most: usize) -> Taken {
        self.pages.write(|Pages { pages, changed }| {
            let mut taken = Taken { size: self.size(), cut: None, pages: Vec::new() };
            let Some(changed) = changed else { return taken };
            taken.cut = changed.cut.take();
            while taken.pages.len() < most
                && let Some(number) = changed.pages.pop_first()
            {
                let Some(page) = pages.get(&number) else { continue };
                let mut bytes = zeros();
                page.read(0, &mut bytes[..]);
                taken.pages.push((number, bytes));
            }
            taken
        })
    }

    /// What was taken is not kept.
    pub fn give_back(&self, lost_cut: Option<u64>, lost: &[u64]) {
        self.pages.write(|Pages { changed, .. }| {
            let Some(Changed { pages, cut }) = changed else { return };
            pages.extend(lost);
            *cut = [*cut, lost_cut].into_iter().flatten().min();
        });
    }

    /// Restores a page from the disk; `None` if there is no memory.
    pub fn restore(&self, number: u64, bytes: &PageBytes) -> Result<(), Errno> {
        let mut page = Page::new().ok_or(Errno::NoSpace)?;
        page.write(0, bytes);
        self.pages.write(|Pages { pages, .. }| pages.insert(number, page));
        Ok(())
    }

    pub fn restore_size(&self, size: u64) {
        self.size.store(size, Ordering::Release); // Release: partner of the Acquire in `size`
    }
}

/// A page of zeros, made where it stays.
fn zeros() -> Box<PageBytes> {
    let zeros = alloc::vec![0; PAGE_BYTES].into_boxed_slice();
    zeros.try_into().expect("as many as a page has")
}
