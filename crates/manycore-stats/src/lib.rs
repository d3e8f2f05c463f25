//! The mappings to which preloaded libraries write their counts: the layout, and the writers of
//! each part.
//!
//! A process maps one file for its locks, a [`Mapping`], and one for its system calls, a
//! [`syscalls::Mapping`]. A file stays after the process has died in any way, and can be read while
//! it lives. Nothing here allocates or waits, because the writers run inside other programs' locks.
//!
//! ```text
//! Header | Record x RECORDS | Distributions x HISTOGRAMS | Slab x SLABS | Module x MODULES | paths
//!        | Stack x STACKS | Site x SITES | ThreadEntry x THREAD_ENTRIES | Waits x WAITS
//!        | Blocked x BLOCKED | Order x ORDERS
//! ```
//!
//! All of it is zero at first, and sparse: only used parts take memory, and a process maps no more
//! than those. Every number is an atomic, written by the process and read by the command at any
//! time. There is one *record* for each lock, and one *slab* for each thread with a small cache of
//! counters, so counting an acquisition touches no memory of another thread. A thread's counter for
//! a lock is added to the lock's record when the thread needs the counter's place for another lock.
//! The sum of the record and of all slabs is exact at any time, except for an increment that is
//! just under way.
//!
//! Locks of one kind that were created by the same calls are one *class*. The first half of the
//! records is for single locks of any class. Once it is used up, all further locks of a class share
//! the record of its first lock, so there can be any number of locks, and no count is lost. A
//! *stack* of calls is kept once, even if several objects have it.
//!
//! Libraries are loaded and unloaded, so an address may later belong to another file. An *epoch* is
//! a number that grows whenever a library is unloaded. A module has the epochs in which it was
//! there, and a stack or a lock has the epoch in which it was noted.
//!
//! Relaxed throughout, unless noted: counters are independent of each other.
//!
//! ```
//! use manycore_stats::Histogram;
//!
//! let waits = Histogram::default();
//! for ticks in [100, 120, 90_000] {
//!     waits.count(ticks);
//! }
//! let p50 = waits.quantile(0.5).unwrap();
//! assert!((100..160).contains(&p50));
//! ```
#![no_std]

use core::sync::atomic::{AtomicU32, AtomicU64};

mod handovers;
mod histogram;
pub mod queue;
pub mod syscalls;
mod threads;

pub use handovers::{BY_STACK, ENTRIES, Entry, HandOvers, PLACES, WANTED};
pub use histogram::Histogram;
pub use threads::{
    BLOCKED, Blocked, GUARDS, HELD, Held, ORDERS, Order, SEVERAL, SHARED, STEPS, Step,
    THREAD_ENTRIES, ThreadEntry, WAITS, WAITS_APART, WAITS_PROBES, Waits,
};

/// `manycore` and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"manyco\0\x07");
/// The number of records: for single locks and condition variables, and for classes of others.
/// Record 0 is for all that find none.
pub const RECORDS: usize = 65_536;
/// The number of records for single locks. Beyond it, only the first lock of a class gets one.
pub const RECORDS_OWN: usize = RECORDS / 2;
/// The number of locks that can have distributions. Distribution 0 is for all others.
pub const HISTOGRAMS: usize = 4_096;
/// The number of living threads that can have a slab; other threads count in the records directly.
pub const SLABS: usize = 8_192;
/// Mapped files.
pub const MODULES: usize = 1_024;
/// Words for their paths.
pub const PATHS: usize = 65_536;
/// Flag of a module: its pages can be executed.
pub const MAPPED_CODE: u32 = 1;
/// Flag of a module: the mapping is shared, so writes to its pages go to the file.
pub const MAPPED_SHARED: u32 = 2;
/// Flag of a module: the loader has loaded it.
pub const MAPPED_LOADED: u32 = 4;
/// The number of locks for which a thread has counters of its own.
pub const SLOTS: usize = 64;
/// Stacks of calls.
pub const STACKS: usize = 32_768;
/// The number of stacks that are kept in full. After this many, only the innermost call of new ones
/// is kept.
pub const STACKS_FULL: usize = STACKS / 2;
/// The number of pairs of a class of locks and a place where threads waited for it.
pub const SITES: usize = 32_768;
/// The number of return addresses that are kept of a place where threads waited for a lock.
pub const FRAMES: usize = 32;
/// The number of return addresses that are kept of the place where a lock was created.
pub const FRAMES_OF_LOCK: usize = 8;
/// The number of creating places that a thread recognises without unwinding.
pub const RECENT: usize = 16;
/// A flag in the number of a lock's stack: it is the stack of the lock's initialisation, not of its
/// first use.
pub const INITIALISED: u32 = 1 << 31;
/// A flag in the number of the objects that have a record: several had it at a time.
pub const CROWD: u32 = 1 << 31;

