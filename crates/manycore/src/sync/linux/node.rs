//! Nodes for queue locks: blocks of 128 bytes, from a store that each thread has.
//!
//! A lock in place of a `pthread_mutex_t` has no room for its holder's node, and its caller has
//! none for it either. So each thread has a *store* of nodes, found through its thread-local block.
//! The store uses no libc, no allocation except `mmap`, and no function at a thread's end. As no
//! code learns of a thread's end, a thread that needs a store asks the kernel whether the owner of
//! an old store still exists.
//!
//! A thread may give back a node that another thread took: each store notes its free nodes in an
//! atomic word.

use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

use syscalls::{Errno, Sysno, raw_syscall};

use super::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use super::{hint, local, process};

/// A thread's nodes, on a page of their own: a node's address gives the address of its store.
#[repr(C, align(4096))]
pub(super) struct Store {
    /// The thread to which the store belongs or belonged. Written under `GIVING`.
    owner: AtomicU32,
    /// A bit for each node that is not in use.
    free: AtomicU32,
    /// The store that the same thread had filled before it got this one.
    before: AtomicPtr<Store>,
    _spare: [u64; 14],
    blocks: [Block; BLOCKS],
}

const BLOCKS: usize = 31;

#[repr(C, align(128))]
struct Block(UnsafeCell<[u8; 128]>);

const _: () = assert!(size_of::<Store>() == 4096 && core::mem::offset_of!(Store, blocks) == 128);

/// Stores are mapped this many at a time.
const CHUNK: usize = 64;

/// As many chunks as there can be threads in Linux (2^22).
const CHUNKS: usize = (1 << 22) / CHUNK;

static CHUNK_TABLE: [AtomicPtr<Store>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

/// The number of stores given out so far, and the store to be read next. Relaxed: written and read
/// under `GIVING`.
static GIVEN: AtomicU32 = AtomicU32::new(0);
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Protects the giving out of stores, which takes some system calls.
static GIVING: AtomicBool = AtomicBool::new(false);

/// How many old stores are read before a new one is taken. With two, most stores belong to living
/// threads.
const PROBES: u32 = 2;

/// A node in its initial state. It belongs to the caller until [`give_back`].
pub fn take<T: Default>() -> NonNull<T> {
    const { assert!(size_of::<T>() <= size_of::<Block>() && align_of::<T>() <= 128) };
    // A child that has not noticed yet that it was forked would share its stores with threads that
    // do not exist in it.
    process::generation();
    let first = local::local().nodes().cast::<Store>();
    let mut store = first;
    // SAFETY: null, or a store of this thread or of one whose store it has taken over; stores are
    // never unmapped.
    while let Some(s) = unsafe { store.as_ref() } {
        if let Some(node) = s.take() {
            return node;
        }
        store = s.before.load(Ordering::Relaxed); // Relaxed: written by this thread
    }
    new_store(first).take().expect("a store has a free node when its thread gets it")
}

/// Gives a node back, from any thread.
///
/// # Safety
///
/// It came from [`take`], and no thread will touch it.
pub unsafe fn give_back<T>(node: NonNull<T>) {
    let address = node.as_ptr().addr();
    // SAFETY: the node comes from `take` (contract of this function), and so is in a store, which
    // is aligned to its size and never unmapped.
    let store = unsafe { &*core::ptr::with_exposed_provenance::<Store>(address & !4095) };
    let block = (address % 4096 - 128) / 128;
    // Release: partner of the Acquire in `Store::take`; the next user's writes come after ours.
    store.free.fetch_or(1 << block, Ordering::Release);
}

/// Gives the calling thread a store if it has none.
pub(super) fn prepare() {
    process::generation();
    if local::local().nodes().cast::<Store>().is_null() {
        new_store(null_mut());
    }
}

impl Store {
    fn take<T: Default>(&self) -> Option<NonNull<T>> {
        // Acquire: partner of the Release in `give_back`. Only this thread takes nodes out, so the
        // bit stays.
        let free = self.free.load(Ordering::Acquire);
        if free == 0 {
            return None;
        }
        let block = free.trailing_zeros();
        // Relaxed: takes a bit that the load above has seen.
        self.free.fetch_and(!(1 << block), Ordering::Relaxed);
        let node = NonNull::from(&self.blocks[block as usize]).cast::<T>();
        // SAFETY: the block is within the store, aligned to 128, and this thread's: its bit was
        // set, only the thread that has the store clears bits, and it has cleared this one. Blocks
        // are reached only through such pointers.
        unsafe { node.write(T::default()) };
        Some(node)
    }
}

/// Gives the calling thread a store, in front of its other ones.
#[cold]
fn new_store(before: *mut Store) -> &'static Store {
    // Acquire: partner of the Release below, of the thread before: one at a time is here.
    while GIVING.swap(true, Ordering::Acquire) {
        hint::yield_now();
    }
    let store = left_behind().unwrap_or_else(fresh);
    // Relaxed, both: under `GIVING`.
    store.owner.store(local::kernel_id(), Ordering::Relaxed);
    store.before.store(before, Ordering::Relaxed);
    // Release: partner of the Acquire above, of the next thread.
    GIVING.store(false, Ordering::Release);
    local::local().set_nodes(core::ptr::from_ref(store).cast_mut().cast());
    store
}

