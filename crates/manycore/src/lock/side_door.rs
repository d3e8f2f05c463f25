//! A door by which readers bypass a lock, until a writer shuts it.
//!
//! Where many threads read, the word in which a lock counts readers limits them. With a side door
//! they do not access the word. A reader leaves a mark at another address, which few other readers
//! write, and checks that the door is open; then it may read. A writer, which owns the lock itself,
//! shuts the door and waits until no mark is left. Then it is alone, because a thread that finds
//! the door shut has to acquire the lock.
//!
//! # Memory order
//!
//! A reader sets its mark and then reads the door; a writer shuts the door and then reads the
//! marks. All these accesses are sequentially consistent: in their total order one of the two
//! threads comes later, and sees the other. So the writer waits, or the reader removes its mark. In
//! the same way a reader removes its mark and then checks whether the writer sleeps, and a writer
//! announces that it sleeps and then reads the marks once more.
//!
//! Readers that come through the door after a writer see its writes, because they read the value
//! that [`open`](SideDoor::open) wrote (Release, Acquire). A writer sees readers' accesses through
//! the marks: the lock has to ensure that.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{clock, const_new, futex, hint, order, store_load, tuning};

const OPEN: u32 = 0;
const SHUT: u32 = 1;
/// Shut, and the writer sleeps until readers leave.
const SHUT_ASLEEP: u32 = 2;

/// The door.
#[derive(Debug)]
pub(super) struct SideDoor {
    word: AtomicU32,
}

impl SideDoor {
    const_new! {
        pub(super) fn new(is_open: bool) -> Self {
            Self { word: AtomicU32::new(if is_open { OPEN } else { SHUT }) }
        }
    }

    /// Whether the door is open, as a hint. For the thread that holds the lock it is exact, since
    /// only that thread changes it.
    #[inline]
    pub(super) fn looks_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) == OPEN // Relaxed: `admits` decides and orders
    }

    /// Whether a reader that has just set its mark, by a sequentially consistent read-modify-write,
    /// may read. If not, it has to remove the mark, and to call [`left`](Self::left).
    #[inline]
    pub(super) fn admits(&self) -> bool {
        store_load!("door-enter");
        // SeqCst: partner of the swap in `shut`; it also acquires the writes released by `open`.
        self.word.load(order!(SeqCst, "door-admit")) == OPEN
    }

    /// To be called when a reader has just removed its mark, by a sequentially consistent
    /// read-modify-write.
    #[inline]
    pub(super) fn left(&self) {
        store_load!("door-leave");
        // SeqCst: partner of the swap in `sleep_until`.
        if self.word.load(Ordering::SeqCst) == SHUT_ASLEEP {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Relaxed, both: the writer reads the marks itself.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.word.compare_exchange(SHUT_ASLEEP, SHUT, done, failed).is_ok() {
            futex::wake(&raw const self.word, 1);
        }
    }

    /// Opens the door. The caller holds the lock, and no writer waits for marks.
    #[inline]
    pub(super) fn open(&self) {
        // Release: partner of the load in `admits`.
        self.word.store(OPEN, order!(Release, "door-open"));
    }

    /// Shuts the door. The caller holds the lock for writing; it has to read the marks next.
    #[inline]
    pub(super) fn shut(&self) {
        // SeqCst: partner of the load in `admits`.
        self.word.swap(SHUT, Ordering::SeqCst);
        store_load!("door-shut");
    }

    /// Waits, with the door shut, until there is no mark, or none in one part of the marks. New
    /// marks are removed soon.
    pub(super) fn wait_until(&self, is_empty: impl Fn() -> bool) {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        while !is_empty() {
            if clock::has_passed(start, limit) {
                return self.sleep_until(is_empty);
            }
            hint::spin_loop();
        }
    }

    #[cold]
    fn sleep_until(&self, is_empty: impl Fn() -> bool) {
        loop {
            // SeqCst: partner of the load in `left`.
            self.word.swap(SHUT_ASLEEP, Ordering::SeqCst);
            store_load!("door-sleep");
            if is_empty() {
                break;
            }
            futex::wait(&self.word, SHUT_ASLEEP, None);
        }
        // Relaxed: for readers that find the door shut and leave, so that they need not wake
        // another thread.
        self.word.store(SHUT, Ordering::Relaxed);
    }
}