/// The whole mapping.
#[repr(C)]
pub struct Mapping {
    /// About the process.
    pub header: Header,
    /// A lock each.
    pub records: Pages<[Record; RECORDS]>,
    /// Distributions of the locks that had waits or sampled holds.
    pub distributions: Pages<[Distributions; HISTOGRAMS]>,
    /// A thread each.
    pub slabs: Pages<[Slab; SLABS]>,
    /// A mapped range of a file each.
    pub modules: Pages<[Module; MODULES]>,
    /// The modules' paths, one behind the other.
    pub paths: Pages<[AtomicU64; PATHS]>,
    /// Calls that led to a lock each. Number 0 is of those that could not be kept.
    pub stacks: Pages<[Stack; STACKS]>,
    /// Places where threads waited, each for one class of locks. Number 0 is for all others.
    pub sites: Pages<[Site; SITES]>,
    /// A thread each, those that have ended too.
    pub thread_entries: Pages<[ThreadEntry; THREAD_ENTRIES]>,
    /// A thread's waits for locks: a hash table, by `key`.
    pub waits: Pages<[Waits; WAITS]>,
    /// Which thread made which other wait: a hash table, by `key`.
    pub blocked: Pages<[Blocked; BLOCKED]>,
    /// The orders in which locks were taken: a hash table, by `key`.
    pub orders: Pages<[Order; ORDERS]>,
}

/// A part of the mapping, aligned to a page: a process maps the used pages of each part.
#[repr(C, align(4096))]
pub struct Pages<T>(T);

impl<T> core::ops::Deref for Pages<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// About the process.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], stored last (Release) when the mapping is ready.
    pub magic: AtomicU64,
    /// The process.
    pub pid: AtomicU32,
    /// Its parent; for a forked process the nearest one that has a mapping.
    pub parent: AtomicU32,
    /// The time at which the program started or the process was forked, in ticks.
    pub started: AtomicU64,
    /// The time at which the process ended in an orderly way, in ticks; 0 while it runs, and if it
    /// ended otherwise.
    pub ended: AtomicU64,
    /// One in how many acquisitions has its hold measured.
    pub hold_period: AtomicU32,
    /// One wait in this many has its CPU time measured and its place noted.
    pub spin_period: AtomicU32,
    /// Records given out, the catch-all record 0 included.
    pub records: AtomicU32,
    /// Distributions given out, the catch-all 0 included.
    pub distributions: AtomicU32,
    /// Slabs that were ever used.
    pub slabs: AtomicU32,
    /// Modules noted.
    pub modules: AtomicU32,
    /// Words of their paths, in all.
    pub paths: AtomicU32,
    /// The number of kept stacks, including number 0; stored (Release) after the last one is
    /// initialised.
    pub stacks: AtomicU32,
    /// The number of kept places, including number 0; stored (Release) after the last one is
    /// initialised.
    pub sites: AtomicU32,
    /// Entries given out, entry 0 included.
    pub thread_entries: AtomicU32,
    /// The number of its forked children that could make no mapping.
    pub uncounted: AtomicU32,
    /// Nanoseconds between two values of the clock, if the process may not read the time-stamp
    /// counter; 0 if it may.
    pub clock_step_ns: AtomicU32,
    /// How often only the innermost call of a stack was kept, or nothing.
    pub cut: AtomicU64,
    /// The number of sampled waits for which there was no room in `blocked`.
    pub blocked_dropped: AtomicU64,
    /// How often a thread took two locks in an order for which there was no room in `orders`.
    pub orders_dropped: AtomicU64,
    /// The number of objects that found no record and are counted in record 0.
    pub unrecorded: AtomicU64,
    /// The lock algorithm's name, padded with zeros.
    pub lock: [AtomicU64; 4],
    /// The name with which the kernel started the program, padded with zeros; empty in a forked
    /// process.
    pub name: [AtomicU64; 2],
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// No record yet.
    None = 0,
    /// A mutex, normal.
    Mutex = 1,
    /// A mutex, recursive.
    Recursive = 2,
    /// A mutex, error-checking.
    ErrorCheck = 3,
    /// A mutex, adaptive.
    Adaptive = 4,
    /// A reader-writer lock.
    RwLock = 5,
    /// A spinlock.
    Spin = 6,
    /// A condition variable.
    Cond = 7,
    /// A lock of the program's own, seen by the kernel. No record has this kind.
    Futex = 8,
    /// A lock that the program has made of a mutex and a condition variable. No record has this
    /// kind: conditions are recognised as such locks later.
    Made = 9,
}

