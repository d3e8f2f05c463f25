//! Writing the journal: one thread at a time, for all that wait.
//!
//! A thread that waits for a commit becomes the *leader* if there is none: it takes the time B,
//! closes it, collects the records up to B from the rings, writes them as one frame, and makes B
//! the *durable horizon* D. Then those whose commits are not later go on, and one of the others
//! leads next. So one flush is under way at a time, and it takes along what has come meanwhile.
//! What nobody waits for, a thread in the background writes.
//!
//! # Memory order
//!
//! The leader holds a lock. Others read D, which it stores (Release) when the frame is on the disk
//! and the heap knows its objects; sessions read at the domain's floor, which is raised to D after
//! that.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use manycore::clock::Clock as _;
use manycore::mvrlu::MemberId;
use manycore::session::RawSession;
use manycore::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use manycore::sync::hint;
use parking_lot::{Condvar, Mutex};

use super::domain::Domain;
use super::monitor::Monitor;
use crate::device::Storage;
use crate::error::{Error, Result};
use crate::heap::words::with_words;
use crate::heap::{self, Heap};
use crate::journal::frame::Builder;
use crate::ring::Reader;
use crate::volume::Volume;

/// What a store has done and has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions that were found in the journal when the store was opened.
    pub recovered: u64,
    /// Frames that were written, each with one flush.
    pub frames: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Bytes of them.
    pub frame_bytes: u64,
    /// Images that were written since the store was opened.
    pub images: u64,
    /// All commits up to this stamp are on the disk.
    pub durable: u64,
}

/// Writes the journal.
pub struct Flusher {
    pub domain: Domain,
    heap: Arc<Heap>,
    /// All commits up to this stamp are on the disk.
    durable: AtomicU64,
    leader: Monitor<Leader>,
    /// Whether something was committed that nobody waits for.
    is_dirty: AtomicBool,
    is_ended: AtomicBool,
    /// The volume is poisoned.
    is_poisoned: AtomicBool,
    /// Wakes the thread in the background.
    bell: (Mutex<()>, Condvar),
    /// Keeps the directory locked.
    _storage: Arc<dyn Storage>,
}

/// What the leader has.
struct Leader {
    volume: Volume,
    rings: Vec<(MemberId, Reader)>,
    /// Records that were collected and are not on the disk.
    frame: Builder,
    /// They are all up to this.
    horizon: u64,
    stats: Stats,
}

impl Flusher {
    pub fn new(
        domain: Domain,
        heap: Arc<Heap>,
        volume: Volume,
        storage: Arc<dyn Storage>,
        recovered: u64,
    ) -> Self {
        let durable = domain.floor();
        let leader = Leader {
            volume,
            rings: Vec::new(),
            frame: Builder::default(),
            horizon: durable,
            stats: Stats { recovered, ..Stats::default() },
        };
        Self {
            domain,
            heap,
            durable: AtomicU64::new(durable),
            leader: Monitor::new(leader),
            is_dirty: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            is_poisoned: AtomicBool::new(false),
            bell: (Mutex::new(()), Condvar::new()),
            _storage: storage,
        }
    }

    /// Takes a thread's ring, of `ring_bytes` bytes.
    pub fn add(&self, member: MemberId, reader: Reader, ring_bytes: usize) -> Result<()> {
        let mut leader = self.leader.lock();
        leader.rings.retain(|(_, reader)| !reader.is_left());
        let needed = (leader.rings.len() as u64 + 1) * ring_bytes as u64;
        let capacity = leader.volume.capacity();
        if needed > capacity {
            return Err(Error::Full(format!(
                "the rings of all threads have {needed} bytes, the journal {capacity}: make Options::ring_bytes smaller"
            )));
        }
        leader.rings.push((member, reader));
        Ok(())
    }

    /// All commits up to this stamp are on the disk.
    pub fn durable(&self) -> u64 {
        // Acquire: partner of the Release in `publish`.
        self.durable.load(Ordering::Acquire)
    }

    pub fn stats(&self) -> Stats {
        let stats = self.leader.lock().stats;
        Stats { durable: self.durable(), ..stats }
    }

    /// Returns when a commit is on the disk.
    pub fn wait(&self, stamp: u64) -> Result<()> {
        while self.durable() < stamp {
            match self.leader.try_lock() {
                Some(mut leader) => self.flush(&mut leader, stamp)?,
                None => self.leader.wait(|| self.durable() < stamp),
            }
        }
        Ok(())
    }

    /// Fails if nothing gets onto the disk any more.
    pub fn check(&self) -> Result<()> {
        // Relaxed: a hint; a thread that waits for its commit gets the error in any case.
        if self.is_poisoned.load(Ordering::Relaxed) {
            self.leader.lock().volume.check()
        } else {
            Ok(())
        }
    }

