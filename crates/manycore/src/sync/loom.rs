//! The loom model checker: loom's atomics, and a model of futexes and clocks on top of them.
//!
//! Constants are smaller (one spin round, a clock that jumps), so that the checker reaches the
//! interesting interleavings within its bounds.

/// Loom's atomics.
pub mod atomic {
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// Loom's cell, which reports racing accesses.
pub mod cell {
    pub use loom::cell::UnsafeCell;
}

#[path = "fences.rs"]
pub mod barrier;

/// A model of the futex system call: compare and sleep are one step with regard to a wake-up.
pub mod futex {
    use std::vec::Vec;

    use loom::sync::Mutex;
    use loom::thread::{self, Thread};

    use super::atomic::{AtomicU32, AtomicU64, Ordering};
    use crate::sync::{Deadline, Woken};

    loom::lazy_static! {
        static ref SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());
    }

    /// Sleeps while `word` holds `expected`. A deadline passes at once: other threads may do
    /// anything before the caller's next step, so that covers later time-outs as well. There is no
    /// yield: the checker does not try to continue a thread that has just yielded, and would miss
    /// executions.
    pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
        if deadline.is_some() {
            return Woken::TimedOut;
        }
        // Relaxed: the table's lock orders this load with the wake-ups, as the kernel's bucket lock
        // does.
        sleep(core::ptr::from_ref(word).addr(), || word.load(Ordering::Relaxed) == expected);
        Woken::Perhaps
    }

    /// Does the same as [`wait`], on the lower half of a word; [`wake_low`] wakes the thread.
    pub fn wait_low(word: &AtomicU64, expected: u32, deadline: Option<Deadline>) -> Woken {
        if deadline.is_some() {
            return Woken::TimedOut;
        }
        // Relaxed: as in `wait`.
        sleep(core::ptr::from_ref(word).addr(), || word.load(Ordering::Relaxed) as u32 == expected);
        Woken::Perhaps
    }

    fn sleep(address: usize, unchanged: impl FnOnce() -> bool) {
        {
            let mut sleepers = SLEEPERS.lock().unwrap();
            if !unchanged() {
                return;
            }
            sleepers.push((address, thread::current()));
        }
        thread::park();
    }

    /// Wakes the threads that have slept on `word` for longest, at most `count`.
    pub fn wake(word: *const AtomicU32, count: u32) {
        wake_address(word.addr(), count);
    }

    /// [`wake`] for [`wait_low`].
    pub fn wake_low(word: *const AtomicU64, count: u32) {
        wake_address(word.addr(), count);
    }

    fn wake_address(word: usize, count: u32) {
        let mut sleepers = SLEEPERS.lock().unwrap();
        for _ in 0..count {
            match sleepers.iter().position(|(address, _)| *address == word) {
                Some(first) => sleepers.remove(first).1.unpark(),
                None => break,
            }
        }
    }
}

/// A clock that jumps: every read of it is a thousand ticks later.
pub mod clock {
    use std::cell::Cell;

    std::thread_local! {
        // The checker runs all threads of a model on one thread of its own, and has to find the
        // same times when it repeats an execution. Other tests run at the same time.
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// Now, in ticks.
    pub fn now() -> u64 {
        NOW.set(NOW.get() + 1000);
        NOW.get()
    }

    /// Whether `ticks` have passed since [`now`] was `start`.
    pub fn has_passed(start: u64, ticks: u64) -> bool {
        now().wrapping_sub(start) > ticks
    }

    /// Ticks in nanoseconds, which they are.
    pub fn nanoseconds(ticks: u64) -> u64 {
        ticks
    }

    /// [`now`]: the checker has one clock for all.
    pub fn ordered() -> u64 {
        now()
    }

    /// Not measured.
    pub fn boundary() -> Option<u64> {
        None
    }
}

/// Ways of passing time. Under the checker, all of them let another thread run.
pub mod hint {
    /// Asks for a line ahead of its use. The checker has no lines.
    pub fn prefetch<T>(_address: *const T) {}

    /// Reads a value of a large object.
    pub fn touch<T>(_value: *const T) {}

    /// Memory that is going to be used.
    pub fn huge_pages(_address: *mut u8, _bytes: usize) {}

    /// A branch whose way cannot be predicted.
    pub fn unforeseen_branch() {}

    /// One turn of a polling loop.
    pub fn spin_loop() {
        loom::thread::yield_now();
    }

    /// One turn of a loop that ends by itself.
    pub fn pause() {
        loom::thread::yield_now();
    }

    /// Passes time.
    pub fn delay(_ticks: u64) {
        loom::thread::yield_now();
    }

    /// Lets another thread run.
    pub fn yield_now() {
        loom::thread::yield_now();
    }

    /// Lets another thread run.
    pub fn sleep_zero() {
        loom::thread::yield_now();
    }

