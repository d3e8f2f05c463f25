//! Asymmetric barriers, by the membarrier system call: one thread makes every other execute a full
//! fence.
//!
//! Suppose that two threads each write one word and then read the other's, and that at least one of
//! them must see the other's write. Usually both need a full fence between the write and the read.
//! If one side executes very often and the other seldom, the frequent side can do without. It calls
//! [`light`], which only keeps the compiler from exchanging the two accesses. The other side calls
//! [`heavy`], which interrupts every CPU that runs a thread of this process. At that moment each
//! thread either has made its write, which the caller sees afterwards, or will read what the caller
//! wrote before.

use core::sync::atomic::{Ordering, compiler_fence};

use syscalls::{Sysno, raw_syscall};

/// Whether [`heavy`] works here, so that the other side may do without a fence. Kernels before 4.14
/// and some sandboxes refuse it.
///
/// Registers the process. Each object that uses such barriers requests this once: on a process with
/// many threads the first request takes the kernel some milliseconds.
pub fn is_asymmetric() -> bool {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// The side without a fence. It orders the compiler's accesses before and after it.
#[inline]
pub fn light() {
    // SeqCst, for the compiler only: of all accesses. Partner: `heavy`, which makes the CPU of this
    // thread execute a fence in this place.
    compiler_fence(Ordering::SeqCst);
}

/// The other side: every thread of the process, including the caller, executes a full fence between
/// the begin and the end of this call.
///
/// # Panics
///
/// If the kernel refuses although it has agreed in [`is_asymmetric`]: a sandbox was entered since.
pub fn heavy() {
    assert!(
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED),
        "the kernel has granted membarrier and refuses it now: enter the sandbox first, or do without (Barriers::Fences)"
    );
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: `membarrier` takes numbers only, and changes nothing but the order of accesses.
    unsafe { raw_syscall!(Sysno::membarrier, command, 0, 0) == 0 }
}
