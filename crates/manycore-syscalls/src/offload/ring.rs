//! io_uring's rings: memory shared with the kernel, in which one side writes entries and the other
//! a position.
//!
//! This uses raw system calls and not the crate `io-uring`: that crate allocates, and calls
//! functions of the C library that this library itself exports. Many callers put entries in and
//! take completions out, each side under a lock for which no thread waits: a thread that does not
//! get it goes another way.
//!
//! Source: J. Axboe, "Efficient IO with io_uring", 2019, and the manual page `io_uring(7)`.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use manycore::sync::hint;
use syscalls::{Sysno, raw_syscall};

use super::internal_fds;
use super::raw;

/// `struct io_uring_sqe`: what the kernel is to do.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Entry {
    pub opcode: u8,
    pub flags: u8,
    pub priority: u16,
    pub descriptor: i32,
    pub offset: u64,
    pub address: u64,
    pub length: u32,
    pub operation_flags: u32,
    /// Comes back with the completion.
    pub data: u64,
    pub rest: [u64; 3],
}

/// `struct io_uring_cqe`: what came of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Completion {
    pub data: u64,
    pub result: i32,
    pub flags: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_address: u64,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    completions: u32,
    flags: u32,
    reserved: u32,
    user_address: u64,
}

/// `struct io_uring_params`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Parameters {
    submissions: u32,
    completions: u32,
    flags: u32,
    thread_cpu: u32,
    thread_idle: u32,
    features: u32,
    queue: u32,
    reserved: [u32; 3],
    submission: SubmissionOffsets,
    completion: CompletionOffsets,
}

impl Parameters {
    /// As many bytes positions and completions take.
    fn bytes(&self) -> usize {
        (self.completion.completions + self.completions * 16)
            .max(self.submission.array + self.submissions * 4) as usize
    }
}

const _: () = assert!(size_of::<Entry>() == 64 && size_of::<Parameters>() == 120);

const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SQ_AFF: u32 = 1 << 2;
const SETUP_CQSIZE: u32 = 1 << 3;
const FEATURE_SINGLE_MMAP: u32 = 1;
const FEATURE_NODROP: u32 = 1 << 1;
const FEATURE_SQPOLL_NONFIXED: u32 = 1 << 7;
const NEED_WAKEUP: u32 = 1;
const OVERFLOW: u32 = 1 << 1;
const ENTER_GETEVENTS: u32 = 1;
const ENTER_SQ_WAKEUP: u32 = 1 << 1;
const REGISTER_PROBE: u32 = 8;
const OFFSET_ENTRIES: usize = 0x1000_0000;

const SUBMISSIONS: u32 = 256;
const COMPLETIONS: u32 = 4096;
const ENTRIES_BYTES: usize = SUBMISSIONS as usize * size_of::<Entry>();

/// The time for which the kernel's thread polls for entries before it sleeps, in milliseconds. It
/// is the shortest possible one, because on a small machine that thread takes the CPU from the
/// program.
const IDLE_MS: u32 = 1;

/// How often a thread tries to acquire a lock. The lock is held for some dozen instructions.
const TRIES: u32 = 100;

/// Rings with a thread of the kernel that polls them. All zero: not set up.
#[derive(Debug)]
pub struct Ring {
    pub descriptor: i32,
    submitting: AtomicU32,
    reaping: AtomicU32,
    /// Entries without a completion so far.
    in_flight: AtomicU32,
    submission: *mut u8,
    entries: *mut Entry,
    offsets: Parameters,
    /// A bit for each operation that the kernel has.
    operations: u64,
}

// SAFETY: `reaping` and `submitting` admit one thread at each end, and the words that the kernel
// reads or writes are atomics.
unsafe impl Sync for Ring {}

impl Ring {
    /// Sets up rings with a thread of the kernel on a CPU; returns the kernel's error if it
    /// refuses.
    pub fn new(cpu: u16) -> Result<Self, i32> {
        let mut parameters = Parameters {
            flags: SETUP_SQPOLL | SETUP_SQ_AFF | SETUP_CQSIZE,
            thread_cpu: u32::from(cpu),
            thread_idle: IDLE_MS,
            completions: COMPLETIONS,
            ..Parameters::default()
        };
        // SAFETY: the parameters are as large as the kernel reads and writes.
        let descriptor = internal_fds::make(|| unsafe {
            raw_syscall!(Sysno::io_uring_setup, SUBMISSIONS, &raw mut parameters) as i32
        });
        if descriptor < 0 {
            return Err(-descriptor);
        }
        let needed = FEATURE_SINGLE_MMAP | FEATURE_NODROP | FEATURE_SQPOLL_NONFIXED;
        if parameters.features & needed != needed {
            internal_fds::close(descriptor);
            return Err(libc::ENOSYS);
        }
        let submission = raw::map_shared(descriptor, 0, parameters.bytes());
        let entries = raw::map_shared(descriptor, OFFSET_ENTRIES, ENTRIES_BYTES);
        let ring = Self {
            descriptor,
            submitting: AtomicU32::new(0),
            reaping: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            submission,
            entries: entries.cast(),
            offsets: parameters,
            operations: probe(descriptor),
        };
        let is_mapped = !submission.is_null() && !entries.is_null();
        if is_mapped { Ok(ring) } else { Err(libc::ENOMEM) }
    }