/// A store whose thread has ended. A node that is still in use, such as the node of a lock that the
/// ended thread held, stays in use.
fn left_behind() -> Option<&'static Store> {
    // Relaxed, here and in the closure: under `GIVING`, except for `free`, to which nodes are only
    // returned.
    let given = GIVEN.load(Ordering::Relaxed);
    (0..PROBES.min(given)).find_map(|_| {
        let number = NEXT.load(Ordering::Relaxed) % given;
        NEXT.store(number + 1, Ordering::Relaxed);
        let store = store(number);
        let free = store.free.load(Ordering::Relaxed) != 0;
        (free && has_ended(store.owner.load(Ordering::Relaxed))).then_some(store)
    })
}

/// Whether no thread of this process has this number.
fn has_ended(thread: u32) -> bool {
    // SAFETY: the call takes numbers only, and with signal 0 it only checks whether there is such a
    // thread.
    let sent = unsafe { raw_syscall!(Sysno::tgkill, process::number(), thread, 0) };
    Errno::from_ret(sent) == Err(Errno::ESRCH)
}

fn store(number: u32) -> &'static Store {
    let (chunk, index) = (number as usize / CHUNK, number as usize % CHUNK);
    // Relaxed: under `GIVING`.
    let first = CHUNK_TABLE[chunk].load(Ordering::Relaxed);
    // SAFETY: a chunk is mapped permanently before its first store is given out, with `CHUNK`
    // stores.
    unsafe { &*first.add(index) }
}

fn fresh() -> &'static Store {
    // Relaxed, throughout: under `GIVING`.
    let number = GIVEN.load(Ordering::Relaxed);
    if (number as usize).is_multiple_of(CHUNK) {
        CHUNK_TABLE[number as usize / CHUNK].store(map_chunk(), Ordering::Relaxed);
    }
    GIVEN.store(number + 1, Ordering::Relaxed);
    let store = store(number);
    store.free.store((1 << BLOCKS) - 1, Ordering::Relaxed);
    store
}

/// Memory for `CHUNK` stores. The kernel provides each page when it is first used.
fn map_chunk() -> *mut Store {
    let size = CHUNK * size_of::<Store>();
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new private mapping at an address that the kernel chooses touches no memory of
    // ours.
    let mapped = unsafe { raw_syscall!(Sysno::mmap, 0, size, protection, flags, usize::MAX, 0) };
    // A lock function cannot report a lack of memory, and a mutex must not be taken without a node.
    assert!((mapped as isize) > 0, "no memory for the nodes of queue locks");
    core::ptr::with_exposed_provenance_mut(mapped)
}

/// Called in the child of a fork: the stores of the only thread still belong to it, under its new
/// number.
pub(super) fn forked(thread: u32) {
    GIVING.store(false, Ordering::Relaxed); // Relaxed: there is one thread
    let mut store = local::local().nodes().cast::<Store>();
    // SAFETY: null, or a store of this thread or of one whose store it has taken over; stores are
    // never unmapped.
    while let Some(s) = unsafe { store.as_ref() } {
        s.owner.store(thread, Ordering::Relaxed);
        store = s.before.load(Ordering::Relaxed);
    }
}