    /// Lets another thread run.
    pub fn sleep(_nanoseconds: u32) {
        loom::thread::yield_now();
    }
}

/// Nodes for queue locks. The checker fails a model that does not give all of them back.
///
/// This module, and not the allocator, decides which node gets an earlier node's address: locks
/// compare nodes by their addresses, and such a comparison must not depend on the heap use of other
/// tests of the process. The checker could not repeat an execution then.
pub mod node {
    use core::alloc::Layout;
    use core::cell::RefCell;
    use core::mem::ManuallyDrop;
    use core::ptr::NonNull;
    use std::vec::Vec;

    use loom::alloc::Track;

    /// The node comes first, so that a pointer to the node is one to its place.
    #[repr(C)]
    struct TrackedNode<T> {
        node: ManuallyDrop<T>,
        given_back: ManuallyDrop<Track<()>>,
    }

    /// Places that are free: the one given back last is taken first, so that an algorithm which
    /// takes a new node for an old one is found out.
    struct Free(RefCell<Vec<(NonNull<u8>, Layout)>>);

    // SAFETY: the checker runs the threads of a model one after the other on one of its own, and
    // none of them stops in here.
    unsafe impl Sync for Free {}

    impl Drop for Free {
        fn drop(&mut self) {
            for (place, layout) in self.0.get_mut().drain(..) {
                // SAFETY: `new_place` has allocated it with this layout, and it is in the list of
                // free places, from which it was just taken.
                unsafe { std::alloc::dealloc(place.as_ptr(), layout) };
            }
        }
    }

    loom::lazy_static! {
        // One for each execution.
        static ref FREE: Free = Free(RefCell::new(Vec::new()));
    }

    fn free_place(layout: Layout) -> Option<NonNull<u8>> {
        let mut free = FREE.0.borrow_mut();
        let last = free.iter().rposition(|&(_, of)| of == layout)?;
        Some(free.remove(last).0)
    }

    fn new_place(layout: Layout) -> NonNull<u8> {
        // SAFETY: a place has the size of its `Track` at least.
        NonNull::new(unsafe { std::alloc::alloc(layout) }).expect("memory for a node")
    }

    /// A node in its initial state.
    pub fn take<T: Default>() -> NonNull<T> {
        let layout = Layout::new::<TrackedNode<T>>();
        let place =
            free_place(layout).unwrap_or_else(|| new_place(layout)).cast::<TrackedNode<T>>();
        let node = ManuallyDrop::new(T::default());
        // SAFETY: the memory was allocated with this layout, and is in no other use: new, or taken
        // out of `FREE`.
        unsafe { place.write(TrackedNode { node, given_back: ManuallyDrop::new(Track::new(())) }) };
        place.cast()
    }

    /// Gives a node back, from any thread.
    ///
    /// # Safety
    ///
    /// It came from [`take`], and no thread will touch it.
    pub unsafe fn give_back<T>(node: NonNull<T>) {
        // SAFETY: from `take`, of the same type: the first field of a place, both of whose fields
        // are dropped here and nowhere else.
        unsafe {
            let place = node.cast::<TrackedNode<T>>().as_mut();
            ManuallyDrop::drop(&mut place.node);
            ManuallyDrop::drop(&mut place.given_back);
        }
        FREE.0.borrow_mut().push((node.cast(), Layout::new::<TrackedNode<T>>()));
    }
}

/// CPUs.
pub mod cpu {
    use std::cell::Cell;

    /// Two, so that no algorithm skips its spinning.
    pub fn count() -> u32 {
        2
    }

    loom::lazy_static! {
        // Not one of the checker's atomics: the numbers are no part of the model. It makes a new
        // one for each execution.
        static ref ASKED: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    }
    loom::thread_local! {
        // Relaxed: the checker runs one thread at a time.
        static CURRENT: Cell<u32> = Cell::new(ASKED.fetch_add(1, core::sync::atomic::Ordering::Relaxed));
    }

    /// A CPU for each thread, in the order of their first requests.
    pub fn current() -> u32 {
        CURRENT.with(Cell::get)
    }

    /// [`current`].
    pub fn here() -> u32 {
        current()
    }

    /// For models in which it matters which threads are near to each other.
    pub fn run_on(cpu: u32) {
        CURRENT.with(|current| current.set(cpu));
    }

    /// Two, so that two threads are far from each other, and with three also two near.
    pub fn nodes() -> u32 {
        2
    }

    /// Every other thread is on the second node.
    pub fn node() -> u32 {
        current() % nodes()
    }
}

/// Threads.
pub mod thread {
    use std::cell::Cell;

    loom::thread_local! {
        static NOTED: Cell<[usize; 2]> = Cell::new([0; 2]);
    }

    /// A number for each thread, in the order of their first requests.
    pub fn id() -> u32 {
        super::cpu::current()
    }

