//! CPUs forget translations that are no longer so.

use core::sync::atomic::Ordering;

use crate::arch::{apic, cpu, msr};
use crate::sync::pin::pin;
use crate::watch::counters::{Event, count};

/// Makes all CPUs of the set flush their cached translations of user pages, and waits until they
/// have. The page tables were changed before.
pub fn forget(cpus: u64) {
    let pin = pin();
    let this = pin.cpu().number();
    if cpus & 1 << this != 0 {
        forget_here();
    }
    let others = || (0..cpu::MOST).filter(|&cpu| cpu != this && cpus & 1 << cpu != 0);
    let mut wanted = [0; cpu::MOST];
    for number in others() {
        count(Event::Shootdowns);
        let other = cpu::by_number(number);
        // SeqCst: the change of the tables is before it; partner of the load in `answer`.
        wanted[number] = other.remote.flushes_wanted.fetch_add(1, Ordering::SeqCst) + 1;
        other.interrupt(apic::FLUSH);
    }
    debug_assert!(
        others().next().is_none() || msr::interrupts_on(),
        "two CPUs would wait for each other"
    );
    for number in others() {
        // Acquire: partner of the Release in `answer`: the CPU does not use the old entries.
        while cpu::by_number(number).remote.flushes_done.load(Ordering::Acquire) < wanted[number] {
            core::hint::spin_loop();
        }
    }
}

/// A CPU was asked. Interrupts are off.
pub fn answer() {
    let cpu = cpu::this();
    let wanted = cpu.remote.flushes_wanted.load(Ordering::SeqCst); // SeqCst: partner of `forget`
    forget_here();
    cpu.remote.flushes_done.store(wanted, Ordering::Release); // Release: partner of the Acquire there
}

fn forget_here() {
    // SAFETY: loads the tables that are in use already, which map the kernel.
    unsafe { msr::set_page_tables(msr::page_tables()) };
}
