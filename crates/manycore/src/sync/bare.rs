//! No operating system: the functions that a kernel has to supply, as link-time symbols.
//!
//! A kernel defines the functions of [`symbols`] with the C calling convention. In a kernel with
//! one CPU, or in an interrupt context that cannot sleep, `manycore_futex_wait` may return at once:
//! then waiting is polling.

/// The symbols that a kernel defines.
mod symbols {
    use super::atomic::AtomicU32;
    use crate::sync::Deadline;

    unsafe extern "C" {
        /// Sleeps while `*word == expected`, atomically with regard to `manycore_futex_wake`.
        /// `deadline` may be null. Returns whether the deadline passed; may return early without
        /// cause.
        pub fn manycore_futex_wait(
            word: *const AtomicU32,
            expected: u32,
            deadline: *const Deadline,
        ) -> bool;
        /// Wakes at most `count` threads that sleep on `word`, whose memory may have been freed.
        pub fn manycore_futex_wake(word: *const AtomicU32, count: u32);
        /// Whether the moment has come.
        pub fn manycore_deadline_passed(deadline: *const Deadline) -> bool;
        /// Lets another thread have the CPU.
        pub fn manycore_yield();
        /// A constant-rate counter.
        pub fn manycore_ticks() -> u64;
        /// Ticks of it in nanoseconds.
        pub fn manycore_nanoseconds(ticks: u64) -> u64;
        /// The largest difference of two CPUs' counters, in ticks; `u64::MAX` if the kernel has not
        /// measured it.
        pub fn manycore_clock_boundary() -> u64;
        /// How many CPUs there are, at least 1.
        pub fn manycore_cpu_count() -> u32;
        /// The CPU on which the caller runs, below the count.
        pub fn manycore_cpu_current() -> u32;
        /// A number of the calling thread, which no other living thread has.
        pub fn manycore_thread_id() -> u32;
        /// The number of memory nodes, at least 1.
        pub fn manycore_node_count() -> u32;
        /// The node to which the caller's CPU belongs, below the count.
        pub fn manycore_node_current() -> u32;
    }
}

/// Atomics, as `core` has them.
pub mod atomic {
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

#[path = "cell.rs"]
pub mod cell;

#[path = "fences.rs"]
pub mod barrier;

#[path = "global.rs"]
pub(super) mod global;

#[path = "process_table.rs"]
pub(super) mod table;

/// Waiting on a word.
pub mod futex {
    use super::atomic::{AtomicU32, AtomicU64};
    use super::symbols;
    use crate::sync::{Deadline, Woken};

    /// Sleeps while `word` holds `expected`, until a [`wake`] or the deadline, or without cause.
    pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
        let until = deadline.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: the word and the deadline outlive the call.
        let passed = unsafe { symbols::manycore_futex_wait(word, expected, until) };
        if passed { Woken::TimedOut } else { Woken::Perhaps }
    }

    /// Wakes at most `count` threads that sleep on `word`, whose memory may have been freed.
    #[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the address is a key, not followed")]
    pub fn wake(word: *const AtomicU32, count: u32) {
        // SAFETY: the kernel uses the address as a key only.
        unsafe { symbols::manycore_futex_wake(word, count) }
    }

    /// Does the same as [`wait`], on the lower half of a word; [`wake_low`] wakes the thread.
    pub fn wait_low(word: &AtomicU64, expected: u32, deadline: Option<Deadline>) -> Woken {
        // SAFETY: the word outlives the call, and only the kernel reads half of it.
        wait(unsafe { &*low_half(word) }, expected, deadline)
    }

    /// [`wake`] for [`wait_low`].
    pub fn wake_low(word: *const AtomicU64, count: u32) {
        wake(low_half(word), count);
    }

    fn low_half(word: *const AtomicU64) -> *const AtomicU32 {
        word.cast::<AtomicU32>().wrapping_add(usize::from(cfg!(target_endian = "big")))
    }
}

/// Time.
pub mod clock {
    /// Now, in ticks of the kernel's counter.
    pub fn now() -> u64 {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        unsafe { super::symbols::manycore_ticks() }
    }

    /// Whether `ticks` have passed since [`now`] was `start`: for a loop that polls until then at
    /// most.
    pub fn has_passed(start: u64, ticks: u64) -> bool {
        now().wrapping_sub(start) > ticks
    }

    /// Ticks in nanoseconds.
    pub fn nanoseconds(ticks: u64) -> u64 {
        // SAFETY: the program defines this symbol as declared above: it converts a number, and is
        // given no address.
        unsafe { super::symbols::manycore_nanoseconds(ticks) }
    }

    /// Reads the counter as [`now`] does, between two fences. The CPU must not read it before the
    /// first fence.
    pub fn ordered() -> u64 {
        // SeqCst, both: this thread's accesses stay on their sides of the reading. Partner: the
        // fences of threads that compare their times with this one.
        super::atomic::fence(super::atomic::Ordering::SeqCst);
        let ticks = now();
        super::atomic::fence(super::atomic::Ordering::SeqCst); // SeqCst: its second half
        ticks
    }

    /// The largest difference of two CPUs' counters, if the kernel knows it.
    pub fn boundary() -> Option<u64> {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        let ticks = unsafe { super::symbols::manycore_clock_boundary() };
        (ticks != u64::MAX).then_some(ticks)
    }
}

/// Ways of passing time.
#[expect(
    clippy::disallowed_methods,
    reason = "the facade is what algorithms use in place of these"
)]
pub mod hint {
    use super::{clock, symbols};
    pub use crate::sync::foresight::{prefetch, touch, unforeseen_branch};