    /// Two words that the calling thread has noted for itself, 0 at its start.
    pub fn noted() -> [usize; 2] {
        NOTED.with(Cell::get)
    }

    /// Notes them.
    pub fn note(words: [usize; 2]) {
        NOTED.with(|noted| noted.set(words));
    }
}

/// A table of one slot, which all threads share.
pub mod table {
    use super::atomic::AtomicUsize;

    loom::lazy_static! {
        static ref SLOTS: [AtomicUsize; 1] = [AtomicUsize::new(0)];
    }

    /// All slots.
    pub fn slots() -> &'static [AtomicUsize] {
        &*SLOTS
    }
}

/// The parameters of spinning locks, as small as they can be without skipping a branch.
pub mod tuning {
    use core::sync::atomic::Ordering::Relaxed;

    /// Tests before blocking.
    pub fn rounds() -> u32 {
        1
    }

    /// The longest delay, in units.
    pub fn delay() -> u32 {
        1
    }

    /// The unit, in ticks.
    pub fn delay_unit() -> u32 {
        1
    }

    /// A pause, in ticks.
    pub fn pause_cost() -> u32 {
        1
    }

    /// Tests before blocking, for locks with a number of their own.
    pub fn rounds_of(_usual: u32) -> u32 {
        1
    }

    /// No polls before queueing: a thread that polls yields, and the checker does not explore
    /// schedules in which it goes on.
    pub fn polls() -> u32 {
        0
    }

    /// One poll, as in `polls`.
    pub fn spin_limit() -> u64 {
        0
    }

    /// The same for all.
    pub fn spin_limit_or(_usual: impl FnOnce() -> u64) -> u64 {
        0
    }

    std::thread_local! {
        static LENIENCE: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
    }

    /// How often a waiter may be overtaken before it insists.
    pub fn lenience() -> u32 {
        LENIENCE.get()
    }

    /// For models of an insisting waiter, which would otherwise have to be long.
    pub fn set_lenience(times: u32) {
        LENIENCE.set(times);
    }

    /// How often readers meet before they leave marks.
    pub fn meetings() -> u32 {
        0
    }

    /// How often a lock is passed on while another waiter is set aside.
    pub fn passes() -> u32 {
        1
    }

    /// Waiters queue, however few CPUs there are.
    pub fn few_cpus() -> u32 {
        0
    }

    loom::lazy_static! {
        // Not the checker's atomics: hints are no part of the model. It makes new ones for each
        // execution.
        static ref HINTS: [core::sync::atomic::AtomicU32; 2] = Default::default();
    }

    /// When there was a sign of oversubscribed CPUs.
    pub(crate) fn oversubscription() -> u32 {
        HINTS[0].load(Relaxed) // Relaxed: the checker runs one thread at a time
    }

    /// Notes it.
    pub(crate) fn set_oversubscription(state: u32) {
        HINTS[0].store(state, Relaxed); // Relaxed: as above
    }

    /// When a thread last parked voluntarily.
    pub(crate) fn last_park() -> u32 {
        HINTS[1].load(Relaxed) // Relaxed: as above
    }

    /// Notes it.
    pub(crate) fn set_last_park(state: u32) {
        HINTS[1].store(state, Relaxed); // Relaxed: as above
    }

    /// As soon as possible.
    pub fn idle_passes() -> u32 {
        0
    }

    /// All of them: under the checker there are few.
    pub fn places(there_are: usize) -> usize {
        there_are
    }

    /// Gives up the CPU.
    pub fn give_up_cpu() {
        loom::thread::yield_now();
    }

    /// What that costs, in ticks: two reads of the clock.
    pub fn give_up_cost() -> u32 {
        2000
    }
}

/// Processes.
pub mod process {
    /// The checker does not fork.
    pub fn generation() -> u32 {
        0
    }
}

pub(super) fn has_passed(_deadline: &super::Deadline) -> bool {
    true
}

/// Whether the environment asks for this mutation.
pub fn is_mutated(mutation: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<std::string::String>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("MANYCORE_MUTATION").ok());
    chosen.as_deref() == Some(mutation)
}

/// The ordering, or `Relaxed` if the environment asks for this mutation.
pub fn weaken(mutation: &str, order: atomic::Ordering) -> atomic::Ordering {
    if is_mutated(mutation) { atomic::Ordering::Relaxed } else { order }
}

/// A fence, unless the environment asks for this mutation.
pub(crate) fn fence_unless(mutation: &str) {
    // SeqCst: as `full_fence!`, whose user names the partner.
    if weaken(mutation, atomic::Ordering::SeqCst) == atomic::Ordering::SeqCst {
        atomic::fence(atomic::Ordering::SeqCst);
    }
}

/// Whether the model has failed already: a second panic would hide the first.
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking()
}
