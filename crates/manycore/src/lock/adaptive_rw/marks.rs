//! Marks of readers that hold locks: one table for the process, with a line for each thread.
//!
//! A thread leaves a mark on its own line, in the lock's cell, and removes it there: two
//! read-modify-writes of a line that stays with its CPU. A writer reads the lock's cell of each
//! line that was ever used. There are about as many lines as CPUs, and at most 512. So some threads
//! have a line in common, and some locks have a cell in common: a thread that finds the cell used
//! by another lock leaves no mark.
//!
//! A mark consists of the lock's address and the number of readers that left it. It does not name a
//! thread, so any thread can search for a mark and remove it. A thread that waits for the end of a
//! mark notes so there, and sleeps there. A reader that has removed its mark does not access the
//! lock any more: the lock's memory may have been freed.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{
    CachePadded, Deadline, Woken, array_of, const_new, cpu, futex, hint, order, process_wide,
    store_load, table, thread, time, tuning,
};

/// A thread sleeps until the mark is gone.
const WAITED: u64 = 1;
/// The count of one reader in a mark, which has room for three.
const ONE: u64 = 2;
const MOST: u64 = 3 * ONE;
/// The rest of a mark is the address of the lock, which has this alignment.
pub(super) const ALIGNMENT: usize = 8;

/// How many lines there are at least, however few CPUs.
const FEWEST_LINES: usize = 16;
const CELLS: usize = if cfg!(loom) { 1 } else { 15 };
/// How many marks one sample stands for.
const SAMPLED: u64 = if cfg!(loom) { 1 } else { 16 };

struct Line {
    cells: [AtomicU64; CELLS],
    /// How many marks were left here. If two are left at the same time, one may not be counted.
    count: AtomicU64,
}

impl Line {
    const_new! {
        fn new() -> Self {
            Self { cells: array_of!(AtomicU64::new(0); CELLS), count: AtomicU64::new(0) }
        }
    }
}

process_wide! {
    /// All lines: 64 KiB.
    fn lines() -> [CachePadded<Line>; 512] of CachePadded(Line::new()), named Marks
}

process_wide! {
    /// A bit for each line that was ever used. The bits are on one line, which changes seldom.
    fn used_lines() -> [AtomicU64; 8] of AtomicU64::new(0), named UsedLines
}

/// The marks for the lock at this address, by the calling thread.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    lock: u64,
    /// The number of the calling thread's line.
    own: usize,
}

impl Marks {
    #[inline]
    pub(super) fn of(lock: usize) -> Self {
        Self { lock: lock as u64, own: thread::id() as usize % Self::lines().len() }
    }

