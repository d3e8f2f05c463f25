//! Instructions that Rust has no word for: ports, model-specific registers, control registers.

use core::arch::asm;

/// Base of the segment FS: a user thread's thread-local storage.
pub const FS_BASE: u32 = 0xc000_0100;
/// Base of the segment GS: in the kernel, the CPU's [`Cpu`](super::cpu::Cpu).
pub const GS_BASE: u32 = 0xc000_0101;
/// Segments of `syscall`.
pub const STAR: u32 = 0xc000_0081;
/// Entry of `syscall`.
pub const LSTAR: u32 = 0xc000_0082;
/// Flags that `syscall` clears.
pub const FMASK: u32 = 0xc000_0084;

/// Writes a register.
///
/// # Safety
///
/// The kernel goes on with the new value.
pub unsafe fn write(register: u32, value: u64) {
    // SAFETY: the kernel goes on with the new value (contract of this function); the instruction
    // accesses no memory.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32);
    }
}

/// Reads a byte from a port.
pub fn inb(port: u16) -> u8 {
    let value: u8;
    // SAFETY: the devices whose ports the kernel reads do not access memory as a result.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
    value
}

/// Writes a byte to a port.
pub fn outb(port: u16, value: u8) {
    // SAFETY: the devices whose ports the kernel writes do not access memory as a result.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}

/// Writes two bytes to a port.
pub fn outw(port: u16, value: u16) {
    // SAFETY: the devices whose ports the kernel writes do not access memory as a result.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack)) };
}

/// Reads four bytes from a port.
pub fn inl(port: u16) -> u32 {
    let value: u32;
    // SAFETY: the two ports of PCI's configuration, which is not memory.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack)) };
    value
}

/// Writes four bytes to a port.
pub fn outl(port: u16, value: u32) {
    // SAFETY: the two ports of PCI's configuration, which is not memory.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack)) };
}

/// The address of the last page fault.
pub fn fault_address() -> usize {
    let address: usize;
    // SAFETY: reads CR2, and accesses no memory.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) };
    address
}

/// The physical address of the page tables in use.
pub fn page_tables() -> u64 {
    let address: u64;
    // SAFETY: reads CR3, and accesses no memory.
    unsafe { asm!("mov {}, cr3", out(reg) address, options(nomem, nostack)) };
    address
}

/// Loads other page tables. If they are the same ones, flushes the CPU's cached translations.
///
/// # Safety
///
/// They map the kernel.
pub unsafe fn set_page_tables(address: u64) {
    // SAFETY: the tables map the kernel (contract of this function), so that its code, stacks and
    // statics stay where they are.
    unsafe { asm!("mov cr3, {}", in(reg) address, options(nostack)) };
}

/// Whether interrupts are on.
pub fn interrupts_on() -> bool {
    let flags: u64;
    // SAFETY: reads the flags by way of the stack, below which nothing is kept: the kernel is
    // compiled without a red zone.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags) };
    flags & 1 << 9 != 0
}

/// Turns interrupts off; says whether they were on.
pub fn interrupts_off() -> bool {
    let were_on = interrupts_on();
    // SAFETY: interrupts that arrive are handled once they are on again. Without `nomem`, the
    // compiler keeps memory accesses on their side of this.
    unsafe { asm!("cli") };
    were_on
}

/// Turns interrupts on.
pub fn interrupts_enable() {
    // SAFETY: handlers are loaded before any code calls this, and a handler leaves registers and
    // the interrupted stack as it has found them.
    unsafe { asm!("sti") };
}

/// Turns interrupts on and sleeps until one comes, without a moment in between.
pub fn wait_for_interrupt() {
    // SAFETY: handlers are in place before anything calls this; `sti` takes effect after the next
    // instruction.
    unsafe { asm!("sti", "hlt") };
}
