//! Whether the calling thread may be in a signal handler: then it makes no thread.
//!
//! To make a thread libc allocates memory and takes locks, which the handler may have interrupted
//! while its thread had them.
//!
//! # Idea
//!
//! A thread on its own stack for handlers is in a handler. Otherwise two things hold while a
//! handler runs, and the second is checked only if the first was found:
//!
//! 1. *Its signal is blocked*, unless the handler was installed with `SA_NODEFER`.
//! 2. *Its frame is on the stack*, between here and the thread's start. On x86-64 the kernel begins
//!    the frame with the handler's return address, as given to `sigaction`, followed by the
//!    thread's saved state. On AArch64 the saved state has a part with a known beginning.
//!
//! A thread that permanently blocks signals has no such frame. A frame may remain from a handler
//! that has returned, in unwritten room of a later function, but then no signal is blocked. In
//! doubt, the thread counts as being in a handler.
//!
//! # Limit
//!
//! A handler that unblocks its own signal is not recognised.

use crate::offload::INTERRUPT;
use syscalls::{Sysno, raw_syscall};

use crate::dispositions::{Disposition, LAST};
use crate::{machine, memory};

/// Whether the thread may be in a handler. `here` is an address in its stack, above the frames of
/// this library; `blocked` are its blocked signals.
pub fn may_run(here: usize, blocked: u64) -> bool {
    // One system call proves it; the other checks come after that.
    is_on_own_stack() || {
        let installed = Installed::ask();
        (blocked & !NEVER_THE_PROGRAMS != 0 || installed.leaves_open) && has_frame(here, &installed)
    }
}

/// libc's two signals, and ours: the program has no handlers for them.
const NEVER_THE_PROGRAMS: u64 = 1 << 31 | 1 << 32 | 1 << (INTERRUPT - 1);

/// The necessary data about the handlers of a process.
struct Installed {
    /// Whether one leaves its signal open.
    leaves_open: bool,
    /// The addresses to which handlers return. libc has one such address, and most programs have no
    /// other.
    returns: [usize; RETURNS_MAX],
    count: usize,
}

const RETURNS_MAX: usize = 4;

impl Installed {
    fn ask() -> Self {
        let mut installed = Self { leaves_open: false, returns: [0; RETURNS_MAX], count: 0 };
        for signal in (1..=LAST).filter(|signal| *signal != INTERRUPT) {
            if let Some(disposition) = Disposition::of(signal) {
                installed.leaves_open |= disposition.leaves_open();
                installed.note(disposition.restorer);
            }
        }
        installed
    }

    fn note(&mut self, place: usize) {
        if place == 0 || self.returns[..self.count].contains(&place) {
            return;
        }
        match self.returns.get_mut(self.count) {
            Some(free) => (*free, self.count) = (place, self.count + 1),
            // More than can be looked for.
            None => self.leaves_open = true,
        }
    }

    fn has(&self, place: usize) -> bool {
        self.returns[..self.count].contains(&place)
    }
}

/// Whether the thread runs on the stack that it has set aside for handlers.
fn is_on_own_stack() -> bool {
    let mut stack =
        libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the structure is as large as the kernel writes.
    unsafe { raw_syscall!(Sysno::sigaltstack, 0, &raw mut stack) };
    stack.ss_flags & libc::SS_ONSTACK != 0
}

const WORD: usize = size_of::<usize>();
const PAGE: usize = 4096;
/// A stack is not searched if more of it is in use.
const DEPTH_MAX: usize = 16 << 20;

/// Whether there is a handler's frame between `here` and the thread's start. Also true if that is
/// unknown.
fn has_frame(here: usize, installed: &Installed) -> bool {
    let end = begin_of_thread(here);
    if here == 0 || end <= here || end - here > DEPTH_MAX {
        return true;
    }
    let mut at = here.next_multiple_of(WORD);
    while at < end {
        let until = (at + 1).next_multiple_of(PAGE).min(end);
        // In a program that changes stacks by itself, memory between this stack and the thread's
        // may not be mapped.
        if !memory::is_readable(at) {
            return true;
        }
        for place in (at..until).step_by(WORD) {
            // SAFETY: the place is aligned, in a readable page, and on this thread's own stack,
            // above the part that this function uses.
            if unsafe { machine::is_frame(place, end, |word| installed.has(word)) } {
                return true;
            }
        }
        at = until;
    }
    false
}

/// The highest possible address of the thread's stack. libc puts its data about a thread at the top
/// of the thread's stack; at the top of the first thread's, the kernel puts some random bytes.
fn begin_of_thread(here: usize) -> usize {
    let pointer = machine::thread_pointer();
    if pointer > here && pointer - here <= DEPTH_MAX {
        return pointer;
    }
    // SAFETY: `getauxval` takes a number and returns one.
    unsafe { libc::getauxval(libc::AT_RANDOM) as usize }
}