    fn lines() -> &'static [CachePadded<Line>] {
        let lines = lines();
        let used = (cpu::count() as usize).next_power_of_two().max(FEWEST_LINES);
        &lines[..tuning::places(used.min(lines.len()))]
    }

    #[inline]
    fn cell_of<'a>(&self, line: &'a Line) -> &'a AtomicU64 {
        let hash = table::hash(self.lock) >> 32;
        &line.cells[hash as usize % line.cells.len()]
    }

    #[inline]
    fn own_line(&self) -> &'static Line {
        &Self::lines()[self.own]
    }

    #[inline]
    fn own_cell(&self) -> &'static AtomicU64 {
        self.cell_of(self.own_line())
    }

    /// Ensures that writers read the calling thread's line.
    #[inline]
    fn note_use(&self) {
        let (word, bit) = (&used_lines()[self.own / 64], 1 << (self.own % 64));
        // SeqCst, both: partner of the load in `cells`, as the mark is of its read.
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// The cells in which there may be a mark.
    fn cells(&self) -> impl Iterator<Item = &'static AtomicU64> {
        let marks = *self;
        used_lines().iter().zip(Self::lines().chunks(64)).flat_map(move |(used, lines)| {
            // SeqCst: partner of the exchange in `note_use`.
            let used = used.load(Ordering::SeqCst);
            let is_used = move |line: &usize| used >> line & 1 != 0;
            (0..lines.len()).filter(is_used).map(move |line| marks.cell_of(&lines[line]))
        })
    }

    /// Counts a mark of the calling thread; returns whether it is a sample: one mark in [`SAMPLED`]
    /// is.
    #[inline]
    pub(super) fn is_sample(&self) -> bool {
        let count = &self.own_line().count;
        // Relaxed, both: a statistic.
        let marks = count.load(Ordering::Relaxed) + 1;
        count.store(marks, Ordering::Relaxed);
        marks.is_multiple_of(SAMPLED)
    }

    #[inline]
    fn are(&self, mark: u64) -> bool {
        mark & !(WAITED | MOST) == self.lock
    }

    /// Leaves a mark for the calling thread if its cell has room; returns whether it did. The
    /// thread has to leave the mark before it reads the lock.
    #[inline]
    pub(super) fn leave(&self) -> bool {
        self.note_use();
        let cell = self.own_cell();
        let mut mark = cell.load(Ordering::Relaxed); // Relaxed: the exchange decides
        loop {
            let next = match mark {
                0 => self.lock | ONE,
                mark if self.are(mark) && mark & MOST != MOST => mark + ONE,
                _ => return false,
            };
            // SeqCst: partner of the load in `are_gone`, see the lock.
            match cell.compare_exchange(mark, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    store_load!("adaptive-rw-mark");
                    return true;
                }
                Err(now) => mark = now,
            }
        }
    }

    /// Removes a mark that the calling thread, or one with the same line, has left; returns whether
    /// there was one.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.take_from(self.own_cell())
    }

    /// The same, whichever thread has left it.
    #[cold]
    pub(super) fn take_anywhere(&self) -> bool {
        self.cells().any(|cell| self.take_from(cell))
    }

    #[inline]
    fn take_from(&self, cell: &AtomicU64) -> bool {
        // Acquire, as on failure below: partner of the Release of another reader's exchange, below.
        // A thread that has taken this thread's mark has left a mark of its own, with its writes
        // before that mark.
        let mut mark = cell.load(Ordering::Acquire);
        while self.are(mark) {
            let is_last = mark & MOST == ONE;
            let next = if is_last { 0 } else { mark - ONE };
            // AcqRel: Release, partner of the load in `are_gone`; Acquire as above.
            let done = order!(AcqRel, "adaptive-rw-unmark");
            match cell.compare_exchange(mark, next, done, Ordering::Acquire) {
                Ok(_) => {
                    if is_last && mark & WAITED != 0 {
                        futex::wake_low(cell, u32::MAX);
                    }
                    return true;
                }
                Err(now) => mark = now,
            }
        }
        false
    }

    /// Whether the calling thread may have left a mark.
    pub(super) fn may_have_own(&self) -> bool {
        self.are(self.own_cell().load(Ordering::Relaxed)) // Relaxed: of this thread, or a hint
    }

    /// Whether there is none now. The caller has ensured that arriving readers take their marks
    /// back.
    pub(super) fn are_gone(&self) -> bool {
        self.cells().all(|cell| !self.is_in(cell))
    }

    /// Waits until there is no mark, and then returns true, as [`are_gone`](Self::are_gone) does;
    /// or until the deadline has passed.
    pub(super) fn wait(&self, patience: u64, deadline: Option<Deadline>) -> bool {
        self.cells().all(|cell| self.wait_for(cell, patience, deadline))
    }

    #[inline]
    fn is_in(&self, cell: &AtomicU64) -> bool {
        // SeqCst: partner of the exchange in `leave`. It acquires the writes released by
        // `take_from`.
        self.are(cell.load(order!(SeqCst, "adaptive-rw-look")))
    }

    fn wait_for(&self, cell: &AtomicU64, patience: u64, deadline: Option<Deadline>) -> bool {
        if !self.is_in(cell) {
            return true;
        }
        let start = time::now();
        loop {
            if !time::has_passed(start, patience) {
                hint::spin_loop();
            } else if self.sleep(cell, deadline) == Woken::TimedOut {
                return !self.is_in(cell);
            }
            if !self.is_in(cell) {
                return true;
            }
        }
    }

    #[cold]
    fn sleep(&self, cell: &AtomicU64, deadline: Option<Deadline>) -> Woken {
        // Relaxed, all: nothing is acquired here.
        let mark = cell.load(Ordering::Relaxed);
        let waited = mark | WAITED;
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        if !self.are(mark) || cell.compare_exchange(mark, waited, done, failed).is_err() {
            return Woken::Perhaps;
        }
        futex::wait_low(cell, waited as u32, deadline)
    }
}