    /// Whether the kernel has an operation.
    pub fn has(&self, opcode: u8) -> bool {
        self.operations & 1 << opcode != 0
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel has given the offset, of an aligned word in the memory that `new` has
        // mapped and `drop` takes away.
        unsafe { &*self.submission.add(offset as usize).cast() }
    }

    /// Queues an entry; returns false if there is no room, or other threads hold the lock.
    pub fn submit(&self, entry: &Entry) -> bool {
        if !lock(&self.submitting) {
            return false;
        }
        let fits = self.put(entry);
        unlock(&self.submitting);
        if fits {
            // SeqCst: the entry is published before the flag is read. Partner: the kernel's barrier
            // between setting the flag and checking for entries again, before its thread sleeps.
            fence(Ordering::SeqCst);
            // Relaxed: ordered by the fence.
            if self.word(self.offsets.submission.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0 {
                self.enter(ENTER_SQ_WAKEUP);
            }
        }
        fits
    }

    fn put(&self, entry: &Entry) -> bool {
        let offsets = &self.offsets.submission;
        let tail = self.word(offsets.tail).load(Ordering::Relaxed); // Relaxed: written under the lock
        // Acquire: partner of the kernel's Release, before which it has read the entries.
        let head = self.word(offsets.head).load(Ordering::Acquire);
        // Relaxed: completions only make it less.
        if tail.wrapping_sub(head) >= self.offsets.submissions
            || self.in_flight.load(Ordering::Relaxed) >= COMPLETIONS
        {
            return false;
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed); // Relaxed: a number
        let at = tail & (self.offsets.submissions - 1);
        // SAFETY: the place is below the number of mapped entries, the kernel has read its old
        // entry, and the lock is held.
        unsafe { *self.entries.add(at as usize) = *entry };
        self.word(offsets.array + 4 * at).store(at, Ordering::Relaxed); // Relaxed: released next
        // Release: partner of the kernel's Acquire, for the entry.
        self.word(offsets.tail).store(tail.wrapping_add(1), Ordering::Release);
        true
    }

    /// Whether there is a completion.
    pub fn is_ready(&self) -> bool {
        let offsets = &self.offsets.completion;
        // Relaxed, both: a hint.
        self.word(offsets.head).load(Ordering::Relaxed)
            != self.word(offsets.tail).load(Ordering::Relaxed)
    }

    /// Takes all completions; returns false if another thread does so.
    pub fn reap(&self, mut done: impl FnMut(&Completion)) -> bool {
        // Relaxed: a hint; the kernel keeps overflowing completions until they are requested.
        if self.word(self.offsets.submission.flags).load(Ordering::Relaxed) & OVERFLOW != 0 {
            self.enter(ENTER_GETEVENTS);
        }
        if !lock(&self.reaping) {
            return false;
        }
        let offsets = &self.offsets.completion;
        let mut head = self.word(offsets.head).load(Ordering::Relaxed); // Relaxed: written under the lock
        // Acquire: partner of the kernel's Release, for the completions that it wrote before.
        while head != self.word(offsets.tail).load(Ordering::Acquire) {
            let at = head & (self.offsets.completions - 1);
            // SAFETY: the place is below the number of mapped completions, the kernel has written
            // it before the tail, and the lock is held.
            let completion = unsafe {
                *self
                    .submission
                    .add(offsets.completions as usize)
                    .cast::<Completion>()
                    .add(at as usize)
            };
            head = head.wrapping_add(1);
            // Release: partner of the kernel's Acquire: the completion has been read.
            self.word(offsets.head).store(head, Ordering::Release);
            self.in_flight.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `put`
            done(&completion);
        }
        unlock(&self.reaping);
        true
    }

    fn enter(&self, flags: u32) {
        // SAFETY: the call takes numbers only, and accesses no memory of ours.
        unsafe { raw_syscall!(Sysno::io_uring_enter, self.descriptor, 0, 0, flags, 0, 0) };
    }
}

/// Which operations the kernel has, a bit for each.
fn probe(descriptor: i32) -> u64 {
    // `struct io_uring_probe`: two numbers, and an operation's number and flags in eight bytes
    // each.
    let mut operations = [[0u8; 8]; 2 + 64];
    // SAFETY: the kernel writes no more operations than the given room.
    let failed = unsafe {
        let place = operations.as_mut_ptr();
        raw_syscall!(Sysno::io_uring_register, descriptor, REGISTER_PROBE, place, 64)
    };
    if failed != 0 {
        return 0;
    }
    let supported = operations[2..].iter().filter(|operation| operation[2] & 1 != 0);
    supported
        .filter(|operation| operation[0] < 64)
        .fold(0, |set, operation| set | 1 << operation[0])
}

/// The kernel ends the ring's thread when neither a descriptor nor memory of the ring is left.
impl Drop for Ring {
    fn drop(&mut self) {
        for (address, bytes) in
            [(self.submission, self.offsets.bytes()), (self.entries.cast(), ENTRIES_BYTES)]
        {
            if !address.is_null() {
                // SAFETY: `new` has mapped this many bytes there, and `&mut self` excludes other
                // users.
                unsafe { raw::unmap(address, bytes) };
            }
        }
        internal_fds::close(self.descriptor);
    }
}

fn lock(word: &AtomicU32) -> bool {
    (0..TRIES).any(|_| {
        // Acquire: partner of the Release in `unlock`. Relaxed: not taken.
        let taken = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !taken {
            hint::pause();
        }
        taken
    })
}

fn unlock(word: &AtomicU32) {
    // Release: partner of the Acquire in `lock`.
    word.store(0, Ordering::Release);
}
