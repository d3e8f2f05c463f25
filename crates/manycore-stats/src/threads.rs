//! Threads, the waits of each, the waits between threads, and the orders in which locks were taken.
//!
//! The tables are hash tables without a lock, like the table of sites: a thread takes a place by
//! writing its key, fills it in, and then stores the field that publishes it (Release). Places are
//! never given back.
//!
//! Relaxed throughout, unless noted: counters are independent of each other.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The number of threads that have an entry of their own, including those that have ended. Entry 0
/// is for all others.
pub const THREAD_ENTRIES: usize = 4_096;
/// The number of pairs of a thread and a lock for which it waited.
pub const WAITS: usize = 65_536;
/// The number of pairs of a place where a thread waited, and a place where the lock had been taken.
pub const BLOCKED: usize = 4_096;
/// The number of pairs of locks one of which was taken while the other was held.
pub const ORDERS: usize = 4_096;
/// The number of locks that a thread holds at a time and that are known individually.
pub const HELD: usize = 16;
/// Pairs of locks that a thread counts for itself.
pub const STEPS: usize = 16;
/// The number of other locks that are noted as held whenever two locks are taken in this order.
pub const GUARDS: usize = 4;
/// In place of an entry: more than one thread.
pub const SEVERAL: u32 = u32::MAX;

/// A thread.
#[repr(C, align(64))]
pub struct ThreadEntry {
    /// The thread; stored last (Release), when the entry is initialised. In entry 0, the number of
    /// threads that share it.
    pub thread: AtomicU32,
    /// 1 when the thread has ended, so that `user_ns` and `kernel_ns` are final.
    pub ended: AtomicU32,
    /// Its name, padded with zeros.
    pub name: [AtomicU64; 2],
    /// CPU time outside of the kernel, at its end.
    pub user_ns: AtomicU64,
    /// CPU time in the kernel, at its end.
    pub kernel_ns: AtomicU64,
    /// All CPU time when it was last measured.
    pub cpu_ns: AtomicU64,
    /// Acquisitions that are not in the thread's slab.
    pub acquired: AtomicU64,
    /// Waits for locks.
    pub contended: AtomicU64,
    /// Their time, in ticks.
    pub wait: AtomicU64,
    /// How many of them had their CPU time measured.
    pub sampled: AtomicU64,
    /// The CPU time of sampled waits for locks, in nanoseconds.
    pub spin_ns: AtomicU64,
}

/// What a thread waited for a lock.
#[repr(C, align(64))]
pub struct Waits {
    /// The entry in the upper half and the lock's record in the lower; 0 while unused.
    pub key: AtomicU64,
    /// Acquisitions that had to wait.
    pub contended: AtomicU64,
    /// Time waited, in ticks.
    pub wait: AtomicU64,
}

/// A lock that a thread holds.
#[repr(C)]
pub struct Held {
    /// The lock's address; 0 if another thread has released it.
    pub object: AtomicU64,
    /// The return address of the call that took it.
    pub caller: AtomicU64,
    /// Its record.
    pub record: AtomicU32,
    /// [`SHARED`] if it is held for reading.
    pub how: AtomicU32,
}

/// A lock that is held, or wanted, for reading.
pub const SHARED: u32 = 1;

/// A thread's count of how often it took a lock while it held another.
#[repr(C)]
pub struct Step {
    /// The held lock's record in the upper half and the wanted one's in the lower; 0 for none.
    pub key: AtomicU64,
    /// Further properties: how both were taken, and which other locks were held.
    pub manner: AtomicU64,
    /// How often this happened since it was last added to the order's count.
    pub seen: AtomicU64,
    /// The order that this counts for.
    pub order: AtomicU32,
    pub(super) _spare: AtomicU32,
}

/// A lock that was taken while another one was held.
#[repr(C, align(64))]
pub struct Order {
    /// A hash of both locks and of how they were taken; 0 while unused.
    pub key: AtomicU64,
    /// How often, but for what is in slabs.
    pub seen: AtomicU64,
    /// The record of the lock that was held.
    pub held: AtomicU32,
    /// The record of the lock that was taken; stored last (Release), when the order is initialised.
    pub wanted: AtomicU32,
    /// [`SHARED`] for the held lock; shifted left by one bit, for the other lock.
    pub modes: AtomicU32,
    /// The entry of the thread that did so; [`SEVERAL`] if several threads did.
    pub thread_entry: AtomicU32,
    /// Records of other locks that were held exclusively each time; 0 for none.
    pub guards: [AtomicU32; GUARDS],
    /// The return address of the call that had taken the first lock when this was first seen.
    pub held_caller: AtomicU64,
    /// The number of the stack that took the second lock then.
    pub stack: AtomicU32,
}

/// A place where a thread waited while a thread that had taken the lock elsewhere held it, with
/// sums of sampled waits.
#[repr(C)]
pub struct Blocked {
    /// A hash of the record and both places; 0 while unused.
    pub key: AtomicU64,
    /// The record of the lock's class; stored last (Release), when the place is initialised.
    pub record: AtomicU32,
    /// The stack that waited, by number.
    pub stack: AtomicU32,
    /// The return address of the call that had taken the lock; 0 if it could not be found.
    pub holder: AtomicU64,
    /// Waits that were sampled here.
    pub waits: AtomicU64,
    /// Their time, in ticks.
    pub wait: AtomicU64,
}

/// The distance in the table of waits between two entries' first slots.
pub const WAITS_APART: usize = 16;
/// The most slots that a thread searches for a lock. A fuller table takes no new ones; the entry
/// still has the sum.
pub const WAITS_PROBES: usize = 32;
