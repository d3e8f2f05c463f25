//! Page tables of four levels.

use core::sync::atomic::{AtomicU64, Ordering};

use super::direct_map::{address_of, physical};
use super::frames::{self, Frame};
use crate::arch::msr;

/// The entry counts.
pub const PRESENT: u64 = 1;
/// Writing is allowed.
pub const WRITABLE: u64 = 1 << 1;
/// User mode may use it.
pub const USER: u64 = 1 << 2;
const LARGE_PAGE: u64 = 1 << 7;
/// Not executable.
pub const NO_EXECUTE: u64 = 1 << 63;
/// The physical address in an entry.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Bytes of a large page.
pub const LARGE: u64 = 2 << 20;
/// The index in the first level at which the kernel's half begins.
const KERNEL_ENTRIES: usize = 256;

unsafe extern "C" {
    static boot_pml4: u8;
}

/// An entry. The CPU reads it, and sets the bits that record whether the page was used.
pub type Entry = AtomicU64;

/// The kernel's own tables.
pub fn kernel() -> u64 {
    address_of(&raw const boot_pml4)
}

fn table(address: u64) -> &'static [Entry; 512] {
    // SAFETY: a page table, which is valid as long as its root is; entries are atomic.
    unsafe { &*physical(address).cast() }
}

/// The root of a new address space. Its kernel half is common to all.
pub fn new_root() -> Option<Frame> {
    let root = Frame::zeroed()?;
    for entry in KERNEL_ENTRIES..512 {
        // Relaxed, both: the kernel's entries of this level never change once CPUs run.
        let kernel = table(kernel())[entry].load(Ordering::Relaxed);
        table(root.address())[entry].store(kernel, Ordering::Relaxed);
    }
    Some(root)
}

fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level) & 511) as usize
}

/// The entry of a page; `None` if a table on the way is missing. With `make`, missing tables are
/// made, and the result is `None` only if there is no memory. The caller has the lock of the page's
/// block.
pub fn entry(root: u64, address: u64, make: bool) -> Option<&'static Entry> {
    entry_at(root, address, 0, make)
}

fn entry_at(root: u64, address: u64, level: u32, make: bool) -> Option<&'static Entry> {
    let mut at = root;
    for step in (level + 1..4).rev() {
        let entry = &table(at)[index(address, step)];
        // Acquire, here and below: partner of the Release below: the thread that has made another
        // block may hold that block's lock.
        let mut value = entry.load(Ordering::Acquire);
        if value & PRESENT == 0 {
            if !make {
                return None;
            }
            let (new, flags) = (Frame::zeroed()?, PRESENT | WRITABLE | USER);
            // Release: partner of the Acquires here, and of a CPU's walk, which sees zeros.
            let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
            value = match entry.compare_exchange(0, new.address() | flags, done, failed) {
                Ok(_) => new.into_raw() | flags,
                Err(made) => made,
            };
        }
        at = value & ADDRESS;
    }
    Some(&table(at)[index(address, level)])
}

/// Calls `f` with each page between two addresses that has a nonzero entry.
pub fn for_each(root: u64, start: u64, end: u64, mut f: impl FnMut(u64, &Entry)) {
    let mut at = start;
    while at < end {
        match entry(root, at, false) {
            None => at = (at + LARGE) & !(LARGE - 1),
            Some(found) => {
                if found.load(Ordering::Relaxed) != 0 {
                    // Relaxed: under the block's lock, or all
                    f(at, found);
                }
                at += frames::BYTES as u64;
            }
        }
    }
}

/// Frees all tables of the user half below the root. Their pages are already unmapped.
///
/// # Safety
///
/// No CPU uses the root.
pub unsafe fn free_user_tables(root: u64) {
    for entry in &table(root)[..KERNEL_ENTRIES] {
        free_below(entry, 3);
    }
}

fn free_below(entry: &Entry, level: u32) {
    let value = entry.swap(0, Ordering::Relaxed); // Relaxed: no other thread uses it
    if value & PRESENT == 0 {
        return;
    }
    if level > 1 {
        table(value & ADDRESS).iter().for_each(|entry| free_below(entry, level - 1));
    }
    // SAFETY: made by `entry_at`, and taken out of its table just now.
    drop(unsafe { Frame::from_raw(value & ADDRESS) });
}

/// Maps a frame for the kernel, for good.
///
/// # Panics
///
/// If there is no memory for tables, or the page is mapped.
pub fn map_kernel(address: u64, frame: Frame) {
    let entry = entry(kernel(), address, true).expect("memory for the kernel's page tables");
    let value = frame.into_raw() | PRESENT | WRITABLE | NO_EXECUTE;
    // Release: partner of a CPU's walk through the tables, which sees the frame's contents.
    let before = entry.swap(value, Ordering::Release);
    assert!(before == 0, "the kernel maps the page at {address:#x} twice");
}

/// Maps a large page for the kernel, for good.
///
/// # Panics
///
/// If there is no memory for tables.
pub fn map_large_kernel(address: u64, to: u64) {
    let entry = entry_at(kernel(), address, 1, true).expect("memory for the kernel's page tables");
    // Release: partner of a CPU's walk through the tables.
    entry.store(to | PRESENT | WRITABLE | LARGE_PAGE | NO_EXECUTE, Ordering::Release);
}

/// Makes the first level's entry for a part of the kernel's half, so that all roots get it.
///
/// # Panics
///
/// If there is no memory for it.
pub fn reserve_kernel(address: u64) {
    entry_at(kernel(), address, 2, true).expect("memory for the kernel's page tables");
}

/// Unmaps the first pages, so that null pointers fault.
pub fn drop_identity_map() {
    table(kernel())[0].store(0, Ordering::Relaxed); // Relaxed: the load of the root orders
    // SAFETY: they map the kernel as they did: the line above has emptied their first entry alone,
    // in whose range nothing of the kernel is.
    unsafe { msr::set_page_tables(kernel()) };
}
