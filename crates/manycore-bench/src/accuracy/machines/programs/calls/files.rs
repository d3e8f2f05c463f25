//! A table of descriptors that all threads of a process use.

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};

use super::shared::{Part, Shared, TicketLock};

/// The most descriptors of a table.
const DESCRIPTORS: usize = 256;

/// A bit for each descriptor.
type Bits = [AtomicU64; DESCRIPTORS / 64];

/// `files_struct` of Linux 3.5. The data that the lock protects share its line, until a word has
/// too few bits for all descriptors.
#[derive(Default)]
struct Head {
    lock: TicketLock,
    next: AtomicU64,
    open: Bits,
}

/// A table of Linux 3.5. `open` takes the table's lock once to allocate a number (`alloc_fd`) and
/// once to install the file (`fd_install`); `close` takes it once. Each open file counts as a user
/// of the credentials, which all threads of a process share.
pub(super) struct Table {
    head: CachePadded<Head>,
    /// The bits of a table that has grown, in memory of their own.
    grown: Option<CachePadded<Bits>>,
    /// The files, eight to a line.
    files: Box<[CachePadded<[AtomicU64; 8]>]>,
    credentials: CachePadded<AtomicU64>,
}

impl Table {
    pub fn new(threads: u32) -> Self {
        let line = |_| CachePadded::default();
        Self {
            head: CachePadded::default(),
            grown: (threads > 60).then(CachePadded::default),
            files: (0..DESCRIPTORS / 8).map(line).collect(),
            credentials: CachePadded::default(),
        }
    }

    fn bits(&self) -> &Bits {
        self.grown.as_deref().unwrap_or(&self.head.open)
    }

    fn file(&self, descriptor: usize) -> &AtomicU64 {
        &self.files[descriptor / 8][descriptor % 8]
    }

    /// Allocates the lowest free number.
    fn allocate(&self) -> usize {
        // Relaxed: the lock orders everything in the table, here and below.
        let first = self.head.next.load(Ordering::Relaxed) as usize / 64;
        for (number, word) in self.bits().iter().enumerate().skip(first) {
            let bits = word.load(Ordering::Relaxed);
            let free = bits.trailing_ones() as usize;
            if free < 64 {
                let descriptor = number * 64 + free;
                self.head.next.store(descriptor as u64 + 1, Ordering::Relaxed);
                word.store(bits | 1 << free, Ordering::Relaxed);
                let file = self.file(descriptor).load(Ordering::Relaxed);
                assert_eq!(file, 0, "a descriptor is given out twice");
                return descriptor;
            }
        }
        panic!("more than {DESCRIPTORS} files are open");
    }

    fn free(&self, descriptor: usize) {
        // Relaxed: the lock orders everything in the table.
        self.file(descriptor).store(0, Ordering::Relaxed);
        let word = &self.bits()[descriptor / 64];
        let bits = word.load(Ordering::Relaxed);
        word.store(bits & !(1 << (descriptor % 64)), Ordering::Relaxed);
        if (descriptor as u64) < self.head.next.load(Ordering::Relaxed) {
            self.head.next.store(descriptor as u64, Ordering::Relaxed);
        }
    }
}

impl Shared for Table {
    fn knows(&self, part: Part) -> bool {
        part == Part::OpenAndClose
    }

    fn open_and_close(&self, thread: u32, work: &dyn Fn(f64)) {
        let descriptor = self.head.lock.locked(|| self.allocate());
        // Relaxed: a count.
        self.credentials.fetch_add(1, Ordering::Relaxed);
        work(0.6);
        let file = u64::from(thread) + 1;
        self.head.lock.locked(|| self.file(descriptor).store(file, Ordering::Relaxed));
        work(0.2);
        self.head.lock.locked(|| self.free(descriptor));
        // Relaxed: a count.
        self.credentials.fetch_sub(1, Ordering::Relaxed);
        work(0.2);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        let open = self.bits().iter().any(|word| word.load(Ordering::Relaxed) != 0);
        let used = self.credentials.load(Ordering::Relaxed) != 0;
        if open || used {
            return Err("all files were closed, and some are open".to_owned());
        }
        Ok(())
    }
}

/// The table of sv6 with `O_ANYFD`: each core gives out descriptors of its own.
pub(super) struct Own(Box<[CachePadded<AtomicU64>]>);

impl Own {
    pub fn new(threads: u32) -> Self {
        Self((0..threads).map(|_| CachePadded::default()).collect())
    }
}

impl Shared for Own {
    fn knows(&self, part: Part) -> bool {
        part == Part::OpenAndClose
    }

    fn open_and_close(&self, thread: u32, work: &dyn Fn(f64)) {
        // Relaxed: only this thread uses it.
        self.0[thread as usize].fetch_add(1, Ordering::Relaxed);
        work(0.8);
        self.0[thread as usize].fetch_sub(1, Ordering::Relaxed);
        work(0.2);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        match self.0.iter().all(|open| open.load(Ordering::Relaxed) == 0) {
            true => Ok(()),
            false => Err("all files were closed, and some are open".to_owned()),
        }
    }
}
