//! `flat-combining`: the thread that gets the lock runs the sections of the waiting threads.
//!
//! # Idea
//!
//! A thread that finds the lock taken publishes its section in a record, and waits until the
//! section has run. The thread that holds the lock, the *combiner*, walks through the list of
//! records and runs the published sections before it releases the lock. The data and the lock then
//! stay in one CPU's cache for many sections, each of which costs two transfers of a record's line.
//! A waiting thread does not depend on another to begin: it tries the lock itself, and is the next
//! combiner.
//!
//! # Source
//!
//! D. Hendler, I. Incze, N. Shavit and M. Tzafrir, "Flat Combining and the
//! Synchronization-Parallelism Tradeoff", SPAA 2010: the list, the passes, and that records which
//! are idle for long are removed from the list. There each thread has a record permanently. Here
//! records belong to the lock, and a thread takes one for the length of a section, preferably that
//! of its CPU. So threads may come and go, and nothing is left behind. If more than 64 threads wait
//! at the same time, the others wait for a record. A thread that finds the lock free publishes
//! nothing. A thread that has waited for some microseconds sleeps.
//!
//! # Memory order
//!
//! A record passes from thread to thread: its state is written with Release by the thread that
//! passes it on, and read with Acquire by the thread that takes it. The data belongs to the
//! combiner, and passes to the next one with the lock (Release, Acquire).
//!
//! A thread sleeps only if another is going to run its section. It adds itself to the count of
//! threads that went to sleep, and then reads the lock; a combiner releases the lock, and then
//! reads the count. All four are sequentially consistent, so one of the two comes later, and sees
//! the other. Either the thread sees the lock free, and takes it; or the combiner sees that the
//! count has changed since its last pass, and makes another pass, unless another thread has the
//! lock by then, which has the same obligation. If the count is unchanged, the combiner's last pass
//! has seen the records of all sleepers (Acquire).
//!
//! # Cost
//!
//! Uncontended: two read-modify-writes of the lock, and a read of each record of the list.
//! Contended: a section costs its thread a compare-and-swap of a record's line, and costs the
//! combiner another one. The lock takes 8 KiB.
//!
//! # When not to use it
//!
//! For long sections: they run one after the other on one CPU. Its thread works for the others
//! meanwhile, and returns to its own work only when no thread publishes a section any more. A
//! section runs on any thread, so it must not use data bound to its own thread, enter the same lock
//! again, or fork.

mod list;
mod record;

use list::List;
use record::{Job, Record};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::panic::{self, Payload};
use crate::sync::{CachePadded, clock, const_new, hint, order, process, store_load, tuning};
use crate::{LockInfo, Order};

/// A combiner holds the lock. The bits from the third on are the generation of the process.
const HELD: u32 = 1;
/// The combiner, which is the first thread in the child of a fork, also removes the parent's
/// records.
const CLEARING: u32 = 2;

/// The lock when it is free.
#[inline]
fn free() -> u32 {
    process::generation() << 2
}

/// The number of passes of a combiner, as long as each of them finds a section to run.
const PASSES: usize = if cfg!(loom) { 1 } else { 4 };

/// Data, and sections that run with the data one at a time, on whichever thread owns the lock.
///
/// ```
/// use manycore::delegate::FlatCombining;
///
/// let words = FlatCombining::new(Vec::new());
/// std::thread::scope(|s| {
///     for word in ["flat", "combining"] {
///         let words = &words;
///         s.spawn(move || words.with(|words| words.push(word)));
///     }
/// });
/// assert_eq!(words.with(|words| words.len()), 2);
/// ```
pub struct FlatCombining<T> {
    lock: CachePadded<AtomicU32>,
    /// How often a thread has gone to sleep.
    sleeps: AtomicU32,
    list: List<T>,
    data: UnsafeCell<T>,
}

// SAFETY: only the combiner accesses the data, and there is one at a time, in any thread
// (`T: Send`). A job passes to it with its section, which is `Send`, and comes back before `with`
// returns.
unsafe impl<T: Send> Sync for FlatCombining<T> {}
// SAFETY: while the value is moved no thread is in `with`, so that nothing is published; the data
// may go to another thread.
unsafe impl<T: Send> Send for FlatCombining<T> {}

/// The right to be the combiner: the lock's word when it is free again.
struct CombinerToken(u32);

/// A section, and then what came of it.
struct Section<F, R> {
    section: Option<F>,
    result: Option<Result<R, Payload>>,
}

impl FlatCombining<()> {
    /// The row in `manycore locks`.
    pub const INFO: LockInfo = LockInfo {
        name: "flat-combining",
        summary: "who gets the lock runs the sections of those who wait; spins, then sleeps",
        source: "Hendler, Incze, Shavit & Tzafrir, SPAA 2010",
        order: Order::Barging,
        blocks: true,
    };
}

impl<T> FlatCombining<T> {
    const_new! {
        /// Creates one with this data.
        pub fn new(data: T) -> Self {
            Self {
                lock: CachePadded(AtomicU32::new(0)),
                sleeps: AtomicU32::new(0),
                list: List::new(),
                data: UnsafeCell::new(data),
            }
        }
    }