impl Kind {
    /// The kind of this number.
    pub fn from_number(number: u32) -> Self {
        const KINDS: [Kind; 10] = [
            Kind::None,
            Kind::Mutex,
            Kind::Recursive,
            Kind::ErrorCheck,
            Kind::Adaptive,
            Kind::RwLock,
            Kind::Spin,
            Kind::Cond,
            Kind::Futex,
            Kind::Made,
        ];
        KINDS.get(number as usize).copied().unwrap_or(Kind::None)
    }
}

/// One lock, or several of one class: locks that existed one after the other, or that were created
/// when there were already many.
#[repr(C, align(64))]
pub struct Record {
    /// A [`Kind`]; stored last (Release), when the record is initialised.
    pub kind: AtomicU32,
    /// How many objects have had this record.
    pub objects: AtomicU32,
    /// The number of objects that have it now, with [`CROWD`] if several had it at a time. Objects
    /// that the program abandoned without destroying them still count.
    pub live: AtomicU32,
    /// The number of the lock's distributions; 0 before it has any.
    pub distributions: AtomicU32,
    /// The number of the stack of the initialisation, with [`INITIALISED`], or of the first use.
    pub stack: AtomicU32,
    /// Waits whose CPU time was measured.
    pub sampled: AtomicU32,
    /// The latest object's address.
    pub address: AtomicU64,
    /// The epoch in which the record was given out.
    pub epoch: AtomicU32,
    _spare: AtomicU32,
    /// Acquisitions that are not in a slab: exclusive ones.
    pub acquired: AtomicU64,
    /// Acquisitions by readers that are not in a slab.
    pub shared: AtomicU64,
    /// Acquisitions on another CPU than the one before, where they are not in a slab.
    pub handoffs: AtomicU64,
    /// Acquisitions that had to wait; of a condition variable, waits.
    pub contended: AtomicU64,
    /// How many of them were by readers.
    pub contended_shared: AtomicU64,
    /// Waits that ended by their deadline.
    pub timeouts: AtomicU64,
    /// Time waited, in ticks.
    pub wait: AtomicU64,
    /// The longest wait, in ticks.
    pub wait_max: AtomicU64,
    /// The CPU time of sampled waits, in nanoseconds.
    pub spin_ns: AtomicU64,
    /// Holds that were measured.
    pub holds: AtomicU64,
    /// Their time, in ticks.
    pub hold: AtomicU64,
    /// The longest of them, in ticks.
    pub hold_max: AtomicU64,
    /// Its waiters now: a [`queue`].
    pub queue: AtomicU64,
    /// How long its longest queue lasted, in ticks.
    pub convoy: AtomicU64,
    /// When that one was over, in ticks.
    pub convoy_end: AtomicU64,
    /// The most threads that waited at a time.
    pub convoy_most: AtomicU64,
    /// For a condition variable: whether threads wait for it as they wait for a lock.
    pub hand_overs: HandOvers,
}