    /// One turn of a polling loop.
    pub fn spin_loop() {
        core::hint::spin_loop();
    }

    /// One iteration of a loop that ends after a fixed number of iterations, rather than when
    /// something changes.
    pub fn pause() {
        core::hint::spin_loop();
    }

    /// Spends about `ticks` of [`clock::now`] without giving up the CPU.
    pub fn delay(ticks: u64) {
        let start = clock::now();
        while clock::now().wrapping_sub(start) < ticks {
            core::hint::spin_loop();
        }
    }

    /// Does nothing: a kernel's allocator itself chooses the pages.
    pub fn huge_pages(_address: *mut u8, _bytes: usize) {}

    /// Lets another runnable thread have the CPU.
    pub fn yield_now() {
        // SAFETY: the symbol's contract, above: it takes no arguments, and nothing of ours is lent
        // to it.
        unsafe { symbols::manycore_yield() }
    }

    /// Lets another thread have the CPU, because a kernel has no sleep of length 0.
    pub fn sleep_zero() {
        yield_now();
    }

    /// Lets another thread have the CPU: whether a thread sleeps while it polls for a deadline is a
    /// kernel's own decision.
    pub fn sleep(_nanoseconds: u32) {
        yield_now();
    }
}

/// Nodes for queue locks, from a fixed number.
pub mod node {
    use core::cell::UnsafeCell;
    use core::ptr::NonNull;

    use super::atomic::{AtomicU32, Ordering};
    use super::{cpu, hint};
    use crate::sync::CachePadded;

    /// How many nodes of queue locks can be in use at a time. A thread that needs another one
    /// waits.
    pub const NODES: usize = 1024;

    #[repr(align(128))]
    struct Block(UnsafeCell<[u8; 128]>);

    // SAFETY: only the thread that has set a block's bit in `USED`, with Acquire, writes its bytes,
    // until it clears the bit, with Release.
    unsafe impl Sync for Block {}

    static BLOCKS: [Block; NODES] = [const { Block(UnsafeCell::new([0; 128])) }; NODES];

    const WORDS: usize = NODES / 32;

    /// A bit for each node in use. Each CPU begins its search at a word of its own, so that CPUs
    /// that take different locks write different lines.
    static USED: [CachePadded<AtomicU32>; WORDS] =
        [const { CachePadded(AtomicU32::new(0)) }; WORDS];

    /// A node in its initial state. It belongs to the caller until [`give_back`].
    pub fn take<T: Default>() -> NonNull<T> {
        const { assert!(size_of::<T>() <= 128 && align_of::<T>() <= 128) };
        let own = cpu::current() as usize;
        let number = loop {
            if let Some(number) = (0..WORDS).find_map(|more| take_bit((own + more) % WORDS)) {
                break number;
            }
            hint::yield_now();
        };
        let node = NonNull::from(&BLOCKS[number].0).cast::<T>();
        // SAFETY: the bit is this thread's, so no other uses the block; the assertion checks its
        // size and alignment.
        unsafe { node.write(T::default()) };
        node
    }

    fn take_bit(word: usize) -> Option<usize> {
        // Relaxed: a hint; the *or* decides and orders.
        let bit = (!USED[word].load(Ordering::Relaxed)).checked_ilog2()?;
        // Acquire: partner of the Release in `give_back`.
        let before = USED[word].fetch_or(1 << bit, Ordering::Acquire);
        (before & (1 << bit) == 0).then_some(word * 32 + bit as usize)
    }

    /// Gives a node back, from any thread.
    ///
    /// # Safety
    ///
    /// It came from [`take`], and no thread will touch it.
    pub unsafe fn give_back<T>(node: NonNull<T>) {
        let number = (node.as_ptr().addr() - BLOCKS.as_ptr().addr()) / size_of::<Block>();
        // Release: partner of the Acquire in `take_bit`.
        USED[number / 32].fetch_and(!(1 << (number % 32)), Ordering::Release);
    }
}

/// CPUs.
pub mod cpu {
    /// How many CPUs there are.
    pub fn count() -> u32 {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        unsafe { super::symbols::manycore_cpu_count() }.max(1)
    }

    /// The CPU on which the caller runs.
    pub fn current() -> u32 {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        unsafe { super::symbols::manycore_cpu_current() }
    }

    /// [`current`].
    pub fn here() -> u32 {
        current()
    }

    /// How many nodes of memory there are.
    pub fn nodes() -> u32 {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        unsafe { super::symbols::manycore_node_count() }.max(1)
    }

    /// The memory node of the CPU on which the caller runs.
    pub fn node() -> u32 {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        unsafe { super::symbols::manycore_node_current() }
    }
}

/// Threads.
pub mod thread {
    /// A number of the calling thread, which no other living thread has.
    pub fn id() -> u32 {
        // SAFETY: the program defines this symbol as declared above: it takes no arguments, and
        // returns a number.
        unsafe { super::symbols::manycore_thread_id() }
    }

    /// Returns zeros: a kernel has no memory for a thread's notes.
    pub fn noted() -> [usize; 2] {
        [0; 2]
    }

    /// Notes nothing.
    pub fn note(_words: [usize; 2]) {}
}

/// Processes.
pub mod process {
    /// A kernel does not fork itself.
    pub fn generation() -> u32 {
        0
    }
}

pub(super) fn has_passed(deadline: &super::Deadline) -> bool {
    // SAFETY: the deadline outlives the call.
    unsafe { symbols::manycore_deadline_passed(deadline) }
}