    /// Tries to become the combiner.
    #[inline]
    fn try_lock(&self) -> Option<CombinerToken> {
        // SeqCst: partner of the swap in `combine`.
        let word = self.lock.load(Ordering::SeqCst);
        if word & HELD != 0 {
            return None;
        }
        if word != free() {
            return self.try_lock_after_fork(word);
        }
        // Acquire: partner of the swap in `combine`. Relaxed on failure: nothing was acquired.
        let (done, failed) = (order!(Acquire, "combining-lock"), Ordering::Relaxed);
        self.lock
            .compare_exchange(word, word | HELD, done, failed)
            .is_ok()
            .then_some(CombinerToken(word))
    }

    #[cold]
    fn try_lock_after_fork(&self, word: u32) -> Option<CombinerToken> {
        // Relaxed, both: what the parent did came before the fork.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let clearing = free() | HELD | CLEARING;
        self.lock.compare_exchange(word, clearing, done, failed).ok()?;
        self.list.clear();
        // Release: partner of the Acquire in `lock_or_claim`.
        self.lock.store(free() | HELD, Ordering::Release);
        Some(CombinerToken(free()))
    }

    /// Runs what is published, and releases the lock.
    fn combine(&self, token: &CombinerToken) {
        loop {
            // Acquire: partner of the addition in `sleep`. A thread that is counted has published
            // before.
            let seen = self.sleeps.load(order!(Acquire, "combining-seen"));
            let _idle = (0..PASSES).any(|_| !self.list.pass(&self.data));
            // SeqCst: partner of the load in `try_lock`; and it releases the data.
            self.lock.swap(token.0, order!(SeqCst, "combining-release"));
            store_load!("combining-look");
            // SeqCst: partner of the addition in `sleep`.
            if self.sleeps.load(Ordering::SeqCst) == seen || self.try_lock().is_none() {
                return;
            }
        }
    }

    /// Waits until the section in the record has run, or runs it.
    fn wait(&self, record: &Record<T>) {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        while !record.is_done() {
            if let Some(token) = self.try_lock() {
                return self.combine(&token);
            }
            if clock::has_passed(start, limit) {
                return self.sleep(record);
            }
            hint::spin_loop();
        }
    }

    #[cold]
    fn sleep(&self, record: &Record<T>) {
        // SeqCst: partner of the load in `combine`, see the page.
        self.sleeps.fetch_add(1, Ordering::SeqCst);
        store_load!("combining-sleep");
        match self.try_lock() {
            Some(token) => self.combine(&token),
            None => record.sleep(),
        }
    }

    /// Becomes the combiner, or claims a record; waits if necessary.
    #[cold]
    fn lock_or_claim(&self) -> Result<CombinerToken, &Record<T>> {
        let mut pause_ns = 1_000;
        loop {
            if let Some(token) = self.try_lock() {
                return Ok(token);
            }
            // Acquire: partner of the Release in `try_lock_after_fork`.
            let word = self.lock.load(Ordering::Acquire);
            assert!(
                word & HELD == 0 || word & !(HELD | CLEARING) == free(),
                "the process was forked while another thread was at this data"
            );
            if word & CLEARING == 0
                && let Some(record) = self.list.claim()
            {
                return Err(record);
            }
            hint::sleep(pause_ns);
            pause_ns = (pause_ns * 2).min(1_000_000);
        }
    }

    /// The data, of a lock that no other thread has.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: Send> FlatCombining<T> {
    /// Runs a section with exclusive access to the data, on this thread or on another; returns its
    /// result. A section that runs another section with the same data deadlocks with itself.
    ///
    /// # Panics
    ///
    /// If the section panics, this panics with the same value: the data stays in its state, and
    /// other threads continue. Without the feature `std`, a panic of the section aborts the
    /// program. Also panics in the child of a fork, if another thread of the parent was changing
    /// the data.
    pub fn with<R: Send>(&self, section: impl FnOnce(&mut T) -> R + Send) -> R {
        let mut section = Section { section: Some(section), result: None };
        let token = match self.try_lock() {
            Some(token) => Ok(token),
            None => self.lock_or_claim(),
        };
        match token {
            Ok(token) => {
                self.data.with_mut(|data| section.run(data));
                self.combine(&token);
            }
            Err(record) => {
                record.publish(section.as_job());
                self.wait(record);
                record.give_back();
            }
        }
        match section.result.expect("the section has run") {
            Ok(result) => result,
            Err(payload) => panic::resume(payload),
        }
    }
}

impl<F, R> Section<F, R> {
    fn run<T>(&mut self, data: *mut T)
    where
        F: FnOnce(&mut T) -> R,
    {
        let section = self.section.take().expect("a section runs once");
        // SAFETY: `with` and `Record::serve` call this as the combiner, which alone has the data.
        self.result = Some(panic::catch(|| section(unsafe { &mut *data })));
    }

    /// The job for the thread that owns the data, while this stays where it is.
    fn as_job<T>(&mut self) -> Job<T>
    where
        F: FnOnce(&mut T) -> R,
    {
        /// # Safety
        ///
        /// The job was made of `section`, and no other code uses it.
        unsafe fn run<T, F: FnOnce(&mut T) -> R, R>(section: *mut (), data: *mut T) {
            // SAFETY: `section` leads to the `Section<F, R>` that `as_job` was made of, and no
            // other thread uses it (contract of this function).
            unsafe { (*section.cast::<Section<F, R>>()).run(data) };
        }
        Job { run: run::<T, F, R>, section: core::ptr::from_mut(self).cast() }
    }
}

impl<T: Default> Default for FlatCombining<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

opaque! { [T] FlatCombining<T>, "FlatCombining"; }