/// A thread's counters.
#[repr(C, align(64))]
pub struct Slab {
    /// The thread that uses or last used it.
    pub thread: AtomicU32,
    /// Acquisitions until the next hold is measured.
    pub until_hold: AtomicU32,
    /// The number of waits until the next one has its CPU time measured.
    pub until_spin: AtomicU32,
    /// What the thread's random numbers come from.
    pub dice: AtomicU32,
    /// The thread's entry.
    pub thread_entry: AtomicU32,
    /// The record of the lock for which it waits now; 0 for none.
    pub waiting: AtomicU32,
    /// The number of locks that it holds, as far as `held` has room for them.
    pub depth: AtomicU32,
    /// Locks that it holds besides.
    pub beyond: AtomicU32,
    /// Since when it waits, in ticks.
    pub waiting_since: AtomicU64,
    /// Whether it gives up after a time: 1, or else 0.
    pub gives_up: AtomicU32,
    _spare: AtomicU32,
    /// Counters, found by a record's number modulo [`SLOTS`].
    pub slots: [Slot; SLOTS],
    /// The locks that it holds, the latest last.
    pub held: [Held; HELD],
    /// The orders in which it takes locks, found by a hash of both records' numbers.
    pub steps: [Step; STEPS],
    /// Mutexes with which it was let in after a wait for a condition variable, by the record's
    /// number.
    pub entries: [Entry; ENTRIES],
    /// Stacks that it has unwound recently, for itself alone; found by a hash of the innermost
    /// call.
    pub recent: [Recent; RECENT],
}

/// A stack that a thread has unwound, and the position where it found it.
#[repr(C, align(64))]
pub struct Recent {
    /// The stack's number; 0 for none.
    pub stack: AtomicU32,
    /// How many return addresses it has.
    pub frames: AtomicU32,
    /// The innermost one.
    pub caller: AtomicU64,
    /// Where the stack ended then.
    pub end: AtomicU64,
    /// How far from there each return address was.
    pub places: [AtomicU32; FRAMES_OF_LOCK],
}

/// A thread's counters for one lock.
#[repr(C)]
pub struct Slot {
    /// The record to which this slot belongs; 0 for none.
    pub record: AtomicU32,
    _spare: AtomicU32,
    /// Exclusive acquisitions.
    pub acquired: AtomicU64,
    /// Acquisitions by readers.
    pub shared: AtomicU64,
    /// Acquisitions on another CPU than the one before.
    pub handoffs: AtomicU64,
}

/// A memory range to which a file is mapped, or that follows such a range (its zero-initialised
/// data).
#[repr(C, align(64))]
pub struct Module {
    /// First address.
    pub start: AtomicU64,
    /// One behind the last address.
    pub end: AtomicU64,
    /// The file's offset at `start`.
    pub offset: AtomicU64,
    /// The file's number in its file system, as `/proc/self/maps` lists it.
    pub inode: AtomicU64,
    /// The number of the file's device, as `/proc/self/maps` lists it: the upper half is the major
    /// one.
    pub device: AtomicU64,
    /// [`MAPPED_CODE`], [`MAPPED_SHARED`].
    pub flags: AtomicU32,
    /// The first epoch in which it was there.
    pub since: AtomicU32,
    /// The first epoch without it; 0 while it exists.
    pub until: AtomicU32,
    /// The start of the module's path in `paths`, and its length in bytes. The path is as in
    /// `/proc/self/maps`.
    pub path: AtomicU32,
    /// How many bytes that is.
    pub length: AtomicU32,
}

/// Calls that led to a lock: return addresses, innermost first, 0 behind the last.
#[repr(C)]
pub struct Stack {
    /// The frames.
    pub frames: [AtomicU64; FRAMES],
    /// The epoch in which they were noted.
    pub epoch: AtomicU32,
    _spare: AtomicU32,
}

/// A place where threads waited for locks of a class, with sums of sampled waits.
#[repr(C)]
pub struct Site {
    /// The record of the first lock of the class.
    pub record: AtomicU32,
    /// The stack of the calls that waited, by number.
    pub stack: AtomicU32,
    /// Waits that were sampled here.
    pub waits: AtomicU64,
    /// Their time, in ticks.
    pub wait: AtomicU64,
}

/// The distributions of wait times and hold times of a lock.
#[repr(C, align(64))]
pub struct Distributions {
    /// Waits, in ticks.
    pub wait: Histogram,
    /// Sampled holds, in ticks.
    pub hold: Histogram,
}
