//! A thread's log: versions one after the other, in segments.
//!
//! ```text
//!    tail            scan                 published
//!     |  detached     |  committed, or aborted |  of the present transaction
//!     v               v                        v
//!   [ segment ] --> [ segment ] -----------> [ segment ]        spare: [ segment ] [ segment ]
//! ```
//!
//! Only its thread appends. A thread that holds the right to reclaim (usually the log's own thread)
//! moves `scan` and `tail`. Segments that the tail has left become spare, and the log's thread
//! reuses them. So the log is circular, and the segment that was used last is reused first.
//! Segments are written once when they are created, so that no page fault remains for later.

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::ptr::null_mut;

use super::object::{Dying, Version};
use crate::clock::UNDECIDED;
use crate::session::object::FREED;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::order;

/// A segment's first line, or more of them where atomics are large.
#[repr(C, align(64))]
pub(super) struct Segment {
    /// The segment that was filled next; null until all versions in this one are published.
    next: AtomicPtr<Segment>,
    /// Where what is published ends, from the segment's begin.
    used: AtomicUsize,
    /// The one that was made before.
    made_before: *mut Segment,
}

const FIRST: usize = size_of::<Segment>();

/// The number of versions with this much room that a segment of this many bytes holds.
pub(super) fn versions_in(segment_bytes: usize, room: usize) -> usize {
    (segment_bytes - FIRST) / room
}

/// A place in a log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    segment: *mut Segment,
    offset: usize,
}

impl Position {
    fn start(segment: *mut Segment) -> Self {
        Self { segment, offset: FIRST }
    }

    /// The version at this position; none at the end of the published ones. Goes on to the next
    /// segment, and passes the old one to `leave`.
    pub fn version(&mut self, mut leave: impl FnMut(*mut Segment)) -> Option<*mut Version> {
        loop {
            // SAFETY: a position is made of a segment of its log, and segments are there for as
            // long as that.
            let segment = unsafe { &*self.segment };
            // Acquire: partner of the Release in `publish`.
            let next = segment.next.load(Ordering::Acquire);
            // Acquire: partner of the Release in `publish`.
            if self.offset < segment.used.load(order!(Acquire, "mvrlu-used")) {
                // SAFETY: the published part of a segment is within it, and this offset is before
                // its end.
                return Some(unsafe { self.segment.byte_add(self.offset) }.cast());
            }
            if next.is_null() {
                return None;
            }
            leave(self.segment);
            *self = Self::start(next);
        }
    }

    /// Goes past a version of this size.
    pub fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
    }
}

/// What the thread has of its log.
pub(super) struct Writer {
    end: Position,
    /// Segments that the present transaction has filled, and the end of each.
    filled: Vec<(Position, *mut Segment)>,
    spare: *mut Segment,
    /// The number of segments, and how many were ever begun.
    segments: usize,
    begun: usize,
    /// Versions ever published.
    published: usize,
    unpublished: usize,
}

// SAFETY: its segments belong to the log; those that are filled and the end are written by the one
// thread that has the writer, which may be another than before.
unsafe impl Send for Writer {}

/// What all have of it.
pub(super) struct Log {
    segment_bytes: usize,
    spare: AtomicPtr<Segment>,
    last_made: AtomicPtr<Segment>,
    /// How many segments were ever given back.
    given_back: AtomicUsize,
    /// The number of versions that were ever published, and that of versions that were ever
    /// discarded.
    published: AtomicUsize,
    discarded: AtomicUsize,
    reclaiming: AtomicBool,
    tail: UnsafeCell<Tail>,
}

/// Versions up to here were detached by then.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub end: Position,
    pub stamp: u64,
}

/// How many batches wait for their grace periods.
pub(super) const BATCHES: usize = 4;

/// Where the log begins, for the thread that reclaims.
pub(super) struct Tail {
    pub tail: Position,
    pub scan: Position,
    pub batches: Vec<Batch>,
}

impl Log {
    /// With this many segments of this size, a multiple of 64.
    pub fn new(segment_bytes: usize, segments: usize) -> (Self, Writer) {
        let start = Position { segment: null_mut(), offset: 0 };
        let log = Self {
            segment_bytes,
            spare: AtomicPtr::new(null_mut()),
            last_made: AtomicPtr::new(null_mut()),
            given_back: AtomicUsize::new(0),
            published: AtomicUsize::new(0),
            discarded: AtomicUsize::new(0),
            reclaiming: AtomicBool::new(false),
            tail: UnsafeCell::new(Tail {
                tail: start,
                scan: start,
                batches: Vec::with_capacity(BATCHES),
            }),
        };
        let first = Position::start(log.new_segment());
        log.tail.with_mut(|tail| {
            // SAFETY: the log has just been made, and no other thread has it.
            let tail = unsafe { &mut *tail };
            (tail.tail, tail.scan) = (first, first);
        });
        // SAFETY: a new segment of this log, which no other thread has.
        (1..segments).for_each(|_| unsafe { log.give_back(log.new_segment()) });
        log.given_back.store(0, Ordering::Relaxed); // Relaxed: no other thread has the log yet
        let writer = Writer {
            end: first,
            filled: Vec::with_capacity(8),
            spare: null_mut(),
            segments,
            begun: 1,
            published: 0,
            unpublished: 0,
        };
        (log, writer)
    }

