//! The machine: x86-64.
#![allow(unsafe_code)]

pub mod acpi;
pub mod apic;
pub mod boot;
pub mod clock;
pub mod cpu;
pub mod exit;
pub mod frame;
pub mod gdt;
pub mod idt;
pub mod msr;
pub mod smp;
pub mod switch;
pub mod trap;
pub mod tsc;

core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));
core::arch::global_asm!(include_str!("entry.s"));
core::arch::global_asm!(include_str!("runtime.s"));
