//! The objects of which each process has one: the mover of calls, and the table of descriptors.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use crate::offload::{Offload, Route};
use manycore_channel::descriptors::{Entry, SLOTS_MAX, Slot, Table};
use syscalls::{Errno, Sysno, raw_syscall};

/// Everything that moves calls.
pub static OFFLOAD: Offload = Offload::new();

/// The table's type.
pub type Descriptors = Table<'static, Route, fn(Route)>;

static TABLE: OnceLock<Descriptors> = OnceLock::new();

/// Whether calls on files are moved too.
static FILES: AtomicBool = AtomicBool::new(false);

/// Reserves memory for all descriptors that the process can have; only touched pages are used.
/// Returns whether there is enough.
pub fn prepare(files: bool) -> bool {
    // Relaxed: set before calls are moved.
    FILES.store(files, Ordering::Relaxed);
    let count = limit();
    // SAFETY: an entry of zeros is one that is not known, and a slot of zeros is free.
    let (entries, slots) = unsafe { (zeroed::<Entry>(count), zeroed::<Slot<Route>>(count)) };
    let (Some(entries), Some(slots)) = (entries, slots) else { return false };
    TABLE.set(Table::new(entries, slots, |route| OFFLOAD.close(route))).is_ok()
}

/// The number of descriptors that the process can have, as far as there are slots.
fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let none = core::ptr::null::<libc::rlimit>();
    // SAFETY: the structure is as large as the kernel writes, and is the only memory that it writes
    // to.
    let known =
        unsafe { raw_syscall!(Sysno::prlimit64, 0, libc::RLIMIT_NOFILE, none, &raw mut limit) };
    let hard = if known == 0 { limit.rlim_max as usize } else { 0 };
    hard.clamp(1024, SLOTS_MAX / 16)
}

/// Zeroed memory for this many descriptors; untouched pages cost address space only.
///
/// # Safety
///
/// All zero bytes are a `T`.
unsafe fn zeroed<T>(count: usize) -> Option<&'static [T]> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping at an address that the kernel chooses touches no memory of
    // ours.
    let address = unsafe {
        raw_syscall!(Sysno::mmap, 0, count * size_of::<T>(), protection, flags, usize::MAX, 0)
    };
    let address = Errno::from_ret(address).ok()?;
    // SAFETY: the memory is mapped permanently, aligned to a page, zero, and all zero is a valid
    // `T` (contract of this function).
    Some(unsafe { core::slice::from_raw_parts(address as *const T, count) })
}

/// The table, if it exists, for a thread that already has a reference. Other threads use
/// [`crate::descriptors::table`].
pub fn get() -> Option<&'static Descriptors> {
    TABLE.get()
}

/// Whether calls on files are moved too.
pub fn moves_files() -> bool {
    FILES.load(Ordering::Relaxed) // Relaxed: as in `prepare`
}

/// Called in the child of a fork, by its only thread.
pub fn forked() {
    OFFLOAD.forked();
    if let Some(table) = get() {
        table.forked();
    }
}
