//! The twelve functions that `manycore` asks of a kernel.

use core::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::Deadline;

use super::futex::{self, Key};
use super::wait::Patience;
use crate::arch::{cpu, msr, tsc};
use crate::task::{sched, thread, timer};
use crate::watch::counters::{Event, count};

/// An upper bound of the difference between two CPUs' counters. Firmware starts them together. A
/// measurement yields at least the time of a message between two CPUs, which is less than this.
const CLOCK_BOUNDARY_TICKS: u64 = 2_500;

fn may_sleep() -> bool {
    cpu::pins() == 0 && msr::interrupts_on()
}

fn nanoseconds(deadline: &Deadline) -> u64 {
    deadline.seconds.max(0).cast_unsigned().saturating_mul(1_000_000_000)
        + u64::from(deadline.nanoseconds)
}

// SAFETY, for each function below: no other code defines it, and it has the signature that
// `sync/bare.rs` of the library declares.

#[unsafe(no_mangle)]
extern "C" fn manycore_futex_wait(
    word: *const AtomicU32,
    expected: u32,
    deadline: *const Deadline,
) -> bool {
    // SAFETY: both outlive the call (contract of the symbol); the deadline may be null.
    let (word, deadline) = unsafe { (&*word, deadline.as_ref()) };
    if !may_sleep() {
        core::hint::spin_loop();
        return deadline.is_some_and(|deadline| timer::has_passed(nanoseconds(deadline)));
    }
    count(Event::FutexSleeps);
    let patience = Patience { signals: false, deadline: deadline.map(nanoseconds) };
    let key = Key { space: 0, address: core::ptr::from_ref(word) as u64 };
    // SeqCst: partner of the waker's change of the word, before it takes the list's lock, under
    // which this is read: either this thread sees the change, or the waker finds it on the list.
    let ended = futex::wait(key, !0, patience, || word.load(Ordering::SeqCst) == expected);
    ended.is_some_and(|ended| ended.is_err())
}

#[unsafe(no_mangle)]
extern "C" fn manycore_futex_wake(word: *const AtomicU32, count: u32) {
    futex::wake(Key { space: 0, address: word as u64 }, !0, count);
}

#[unsafe(no_mangle)]
extern "C" fn manycore_deadline_passed(deadline: *const Deadline) -> bool {
    // SAFETY: `deadline` is not null, and outlives the call (contract of the symbol).
    timer::has_passed(nanoseconds(unsafe { &*deadline }))
}

#[unsafe(no_mangle)]
extern "C" fn manycore_yield() {
    if may_sleep() {
        sched::give_way();
    } else {
        core::hint::spin_loop();
    }
}

#[unsafe(no_mangle)]
extern "C" fn manycore_ticks() -> u64 {
    tsc::read()
}

#[unsafe(no_mangle)]
extern "C" fn manycore_nanoseconds(ticks: u64) -> u64 {
    tsc::nanoseconds(ticks)
}

#[unsafe(no_mangle)]
extern "C" fn manycore_clock_boundary() -> u64 {
    CLOCK_BOUNDARY_TICKS
}

#[unsafe(no_mangle)]
extern "C" fn manycore_cpu_count() -> u32 {
    cpu::count() as u32
}

#[unsafe(no_mangle)]
extern "C" fn manycore_cpu_current() -> u32 {
    cpu::number()
}

#[unsafe(no_mangle)]
extern "C" fn manycore_thread_id() -> u32 {
    // A pinned thread's action ends on the same CPU, and no other thread runs there in between.
    if cpu::pins() > 0 { cpu::number() + 1 } else { thread::current().number }
}

#[unsafe(no_mangle)]
extern "C" fn manycore_node_count() -> u32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn manycore_node_current() -> u32 {
    0
}
