//! Where interrupts and exceptions go.

use core::arch::asm;

use super::frame::KERNEL_CODE;
use super::gdt::Pointer;
use super::msr;
use crate::sync::once::Once;

#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    low: u64,
    high: u64,
}

unsafe extern "C" {
    static stubs: u8;
    static nmi_entry: u8;
    static syscall_entry: u8;
}

static IDT: Once<[Gate; 256]> = Once::new();

const NMI: usize = 2;

fn gate(vector: usize) -> Gate {
    let address = if vector == NMI {
        (&raw const nmi_entry).addr() as u64
    } else {
        ((&raw const stubs).addr() + 16 * vector) as u64
    };
    // NMI, double fault, machine check: stacks of their own.
    let stack = match vector {
        NMI => 1,
        8 => 2,
        18 => 3,
        _ => 0,
    };
    // User programs may make breakpoints.
    let level = if vector == 3 { 3 } else { 0 };
    Gate {
        low: (address & 0xffff)
            | KERNEL_CODE << 16
            | stack << 32
            | 0x8e << 40
            | level << 45
            | (address >> 16 & 0xffff) << 48,
        high: address >> 32,
    }
}

/// Makes the table, once.
pub fn make() {
    IDT.set(core::array::from_fn(gate));
}

/// Makes the calling CPU use the table and accept system calls.
pub fn load() {
    let table = IDT.get();
    let pointer =
        Pointer { bytes: (size_of_val(table) - 1) as u16, address: table.as_ptr() as u64 };
    // SAFETY: all gates lead to entry.s, which saves every register; the selectors in STAR are
    // those of the table in gdt.rs.
    unsafe {
        asm!("lidt [{}]", in(reg) &raw const pointer);
        msr::write(msr::STAR, 0x18 << 48 | 0x08 << 32);
        msr::write(msr::LSTAR, (&raw const syscall_entry).addr() as u64);
        msr::write(msr::FMASK, 0x4_7700); // AC, NT, DF, IF, TF and the I/O level
    }
}
