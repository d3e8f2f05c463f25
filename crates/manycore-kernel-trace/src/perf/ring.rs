//! A perf event's ring buffer, which the kernel fills and we empty.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{perf_event_header, perf_event_mmap_page};
use perf_event_open_sys::ioctls;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// The size of a buffer, in bytes: two mebibytes, for some 5000 waits.
const ROOM_MAX: usize = 2 << 20;
/// The least size, for some 300 waits. Each CPU has a buffer that is never swapped out, so with
/// many CPUs each is smaller.
const ROOM_MIN: usize = 128 << 10;
const ROOM_OF_ALL: usize = 256 << 20;

/// The size of the largest records, which have a stack of calls. While there is this much room, no
/// record is lost.
const SCARCE: u64 = 8 << 10;

/// A mapped buffer.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    map: NonNull<u8>,
    page: usize,
    /// A power of two, as the kernel wants it.
    room: usize,
}

/// The size of each of `buffers` buffers.
pub fn room(buffers: usize) -> usize {
    let share = (ROOM_OF_ALL / buffers.max(1)).clamp(ROOM_MIN, ROOM_MAX);
    1 << share.ilog2()
}

impl Ring {
    /// Maps an event's buffer, of so much room: a power of two, and no less than a page.
    pub fn new(fd: OwnedFd, room: usize) -> io::Result<Self> {
        let page = page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let map = unsafe {
            mmap(std::ptr::null_mut(), page + room, protection, MapFlags::SHARED, &fd, 0)?
        };
        let map = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { fd, map, page, room })
    }

    /// Lets another event write here, too.
    pub fn take_in(&self, event: &OwnedFd) -> io::Result<()> {
        // SAFETY: both are events, and the call takes a number.
        let failed = unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), self.fd.as_raw_fd()) };
        if failed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Empties the ring: calls `each` with the type, the subtype and the bytes of each record.
    /// Returns whether there was so little room left that records may have been lost since.
    pub fn read(&mut self, mut each: impl FnMut(u32, u16, &[u8])) -> bool {
        let control = self.map.cast::<perf_event_mmap_page>().as_ptr();
        // SAFETY: the first page is this structure; both fields are aligned words that outlive the
        // borrow, and the kernel changes them as atomics.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*control).data_head),
                AtomicU64::from_ptr(&raw mut (*control).data_tail),
            )
        };
        // Acquire: partner of the kernel's barrier between a record and the head that covers it.
        let end = head.load(Ordering::Acquire);
        // Relaxed: only this thread writes it.
        let mut at = tail.load(Ordering::Relaxed);
        let is_full = end - at > (self.room as u64).saturating_sub(SCARCE);
        let mut record = Vec::new();
        while at < end {
            self.copy(at, size_of::<perf_event_header>(), &mut record);
            let kind = u32::from_ne_bytes(record[..4].try_into().expect("four bytes"));
            let misc = u16::from_ne_bytes(record[4..6].try_into().expect("two bytes"));
            let size = u16::from_ne_bytes(record[6..8].try_into().expect("two bytes"));
            let size = usize::from(size).max(size_of::<perf_event_header>());
            self.copy(at, size, &mut record);
            each(kind, misc, &record[size_of::<perf_event_header>()..]);
            at += size as u64;
        }
        // Release: the records are read before the kernel may overwrite them.
        tail.store(at, Ordering::Release);
        is_full
    }

    /// Copies a record, which may continue at the buffer's start.
    fn copy(&self, at: u64, size: usize, to: &mut Vec<u8>) {
        to.clear();
        let start = at as usize % self.room;
        let first = size.min(self.room - start);
        for (from, length) in [(start, first), (0, size - first)] {
            // SAFETY: within the mapped room, and behind the head: the kernel does not write there
            // until the tail has passed.
            to.extend_from_slice(unsafe {
                std::slice::from_raw_parts(self.map.as_ptr().add(self.page + from), length)
            });
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing borrows from it any more. It fails
        // for a bad address only.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.page + self.room) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_many_cpus_are_small() {
        assert_eq!([1, 2, 128].map(room), [ROOM_MAX; 3]);
        assert_eq!([129, 448, 1 << 20].map(room), [1 << 20, 512 << 10, ROOM_MIN]);
        assert!(
            [1, 100, 200, 448, 1000, 2048].iter().all(|cpus| cpus * room(*cpus) <= ROOM_OF_ALL)
        );
    }
}
