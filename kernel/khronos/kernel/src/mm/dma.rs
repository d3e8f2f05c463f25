//! Memory that devices read and write by themselves.

use core::ptr::NonNull;
use core::slice;

use virtio_drivers::{BufferDirection, Hal, PhysAddr};

use super::direct_map::{self, physical};
use super::frames;

/// The kernel's memory, for the driver of virtual devices.
pub struct Dma;

fn order(pages: usize) -> usize {
    pages.next_power_of_two().ilog2() as usize
}

fn pages(bytes: usize) -> usize {
    bytes.div_ceil(frames::BYTES)
}

fn pointer(address: u64) -> NonNull<u8> {
    NonNull::new(physical(address)).expect("the direct map does not begin at 0")
}

/// Whether a device can use the buffer directly. It cannot if the frames are not adjacent, as those
/// of a thread's stack may be.
fn is_direct(buffer: NonNull<[u8]>) -> bool {
    direct_map::holds(buffer.cast::<u8>().as_ptr().addr() as u64)
}

// SAFETY: pieces of memory come from `frames`, which gives each to one owner, in the direct map and
// aligned to their size; registers of devices are not memory.
unsafe impl Hal for Dma {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // The address 0 says that there is no memory.
        let Some(address) = frames::take(order(pages)) else { return (0, NonNull::dangling()) };
        let memory = pointer(address);
        // SAFETY: `frames::take` has given out this piece just now, of at least as many frames, and
        // the direct map covers it.
        unsafe { memory.write_bytes(0, pages * frames::BYTES) };
        (address, memory)
    }

    unsafe fn dma_dealloc(address: PhysAddr, _: NonNull<u8>, pages: usize) -> i32 {
        // SAFETY: from `dma_alloc` with as many pages (contract of this function).
        unsafe { frames::give(address, order(pages)) };
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, bytes: usize) -> NonNull<u8> {
        direct_map::map_device(address, bytes as u64);
        pointer(address)
    }

    unsafe fn share(buffer: NonNull<[u8]>, direction: BufferDirection) -> PhysAddr {
        if is_direct(buffer) {
            return direct_map::address_of(buffer.cast::<u8>().as_ptr());
        }
        let address =
            frames::take(order(pages(buffer.len()))).expect("memory for a disk's request");
        if direction != BufferDirection::DeviceToDriver {
            // SAFETY: the buffer is valid (contract of this function), and the piece is as large
            // and not shared.
            unsafe {
                let from = slice::from_raw_parts(buffer.cast::<u8>().as_ptr(), buffer.len());
                physical(address).copy_from_nonoverlapping(from.as_ptr(), from.len());
            }
        }
        address
    }

    unsafe fn unshare(address: PhysAddr, buffer: NonNull<[u8]>, direction: BufferDirection) {
        if is_direct(buffer) {
            return;
        }
        // SAFETY: `share` has taken the piece for this buffer, which is valid (contract of this
        // function); the device is done with it.
        unsafe {
            if direction != BufferDirection::DriverToDevice {
                let into = buffer.cast::<u8>().as_ptr();
                into.copy_from_nonoverlapping(physical(address), buffer.len());
            }
            frames::give(address, order(pages(buffer.len())));
        }
    }
}
