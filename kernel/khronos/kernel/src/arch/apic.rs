//! The local interrupt controller: timer, and interrupts between CPUs.

use crate::arch::msr::{inb, outb};
use crate::mm::direct_map::physical;

/// The timer's vector.
pub const TIMER: u8 = 0x40;
/// Asks a CPU to look for threads.
pub const RESCHEDULE: u8 = 0xf0;
/// Asks a CPU to forget translations.
pub const FLUSH: u8 = 0xf1;
/// An interrupt that was withdrawn.
pub const SPURIOUS: u8 = 0xff;

const ID: u64 = 0x20;
const END: u64 = 0xb0;
const SPURIOUS_VECTOR: u64 = 0xf0;
const COMMAND_LOW: u64 = 0x300;
const COMMAND_HIGH: u64 = 0x310;
const TIMER_ENTRY: u64 = 0x320;
const TIMER_INITIAL: u64 = 0x380;
const TIMER_CURRENT: u64 = 0x390;
const TIMER_DIVISOR: u64 = 0x3e0;

const BASE: u64 = 0xfee0_0000;

fn read(register: u64) -> u32 {
    // SAFETY: the registers of the CPU's own controller, which the direct map covers.
    unsafe { physical(BASE + register).cast::<u32>().read_volatile() }
}

fn write(register: u64, value: u32) {
    // SAFETY: the registers of the CPU's own controller, which the direct map covers; the kernel's
    // writes there touch no memory.
    unsafe { physical(BASE + register).cast::<u32>().write_volatile(value) }
}

/// The caller's identifier.
pub fn id() -> u8 {
    (read(ID) >> 24) as u8
}

/// Turns on the CPU's controller, and turns off the two old ones.
pub fn enable() {
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    write(SPURIOUS_VECTOR, 0x100 | u32::from(SPURIOUS));
}

/// An interrupt has been handled.
pub fn end_of_interrupt() {
    write(END, 0);
}

fn command(apic_id: u8, low: u32) {
    // Interrupts off between the two halves: a handler may send, too.
    let were_on = crate::arch::msr::interrupts_off();
    while read(COMMAND_LOW) & 1 << 12 != 0 {
        core::hint::spin_loop();
    }
    write(COMMAND_HIGH, u32::from(apic_id) << 24);
    write(COMMAND_LOW, low);
    if were_on {
        crate::arch::msr::interrupts_enable();
    }
}

/// Interrupts another CPU.
pub fn send(apic_id: u8, vector: u8) {
    command(apic_id, 0x4000 | u32::from(vector));
}

/// Interrupts another CPU even if it has interrupts off.
pub fn send_nmi(apic_id: u8) {
    command(apic_id, 0x4400);
}

/// Stops a CPU that has not begun.
pub fn send_init(apic_id: u8) {
    command(apic_id, 0x4500);
}

/// Starts a CPU at this page below 1 MB.
pub fn send_startup(apic_id: u8, page: u8) {
    command(apic_id, 0x4600 | u32::from(page));
}

/// Starts the timer, which interrupts after every `count` of its ticks.
pub fn start_timer(count: u32) {
    write(TIMER_DIVISOR, 0x3); // by 16
    write(TIMER_ENTRY, 0x2_0000 | u32::from(TIMER)); // periodic
    write(TIMER_INITIAL, count);
}

/// The number of ticks of the timer, and of the CPU's counter, in ten milliseconds of the machine's
/// oldest clock.
pub fn calibrate() -> (u32, u64) {
    const PIT_HERTZ: u32 = 1_193_182;
    const COUNT: u16 = (PIT_HERTZ / 100) as u16;
    write(TIMER_DIVISOR, 0x3);
    write(TIMER_ENTRY, 0x1_0000); // masked
    outb(0x61, inb(0x61) & !2 | 1); // the gate of channel 2; no sound
    outb(0x43, 0xb0); // channel 2, both bytes, one shot
    outb(0x42, COUNT as u8);
    outb(0x42, (COUNT >> 8) as u8);
    write(TIMER_INITIAL, u32::MAX);
    let start = crate::arch::tsc::read();
    while inb(0x61) & 0x20 == 0 {
        core::hint::spin_loop();
    }
    let timer = u32::MAX - read(TIMER_CURRENT);
    let ticks = crate::arch::tsc::read() - start;
    write(TIMER_INITIAL, 0);
    (timer.max(1), ticks.max(1))
}
