//! All physical memory, mapped at one place with pages of 2 MB: nothing that the kernel keeps in
//! memory ever faults.

use super::tables;

/// Where physical address 0 is mapped.
pub const BASE: u64 = 0xffff_8000_0000_0000;
/// The kernel's image is mapped at its physical address plus this.
pub const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// How much there is room for.
const SPACE: u64 = 512 << 30;
/// What boot.s has mapped.
const MAPPED_AT_BOOT: u64 = 4 << 30;

/// Where a physical address is mapped.
pub fn physical(address: u64) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut((BASE + address) as usize)
}

/// The physical address of data in the direct map or the image.
pub fn address_of<T>(pointer: *const T) -> u64 {
    let address = pointer.addr() as u64;
    address - if address >= IMAGE { IMAGE } else { BASE }
}

/// Whether an address is in the direct map, whose physical addresses follow each other.
pub fn holds(address: u64) -> bool {
    (BASE..BASE + SPACE).contains(&address)
}

/// Maps the registers of a device, at any address that the firmware has chosen.
pub fn map_device(start: u64, bytes: u64) {
    let end = (start + bytes).next_multiple_of(tables::LARGE);
    assert!(end <= SPACE, "a device has its registers at {start:#x}, behind the direct map");
    let first = start & !(tables::LARGE - 1);
    for address in (first.max(MAPPED_AT_BOOT)..end).step_by(tables::LARGE as usize) {
        tables::map_large_kernel(BASE + address, address);
    }
}

/// Maps the memory that boot.s has not mapped: from 4 GB up to `end`.
pub fn extend(end: u64) {
    for address in (MAPPED_AT_BOOT..end).step_by(tables::LARGE as usize) {
        tables::map_large_kernel(BASE + address, address);
    }
}
