//! Writing the journal: one thread at a time, for all that wait.
//!
//! If there is no leader, a thread that waits for a commit becomes the *leader*: it takes the time
//! B, closes it, collects the records up to B from the rings, writes them as one frame, and makes B
//! the *durable horizon* D. Then the threads whose commits are not later than D go on, and one of
//! the others leads next. So one flush is under way at a time, and it covers all commits that have
//! come during the flush before. A background thread writes commits for which no thread waits.
//!
//! # Memory order
//!
//! The leader holds a lock. Other threads read D. The leader stores D (Release) when the frame is
//! on the disk, the heap knows the frame's objects, and the domain's floor, at which sessions read,
//! was raised to D. The steps and their order are in [`protocol`](crate::protocol).

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use manycore::clock::Clock as _;
use manycore::mvrlu::MemberId;
use manycore::sync::atomic::{AtomicBool, Ordering};
use manycore::sync::mutation;

use super::bell::Bell;
use super::domain::Domain;
use super::frames::Collected;
use super::monitor::{Held, Monitor};
use super::wakers::{WaiterKey, Wakers};
use crate::device::Storage;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::journal::frame::Builder;
use crate::protocol::{Horizons, Rings};
use crate::ring::Reader;
use crate::sync::Mutex;
use crate::volume::{Images, Journal};

/// Statistics of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of transactions that were found in the journal when the store was opened.
    pub recovered: u64,
    /// Frames that were written.
    pub frames: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// The number of these that are calls of operations.
    pub operations: u64,
    /// The bytes of these frames.
    pub frame_bytes: u64,
    /// Images that were written since the store was opened.
    pub images: u64,
    /// All commits up to this stamp are on the disk.
    pub durable: u64,
}

/// Writes the journal, and images.
pub struct Flusher {
    pub domain: Domain,
    pub(super) heap: Arc<Heap>,
    horizons: Horizons,
    pub(super) leader: Monitor<Leader>,
    /// Held by the thread that writes an image. Taken before `leader`. None in memory.
    pub(super) images: Mutex<Option<Images>>,
    /// The journal is poisoned.
    is_poisoned: AtomicBool,
    /// Something was committed that no thread waits for.
    commits: Bell,
    /// An image is due.
    pub(super) images_due: Bell,
    /// The process that has opened the store.
    process: u32,
    /// Tasks that wait for commits.
    pub(super) wakers: Wakers,
    /// Keeps the directory locked. None in memory.
    storage: Option<Arc<dyn Storage>>,
}

/// What the leader has.
pub struct Leader {
    pub journal: Journal,
    rings: Rings,
    /// Records that were collected and are not written yet: all up to the horizon of `rings`.
    collected: Collected,
    /// Frames have no calls: an image is being written.
    pub is_values_only: bool,
    /// Frames that create or free objects, and are not on the disk yet.
    unflushed: Vec<Builder>,
    /// An image is due when the journal has this number of bytes.
    pub image_at: u64,
    pub stats: Stats,
}

/// How far a commit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The operating system has it.
    Written,
    /// The disk has it.
    Durable,
}

/// What has come of an attempt.
enum Outcome {
    Done,
    /// An image has to be written first.
    NoRoom,
}

impl Flusher {
    pub fn new(
        domain: Domain,
        heap: Arc<Heap>,
        journal: Journal,
        files: Option<(Images, Arc<dyn Storage>)>,
        recovered: u64,
    ) -> Self {
        let durable = domain.floor();
        let (images, storage) = files.unzip();
        let leader = Leader {
            image_at: journal.capacity() / 2,
            journal,
            rings: Rings::new(durable),
            collected: Collected::default(),
            is_values_only: false,
            unflushed: Vec::new(),
            stats: Stats { recovered, ..Stats::default() },
        };
        Self {
            domain,
            heap,
            horizons: Horizons::new(durable),
            leader: Monitor::new(leader),
            images: Mutex::new(images),
            is_poisoned: AtomicBool::new(false),
            commits: Bell::default(),
            images_due: Bell::default(),
            process: std::process::id(),
            wakers: Wakers::default(),
            storage,
        }
    }

