//! Segments, and the stacks onto which a CPU goes for interrupts.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::cpu::MOST;

/// The number of separate stacks: for NMIs, double faults and machine checks.
const OWN_STACKS: usize = 3;
const OWN_STACK_BYTES: usize = 16 << 10;

#[repr(C, packed(4))]
struct Tss {
    reserved: u32,
    stacks: [u64; 3],
    reserved_too: u64,
    own_stacks: [u64; 7],
    reserved_also: u64,
    reserved_last: u16,
    ports: u16,
}

#[repr(C, align(16))]
struct Tables {
    gdt: UnsafeCell<[u64; 8]>,
    tss: UnsafeCell<Tss>,
}

#[repr(align(16))]
struct Stacks(UnsafeCell<[[u8; OWN_STACK_BYTES]; OWN_STACKS]>);

// SAFETY: Rust code takes their addresses only; hardware of the one CPU whose TSS names them writes
// to them.
unsafe impl Sync for Stacks {}

/// In a static of their own, which is all zeros and takes no room in the kernel's file.
static STACKS: [Stacks; MOST] =
    [const { Stacks(UnsafeCell::new([[0; OWN_STACK_BYTES]; OWN_STACKS])) }; MOST];

// SAFETY: `load` and `set_kernel_stack` get the calling CPU's number (their contracts), so that
// each CPU writes its own tables only.
unsafe impl Sync for Tables {}

static TABLES: [Tables; MOST] = [const {
    Tables {
        // Null; kernel code, data; user code of 32 bits, data, code; two entries of the TSS.
        gdt: UnsafeCell::new([
            0,
            0x00af_9b00_0000_ffff,
            0x00cf_9300_0000_ffff,
            0x00cf_fb00_0000_ffff,
            0x00cf_f300_0000_ffff,
            0x00af_fb00_0000_ffff,
            0,
            0,
        ]),
        tss: UnsafeCell::new(Tss {
            reserved: 0,
            stacks: [0; 3],
            reserved_too: 0,
            own_stacks: [0; 7],
            reserved_also: 0,
            reserved_last: 0,
            ports: size_of::<Tss>() as u16,
        }),
    }
}; MOST];

/// Loads the tables of the CPU with this number.
///
/// # Safety
///
/// The calling CPU is that one.
pub unsafe fn load(number: usize) {
    let tables = &TABLES[number];
    let tss = tables.tss.get();
    let address = tss as u64;
    // SAFETY: the tables are the calling CPU's own (contract of this function), which no code uses
    // before it has loaded them, below.
    unsafe {
        for stack in 0..OWN_STACKS {
            (*tss).own_stacks[stack] =
                STACKS[number].0.get().cast::<u8>().add((stack + 1) * OWN_STACK_BYTES) as u64;
        }
        let gdt = tables.gdt.get();
        (*gdt)[6] = (size_of::<Tss>() as u64 - 1)
            | (address & 0xff_ffff) << 16
            | 0x89 << 40
            | (address >> 24 & 0xff) << 56;
        (*gdt)[7] = address >> 32;
    }
    let pointer = Pointer { bytes: 63, address: tables.gdt.get() as u64 };
    // SAFETY: the table is a static with the segments that boot.s uses, at the same places, so that
    // the segment registers stay valid; 0x30 is its TSS.
    unsafe {
        asm!("lgdt [{}]", in(reg) &raw const pointer);
        asm!("ltr {:x}", in(reg) 0x30u16);
    }
}

/// What `lgdt` and `lidt` read.
#[repr(C, packed)]
pub struct Pointer {
    /// Bytes, less one.
    pub bytes: u16,
    /// Where.
    pub address: u64,
}

/// Interrupts from user mode go onto this stack.
///
/// # Safety
///
/// The calling CPU has this number, and the stack belongs to the running thread.
pub unsafe fn set_kernel_stack(number: usize, top: u64) {
    // SAFETY: the TSS is the calling CPU's own (contract of this function), and apart from this
    // function only the CPU reads it.
    unsafe { (&raw mut (*TABLES[number].tss.get()).stacks[0]).write_unaligned(top) };
}
