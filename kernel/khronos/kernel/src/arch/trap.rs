//! What an interrupt, an exception or a system call does.

use core::sync::atomic::{AtomicBool, Ordering};

use super::frame::Frame;
use super::{apic, cpu, msr, panic};
use crate::mm::{fault, shootdown};
use crate::task::{sched, signal};
use crate::watch::counters::{Event, count};
use crate::{call, println};

const PAGE_FAULT: u64 = 14;

/// All CPUs are to stop: one has panicked.
pub static STOPPING: AtomicBool = AtomicBool::new(false);

/// Called by entry.s with interrupts off.
#[unsafe(no_mangle)]
extern "C" fn trap(frame: &mut Frame) {
    match frame.vector {
        PAGE_FAULT => page_fault(frame),
        vector @ 0..32 => exception(frame, vector),
        vector if vector == u64::from(apic::TIMER) => {
            apic::end_of_interrupt();
            sched::tick(frame);
        }
        vector if vector == u64::from(apic::RESCHEDULE) => {
            apic::end_of_interrupt();
            cpu::this().is_due.store(true, Ordering::Relaxed); // Relaxed: the CPU's own
        }
        vector if vector == u64::from(apic::FLUSH) => {
            apic::end_of_interrupt();
            shootdown::answer();
        }
        vector if vector == u64::from(apic::SPURIOUS) => {}
        vector => {
            apic::end_of_interrupt();
            println!("interrupt {vector}: no device asked for it");
        }
    }
    if frame.is_user() {
        before_user(frame);
    } else if frame.flags & 1 << 9 != 0 && cpu::pins() == 0 {
        sched::preempt_if_due();
    }
}

/// Called by entry.s with interrupts off.
#[unsafe(no_mangle)]
extern "C" fn system_call(frame: &mut Frame) {
    msr::interrupts_enable();
    count(Event::SystemCalls);
    call::dispatch(frame);
    msr::interrupts_off();
    before_user(frame);
}

/// The work before the CPU returns to user mode: switches to other threads, and signals. Interrupts
/// are off, and are off again when it returns.
pub fn before_user(frame: &mut Frame) {
    loop {
        sched::preempt_if_due();
        if !signal::is_due() {
            return signal::settle(frame);
        }
        msr::interrupts_enable();
        signal::deliver(frame);
        msr::interrupts_off();
    }
}

fn page_fault(frame: &mut Frame) {
    let address = msr::fault_address();
    let by_copy = fault::is_user_copy(frame.rip);
    if !frame.is_user() && !by_copy {
        count(Event::KernelFaults);
        die(frame, format_args!("page fault in the kernel at address {address:#x}"));
    }
    let may_sleep = cpu::pins() == 0 && frame.flags & 1 << 9 != 0;
    if may_sleep {
        msr::interrupts_enable();
        let is_mended = fault::mend(address, frame.error);
        msr::interrupts_off();
        if is_mended {
            return;
        }
    }
    if by_copy {
        frame.rip = fault::copy_exit();
    } else {
        signal::fault(frame, signal::SIGSEGV, address);
    }
}

fn exception(frame: &mut Frame, vector: u64) {
    if !frame.is_user() {
        die(frame, format_args!("exception {vector}, error code {:#x}", frame.error));
    }
    let number = match vector {
        0 | 16 | 19 => signal::SIGFPE,
        1 | 3 => signal::SIGTRAP,
        6 => signal::SIGILL,
        _ => signal::SIGSEGV,
    };
    signal::fault(frame, number, frame.rip as usize);
}

fn die(frame: &Frame, why: core::fmt::Arguments) -> ! {
    panic::stop_with(why, frame.rip, frame.rbp)
}

/// Called by entry.s, on a stack of its own, after another CPU has panicked or the hardware has
/// reported a fault.
#[unsafe(no_mangle)]
extern "C" fn non_maskable(frame: &Frame) {
    if STOPPING.load(Ordering::Acquire) {
        // Acquire: partner of the Release in `panic`
        panic::stop_here(frame.rip, frame.rbp, frame.is_user());
    }
    println!("cpu {}: an NMI that no CPU has sent", cpu::number());
}
