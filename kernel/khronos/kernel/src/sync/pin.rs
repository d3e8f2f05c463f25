//! Staying on a CPU: the access to a CPU's private data.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::arch::cpu::{self, Cpu};
use crate::arch::msr;
use crate::task::sched;

/// While the running thread has this, it stays on its CPU. Interrupts stay on.
#[must_use]
pub struct Pin(PhantomData<*mut ()>);

/// Pins the running thread.
pub fn pin() -> Pin {
    cpu::pin();
    Pin(PhantomData)
}

impl Pin {
    /// The CPU.
    pub fn cpu(&self) -> &'static Cpu {
        cpu::this()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        unpin();
    }
}

/// Takes a pin back; if it was the last, switches to another thread if that is due.
pub(super) fn unpin() {
    // Relaxed: the CPU's own; if the thread has moved since, one look too many.
    if cpu::unpin() && cpu::this().is_due.load(Ordering::Relaxed) && msr::interrupts_on() {
        msr::interrupts_off();
        sched::preempt_if_due();
        msr::interrupts_enable();
    }
}

/// Says that the caller may sleep from here on.
///
/// # Panics
///
/// If it is pinned, by a spin lock for instance, or has interrupts off: it would wait for ever, or
/// let others wait.
#[track_caller]
pub fn might_sleep() {
    assert!(cpu::pins() == 0, "sleeps while pinned, or with a spin lock held");
    assert!(msr::interrupts_on(), "sleeps with interrupts off");
}

/// Runs with interrupts off.
pub fn with_interrupts_off<R>(run: impl FnOnce() -> R) -> R {
    let were_on = msr::interrupts_off();
    let result = run();
    if were_on {
        msr::interrupts_enable();
    }
    result
}