    fn layout(&self) -> Layout {
        Layout::from_size_align(self.segment_bytes, 64).expect("a segment's size is reasonable")
    }

    fn new_segment(&self) -> *mut Segment {
        // SAFETY: a segment has at least its head, so that the layout is not of size 0.
        let memory = unsafe { alloc(self.layout()) };
        if memory.is_null() {
            handle_alloc_error(self.layout());
        }
        let made_before = self.last_made.load(Ordering::Relaxed); // Relaxed: of this thread
        let segment = memory.cast::<Segment>();
        // SAFETY: new memory of `segment_bytes`, aligned to 64, which is at least as large as a
        // `Segment`; all of it is written, so that it has its pages.
        unsafe {
            memory.write_bytes(0, self.segment_bytes);
            segment.write(Segment {
                next: AtomicPtr::new(null_mut()),
                used: AtomicUsize::new(FIRST),
                made_before,
            });
        }
        // Relaxed: followed at the domain's end, after which no other thread is left.
        self.last_made.store(segment, Ordering::Relaxed);
        segment
    }

    /// Takes back a segment that the tail has left.
    ///
    /// # Safety
    ///
    /// The segment belongs to this log. No thread uses it, or a version in it, any more.
    pub unsafe fn give_back(&self, segment: *mut Segment) {
        // SAFETY: the segment is of this log, and no other thread touches it before it is taken
        // again (contract of this function).
        let s = unsafe { &*segment };
        s.used.store(FIRST, Ordering::Relaxed); // Relaxed: released by the line with `release`
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.spare.load(Ordering::Relaxed);
        loop {
            s.next.store(head, Ordering::Relaxed); // Relaxed: as above
            // Release: partner of the Acquire in `take_spare`; a thread that wrote in the segment
            // is done.
            let release = Ordering::Release;
            match self.spare.compare_exchange_weak(head, segment, release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(changed) => head = changed,
            }
        }
        self.given_back.fetch_add(1, Ordering::Relaxed); // Relaxed: a count that decides when to reclaim
    }

    /// Counts versions that were discarded. The caller has the right to reclaim.
    pub fn count_discarded(&self, versions: usize) {
        // Relaxed, both: a count that decides where to look.
        let so_far = self.discarded.load(Ordering::Relaxed);
        self.discarded.store(so_far + versions, Ordering::Relaxed);
    }

    /// Removes the objects that own their values, and were freed by versions that are not
    /// discarded. For the domain's end: no thread uses the log any more.
    pub fn take_freed(&self, dying: &mut Dying) {
        self.reclaim(|tail| {
            while let Some(version) = tail.tail.version(|_| ()) {
                // SAFETY: the version is published, and not discarded: the tail is at it.
                let version = unsafe { &*version };
                tail.tail.advance(version.kind.room());
                // Relaxed: no other thread is left.
                let is_committed = version.stamp.load(Ordering::Relaxed) < UNDECIDED;
                if version.kind.drops && version.has(FREED) && is_committed {
                    // SAFETY: the object ended with this version, which is the only record of its
                    // end. It belongs to the domain, and no thread uses it any more.
                    unsafe { dying.push(version.master(), version.kind) };
                }
            }
        });
    }

    /// Whether there may be versions in it.
    pub fn may_have_versions(&self) -> bool {
        // Relaxed, both: a hint.
        self.published.load(Ordering::Relaxed) != self.discarded.load(Ordering::Relaxed)
    }

    /// Runs `f` with the right to reclaim, unless another thread has it.
    pub fn reclaim(&self, f: impl FnOnce(&mut Tail)) -> bool {
        // Relaxed: a hint, and on failure.
        let taken = self.reclaiming.load(Ordering::Relaxed);
        // Acquire: partner of the Release below.
        let done = order!(Acquire, "mvrlu-right-take");
        if taken || self.reclaiming.compare_exchange(false, true, done, Ordering::Relaxed).is_err()
        {
            return false;
        }
        // SAFETY: `reclaiming` admits one thread at a time, and its Acquire and Release order one
        // thread's accesses before the next's; `tail` is accessed only here.
        self.tail.with_mut(|tail| f(unsafe { &mut *tail }));
        // Release: partner of the Acquire above.
        self.reclaiming.store(false, order!(Release, "mvrlu-right-give"));
        true
    }
}