    /// Whether there are no files.
    pub fn is_in_memory(&self) -> bool {
        self.storage.is_none()
    }

    /// Takes a thread's ring, of `ring_bytes` bytes.
    pub fn add(&self, member: MemberId, reader: Reader, ring_bytes: usize) -> Result<()> {
        let mut leader = self.leader.lock();
        leader.rings.forget_left();
        let needed = (leader.rings.len() as u64 + 1) * ring_bytes as u64;
        let capacity = leader.journal.capacity();
        if needed > capacity {
            return Err(Error::Full(format!(
                "the rings of all threads have {needed} bytes, the journal {capacity}: make Options::ring_bytes smaller"
            )));
        }
        leader.rings.add(member, reader);
        Ok(())
    }

    /// All commits up to this stamp are on the disk.
    pub fn durable(&self) -> u64 {
        self.horizons.durable()
    }

    pub fn stats(&self) -> Stats {
        let stats = self.leader.lock().stats;
        Stats { durable: self.durable(), ..stats }
    }

    /// Whether all commits up to this stamp have reached the given progress.
    pub fn horizon(&self, progress: Progress) -> u64 {
        match progress {
            Progress::Written => self.horizons.written(),
            Progress::Durable => self.horizons.durable(),
        }
    }

    /// Whether a commit is on the disk, or there is none.
    pub fn has(&self, stamp: u64) -> bool {
        self.is_in_memory() || self.durable() >= stamp
    }

    /// Returns when a commit is on the disk. For a store in memory it returns at once.
    pub fn wait(&self, stamp: u64) -> Result<()> {
        if self.is_in_memory() { Ok(()) } else { self.wait_until(Progress::Durable, stamp) }
    }

    /// Returns when a commit has come so far.
    pub fn wait_until(&self, progress: Progress, stamp: u64) -> Result<()> {
        if self.horizon(progress) >= stamp {
            return Ok(());
        }
        self.check_process()?;
        while self.horizon(progress) < stamp {
            match self.leader.try_lock() {
                Some(leader) => self.lead(leader, progress, stamp)?,
                None => self.leader.wait(|| self.horizon(progress) < stamp),
            }
        }
        Ok(())
    }

    /// Brings all commits up to the stamp to the progress, or makes room for that.
    fn lead(&self, mut leader: Held<'_, Leader>, progress: Progress, stamp: u64) -> Result<()> {
        match self.bring(&mut leader, progress, stamp)? {
            Outcome::Done => Ok(()),
            Outcome::NoRoom => {
                drop(leader);
                self.make_room()
            }
        }
    }

    /// Fails in a forked child: the files belong to its parent, and so do the threads that hold
    /// locks.
    pub fn check_process(&self) -> Result<()> {
        if self.is_elsewhere() {
            let cause = "the store is open in the process of which this is a child by fork";
            return Err(Error::Poisoned(cause.to_owned()));
        }
        Ok(())
    }

    /// Whether this is not the process that has opened the store.
    pub fn is_elsewhere(&self) -> bool {
        std::process::id() != self.process
    }

    /// Fails if nothing gets onto the disk any more.
    pub fn check(&self) -> Result<()> {
        // Relaxed: a hint; a thread that waits for its commit gets the error in any case.
        if self.is_poisoned.load(Ordering::Relaxed) {
            self.leader.lock().journal.check()
        } else {
            Ok(())
        }
    }

