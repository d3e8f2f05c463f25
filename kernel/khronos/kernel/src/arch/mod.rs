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
pub mod panic;
pub mod pci;
pub mod smp;
mod start;
pub mod switch;
pub mod trap;
pub mod tsc;

// SAFETY: the code from the loader to `start`: each CPU runs it once, before any Rust.
core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));
// SAFETY: entries save every register before Rust runs, and restore it after.
core::arch::global_asm!(include_str!("entry.s"));
// SAFETY: the functions that the compiler calls to copy, fill and compare, by its own contracts.
core::arch::global_asm!(include_str!("runtime.s"));