impl Writer {
    /// Room for a version of this size; none if the log is full. Also returns whether a segment was
    /// begun.
    #[inline]
    pub fn append(&mut self, log: &Log, bytes: usize, most: usize) -> Option<(*mut Version, bool)> {
        let begins = self.end.offset + bytes > log.segment_bytes;
        if begins {
            self.begin_segment(log, bytes, most)?;
        }
        // SAFETY: the segment has room for this many bytes from the offset on, by the test above,
        // or because `begin_segment` has found a new one that has.
        let place = unsafe { self.end.segment.byte_add(self.end.offset) };
        self.end.offset += bytes;
        self.unpublished += 1;
        Some((place.cast(), begins))
    }

    /// Takes back the room of the version that was appended last, and that no other thread has
    /// seen.
    pub fn take_back(&mut self, bytes: usize) {
        self.end.offset -= bytes;
        self.unpublished -= 1;
    }

    #[cold]
    fn begin_segment(&mut self, log: &Log, bytes: usize, most: usize) -> Option<()> {
        assert!(
            FIRST + bytes <= log.segment_bytes,
            "an object of {bytes} bytes does not fit into a log of segments of {}: make Config::segment_bytes larger",
            log.segment_bytes
        );
        assert!(
            self.filled.len() + 1 < most,
            "a transaction fills a whole log of {most} segments: make it smaller, or Config::segments_max larger"
        );
        let segment = self.take_spare(log).or_else(|| {
            (self.segments < most).then(|| {
                self.segments += 1;
                log.new_segment()
            })
        })?;
        self.begun += 1;
        self.filled.push((self.end, segment));
        self.end = Position::start(segment);
        Some(())
    }

    /// Whether the present transaction leaves this many segments besides the one that it fills.
    #[cfg(not(loom))]
    pub fn has_room(&self, most: usize) -> bool {
        self.filled.len() + 3 < most
    }

    /// A recently returned segment, because it is in this CPU's cache.
    fn take_spare(&mut self, log: &Log) -> Option<*mut Segment> {
        // Acquire: partner of the Release in `give_back`.
        let mut given_back = log.spare.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null, or a spare segment, which the swap has taken from all and so is this
        // thread's; segments are there for as long as their log.
        while let Some(segment) = unsafe { given_back.as_ref() } {
            // Relaxed: as above.
            let next = segment.next.swap(self.spare, Ordering::Relaxed);
            (self.spare, given_back) = (given_back, next);
        }
        let segment = self.spare;
        // SAFETY: null, or a spare segment, which the swap has taken from all and so is this
        // thread's; segments are there for as long as their log.
        let next = unsafe { segment.as_ref()? }.next.swap(null_mut(), Ordering::Relaxed); // Relaxed: as above
        self.spare = next;
        Some(segment)
    }

    /// Allows the appended versions to be reclaimed: their transaction has ended.
    pub fn publish(&mut self, log: &Log) {
        for (end, next) in self.filled.drain(..) {
            // SAFETY: this writer has begun the segment, and segments are there for as long as
            // their log.
            let segment = unsafe { &*end.segment };
            // Release, both: partner of the Acquire in `Position::version`.
            segment.used.store(end.offset, Ordering::Release);
            segment.next.store(next, Ordering::Release);
        }
        // SAFETY: this writer has begun the segment, and segments are there for as long as their
        // log.
        let segment = unsafe { &*self.end.segment };
        // Release: partner of the Acquire in `Position::version`.
        segment.used.store(self.end.offset, order!(Release, "mvrlu-publish"));
        self.published += core::mem::take(&mut self.unpublished);
        log.published.store(self.published, Ordering::Relaxed); // Relaxed: a hint
    }

    /// How many segments have versions in them.
    pub fn live(&self, log: &Log) -> usize {
        self.begun - log.given_back.load(Ordering::Relaxed) // Relaxed: a count that decides when to reclaim
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.segments
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut segment = self.last_made.load(Ordering::Relaxed); // Relaxed: no other thread is left
        while !segment.is_null() {
            // SAFETY: `new_segment` has allocated it with this layout and written its head; handles
            // and sessions borrow the log's owner, and are gone.
            unsafe {
                let before = (*segment).made_before;
                dealloc(segment.cast(), self.layout());
                segment = before;
            }
        }
    }
}
