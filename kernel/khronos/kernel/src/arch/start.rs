//! The first CPU, from boot.s to the first thread.

use core::sync::atomic::Ordering;

use super::{apic, boot, clock, cpu, gdt, idt, smp, tsc};
use crate::drive::uart;
use crate::mm::{direct_map, frames, stacks, tables};
use crate::task::{sched, thread};
use crate::vfs::durable;

/// The entry of the first CPU from boot.s, with the loader's protocol and its information.
#[unsafe(no_mangle)]
extern "C" fn boot_main(information: u32, protocol: u32) -> ! {
    // SAFETY: boot.s calls this once, on the first CPU, whose number is 0.
    unsafe {
        cpu::adopt(0, 0);
        gdt::load(0);
    }
    uart::start();
    idt::make();
    idt::load();
    boot::read(protocol, u64::from(information));
    frames::start();
    stacks::start();
    let end = boot::information().memory.as_slice().iter().map(|range| range.end).max();
    direct_map::extend(end.unwrap_or(0));
    apic::enable();
    let (timer, ticks) = apic::calibrate();
    tsc::set(ticks);
    clock::start();
    sched::set_slice(timer);
    cpu::this().remote.apic_id.store(u32::from(apic::id()), Ordering::Relaxed); // Relaxed: own
    durable::find_disk();
    smp::start();
    tables::drop_identity_map();
    sched::adopt();
    smp::open_gate();
    thread::spawn(crate::main);
    sched::idle()
}