    /// Returns when all that has committed before is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.wait_until(Progress::Durable, self.domain.clock().0.fresh())
    }

    /// Notes a commit for which no thread waits. It has to be written within this window.
    pub fn note(&self, window: Duration) {
        self.commits.ring(window);
    }

    /// Writes the commits for which no thread waits, until the store is closed.
    pub fn write_in_background(&self, retry: Duration) {
        self.commits.answer(retry, || {
            // An error goes to the waiting tasks, and the commits are tried again after `retry`.
            let failure = self.sync().err();
            let is_done = failure.is_none();
            self.wakers.wake(self.durable(), failure);
            is_done
        });
    }

    /// Whether a commit is on the disk. If not, the waker's task is registered, and will be woken.
    pub fn poll(
        &self,
        stamp: u64,
        waiter: &mut Option<WaiterKey>,
        waker: &Waker,
    ) -> Poll<Result<()>> {
        let is_durable = || self.has(stamp);
        let (state, is_new) = self.wakers.poll(stamp, waiter, waker, is_durable);
        if is_new {
            self.note(Duration::ZERO);
        }
        state
    }

    /// Lets the threads in the background end.
    pub fn end(&self) {
        self.commits.end();
        self.images_due.end();
    }

    /// Brings all commits up to the stamp to the progress, if there is room.
    fn bring(&self, leader: &mut Leader, progress: Progress, stamp: u64) -> Result<Outcome> {
        while self.horizon(progress) < stamp {
            leader.journal.check()?;
            if self.horizon(Progress::Written) < stamp {
                // A frame that could not be written is tried again unchanged.
                if leader.collected.values().is_empty() {
                    self.collect(leader, stamp);
                }
                if !leader.has_room() {
                    return Ok(Outcome::NoRoom);
                }
                self.write(leader)?;
            }
            if progress == Progress::Durable {
                self.flush(leader)?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Takes all records up to a time that is not before the stamp.
    fn collect(&self, leader: &mut Leader, stamp: u64) {
        let Leader { rings, collected, .. } = leader;
        // SAFETY: `add` gets members of this domain only.
        unsafe { rings.collect(&self.domain, stamp, |stamp, words| collected.push(stamp, words)) }
    }

    /// Writes what was collected.
    fn write(&self, leader: &mut Leader) -> Result<()> {
        if !leader.collected.values().is_empty() {
            let (frame, calls) = leader.collected.frame(leader.is_values_only);
            leader.journal.write(frame, leader.rings.horizon())?;
            if !self.is_in_memory() {
                leader.stats.frames += 1;
                leader.stats.transactions += u64::from(frame.len());
                leader.stats.operations += calls;
                leader.stats.frame_bytes += frame.size() as u64;
            }
            if leader.collected.values().has_objects() {
                // The mistake: images have objects that are not on the disk.
                if mutation!("objects-before-flush") {
                    self.take_note(leader.collected.values());
                } else {
                    leader.unflushed.push(leader.collected.take());
                }
            }
            leader.collected.clear();
            if leader.journal.used() >= leader.image_at {
                self.images_due.ring(Duration::ZERO);
            }
        }
        self.horizons.note_written(leader.rings.horizon());
        Ok(())
    }

    /// Flushes the written frames to the disk, and lets sessions at the floor see them.
    pub(super) fn flush(&self, leader: &mut Leader) -> Result<()> {
        self.horizons.flush(&self.domain, || {
            let flushed = leader.journal.flush();
            self.note_poison(leader);
            flushed?;
            for frame in leader.unflushed.drain(..) {
                self.take_note(&frame);
            }
            Ok(())
        })
    }

    /// Tells the heap which objects are on the disk now.
    fn take_note(&self, frame: &Builder) {
        for record in frame.records().expect("this thread has made the frame") {
            for entry in record.entries() {
                self.heap.commit(entry.expect("this thread has made the record"));
            }
        }
    }

    /// Lets [`check`](Self::check) know, after the journal was written to.
    pub(super) fn note_poison(&self, leader: &Leader) {
        // Relaxed: a hint.
        self.is_poisoned.store(leader.journal.check().is_err(), Ordering::Relaxed);
    }
}

impl Leader {
    /// Whether what was collected fits into the journal.
    pub fn has_room(&mut self) -> bool {
        let (frame, _) = self.collected.frame(self.is_values_only);
        frame.is_empty() || frame.size() as u64 <= self.journal.room()
    }
}

impl std::fmt::Debug for Flusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flusher").field("durable", &self.durable()).finish_non_exhaustive()
    }
}
