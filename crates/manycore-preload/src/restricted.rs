//! `prctl`, and system calls by their number: the locks and statistics stop using calls that the
//! program is about to forbid itself.

use core::ffi::{c_int, c_long};

use manycore::sync::thread;
use manycore_interpose::next::Function;
use manycore_interpose::{counter, noted};

use crate::stats;

static PRCTL: Function = Function::of_any_library(c"prctl");
static SYSCALL: Function = Function::of_any_library(c"syscall");

noted! {
    prctl = note_prctl;
    syscall = note_syscall;
}

extern "C" fn note_prctl(option: c_int, value: usize) -> usize {
    note(counter::before_prctl(option, value));
    PRCTL.address()
}

extern "C" fn note_syscall(number: c_long, first: usize, second: usize) -> usize {
    note(counter::before_syscall(number, first, second));
    SYSCALL.address()
}

fn note(is_strict: bool) {
    if is_strict {
        thread::prepare();
        stats::may_not_ask();
    }
    if let Some(step) = counter::step_ns() {
        stats::times_are_coarse(step);
    }
}