    /// Returns when all that has committed before is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.wait(self.domain.clock().0.fresh())
    }

    /// Writes what has come, and an image.
    pub fn checkpoint(&self, is_last: bool) -> Result<()> {
        let stamp = self.domain.clock().0.fresh();
        let mut leader = self.leader.lock();
        self.flush(&mut leader, stamp)?;
        self.write_image(&mut leader, is_last)
    }

    /// Something was committed that nobody waits for.
    pub fn note(&self) {
        // Relaxed, both: the thread in the background looks again after its window.
        if !self.is_dirty.load(Ordering::Relaxed) && !self.is_dirty.swap(true, Ordering::Relaxed) {
            let _bell = self.bell.0.lock();
            self.bell.1.notify_one();
        }
    }

    /// Brings the durable horizon to this stamp or beyond.
    fn flush(&self, leader: &mut Leader, stamp: u64) -> Result<()> {
        while self.durable() < stamp {
            leader.volume.check()?;
            // A frame that could not be written is tried again as it is.
            if leader.frame.is_empty() {
                self.collect(leader, stamp);
            }
            self.write(leader)?;
        }
        Ok(())
    }

    /// Closes a time that is not before the stamp, and takes all records up to it.
    fn collect(&self, leader: &mut Leader, stamp: u64) {
        let clock = self.domain.clock();
        let horizon = loop {
            let now = clock.present();
            // Another CPU's clock may be a moment behind that of the leader before.
            if now >= stamp && now > leader.horizon {
                break now;
            }
            hint::pause();
        };
        self.domain.close(horizon);
        for (member, reader) in &mut leader.rings {
            // SAFETY: the member registered with this domain.
            let fate = || unsafe { self.domain.fate(*member, horizon) };
            reader.take(horizon, fate, |stamp, words| leader.frame.push_words(stamp, words));
        }
        leader.rings.retain(|(_, reader)| !reader.is_left());
        leader.horizon = horizon;
    }

    /// Puts what was collected onto the disk.
    fn write(&self, leader: &mut Leader) -> Result<()> {
        if !leader.frame.is_empty() {
            if leader.frame.size() as u64 > leader.volume.room() {
                self.write_image(leader, false)?;
            }
            let appended = leader.volume.append(&mut leader.frame, leader.horizon);
            self.note_poison(leader);
            appended?;
            leader.stats.frames += 1;
            leader.stats.transactions += u64::from(leader.frame.len());
            leader.stats.frame_bytes += leader.frame.size() as u64;
            if leader.frame.has_objects() {
                self.take_note(leader);
            }
            leader.frame.clear();
        }
        self.publish(leader);
        Ok(())
    }

    /// Tells the heap which objects are on the disk now.
    fn take_note(&self, leader: &mut Leader) {
        for record in leader.frame.records().expect("this thread has made the frame") {
            for entry in record.entries() {
                self.heap.commit(entry.expect("this thread has made the record"));
            }
        }
    }

    fn publish(&self, leader: &mut Leader) {
        self.domain.raise_floor(leader.horizon);
        // Release: partner of the Acquire in `durable`.
        self.durable.store(leader.horizon, Ordering::Release);
    }

    /// Writes all objects as they are at the durable horizon, which stands still meanwhile.
    fn write_image(&self, leader: &mut Leader, is_last: bool) -> Result<()> {
        let mut handle = self.domain.register();
        // SAFETY: a session, from begin to end; the heap's objects are live at this time.
        let result = unsafe {
            let horizon = handle.begin_at_floor(0);
            let mut objects = self.heap.live().into_iter().map(|(place, words)| {
                let bytes: &[u8] = with_words!(words, |W| {
                    zerocopy::IntoBytes::as_bytes(&*handle.deref(self.heap.link::<W>(place)))
                });
                heap::whole(place, bytes)
            });
            let result = leader.volume.write_image(horizon, &mut objects, is_last);
            drop(objects);
            handle.abort();
            result
        };
        self.note_poison(leader);
        leader.stats.images += u64::from(result.is_ok());
        result
    }

    /// Lets [`check`](Self::check) know, after the volume was written to.
    fn note_poison(&self, leader: &Leader) {
        // Relaxed: a hint.
        self.is_poisoned.store(leader.volume.check().is_err(), Ordering::Relaxed);
    }
}

/// The thread that writes what nobody waits for.
pub struct Background {
    thread: JoinHandle<()>,
    flusher: Arc<Flusher>,
}

impl Background {
    pub fn start(flusher: Arc<Flusher>, window: Duration) -> Result<Self> {
        let shared = flusher.clone();
        let thread = std::thread::Builder::new().name("timestone".to_owned());
        let thread = thread.spawn(move || shared.run(window));
        let thread = thread.map_err(Error::io("start a thread"))?;
        Ok(Self { thread, flusher })
    }

    pub fn stop(self) {
        let flusher = &self.flusher;
        // Relaxed: ordered by the lock of the bell.
        flusher.is_ended.store(true, Ordering::Relaxed);
        drop(flusher.bell.0.lock());
        flusher.bell.1.notify_one();
        // A panic there has been reported.
        let _ = self.thread.join();
    }
}

impl Flusher {
    fn run(&self, window: Duration) {
        let mut bell = self.bell.0.lock();
        // Relaxed, throughout: ordered by the lock, or looked at again after the window.
        while !self.is_ended.load(Ordering::Relaxed) {
            if !self.is_dirty.load(Ordering::Relaxed) {
                self.bell.1.wait(&mut bell);
                continue;
            }
            self.bell.1.wait_for(&mut bell, window);
            self.is_dirty.store(false, Ordering::Relaxed);
            let unlocked = || {
                // An error is that of the next who waits, too; without one, it is tried again after
                // the window.
                if self.sync().is_err() {
                    self.is_dirty.store(true, Ordering::Relaxed);
                }
            };
            parking_lot::MutexGuard::unlocked(&mut bell, unlocked);
        }
    }
}
