//! Functions that do not return to their caller like others: not at all, or more than once. They
//! are reached by a jump, after their next action has been noted.

use core::ffi::{c_int, c_long, c_uint};

use manycore_interpose::{counter, noted};
use syscalls::{Sysno, raw_syscall};

use super::descriptors::{close_range, in_use, is_ours, not_open};
use super::processes::note_flags;
use super::ties;
use crate::machine::{self, JumpTarget};
use crate::offload::{Call, number, raw};
use crate::{descriptors, memory, moved, real, thread, threads};

noted! {
    syscall = note_syscall;
    vfork = note_vfork;
    longjmp = note_longjmp;
    _longjmp = note_longjmp_old;
    siglongjmp = note_siglongjmp;
    longjmp_chk = note_longjmp_chk;
}

/// A system call of the program's own.
extern "C" fn note_syscall(number: c_long, first: usize, second: usize, third: usize) -> usize {
    let fd = first as c_int;
    match number {
        libc::SYS_close => return close_by_number as *const () as usize,
        libc::SYS_close_range => return close_range_by_number as *const () as usize,
        _ if is_dup(number) && is_ours(second as c_int) => {
            return replace_ours as *const () as usize;
        }
        _ if is_dup(number) && fd != second as c_int => {
            return replace_by_number as *const () as usize;
        }
        libc::SYS_setsockopt => descriptors::option_set(fd, second as c_int, third as c_int),
        libc::SYS_clone => note_flags(first),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => thread::forks(),
        libc::SYS_exit => threads::leaves(),
        // SAFETY: the address is that of the program's structure, which begins with a word of
        // flags; no other thread frees it during the call.
        libc::SYS_clone3 => note_flags(unsafe { memory::read(first as *const usize) }.unwrap_or(0)),
        _ => {
            counter::before_syscall(number, first, second);
            ties::note(number, first);
        }
    }
    real::syscall.address()
}

/// Whether the kernel has this number for a call onto another descriptor.
fn is_dup(number: c_long) -> bool {
    number == libc::SYS_dup3 || (cfg!(target_arch = "x86_64") && number == number::DUP2)
}

/// `syscall(SYS_close, ...)`: executed in place. A thread cannot be cancelled in it.
extern "C" fn close_by_number(_number: c_long, fd: c_int) -> c_long {
    if is_ours(fd) {
        return not_open().into();
    }
    // SAFETY: `close` takes a number only, and accesses no memory.
    let close = || unsafe { raw_syscall!(Sysno::close, fd) };
    moved::result(descriptors::closing(fd, close).cast_signed()) as c_long
}

/// `syscall(SYS_dup2, ...)` or `syscall(SYS_dup3, ...)` onto another descriptor.
extern "C" fn replace_by_number(number: c_long, fd: c_int, to: c_int, flags: c_int) -> c_long {
    let args = [fd as usize, to as usize, flags as usize, 0, 0, 0];
    // SAFETY: these calls take numbers only; one argument more than a call has is none.
    let replace = || unsafe { raw::execute(&Call { number: number as usize, args }) };
    moved::result(descriptors::closing(to, replace)) as c_long
}

/// `syscall(SYS_dup2, ...)` onto a descriptor of ours.
extern "C" fn replace_ours() -> c_long {
    in_use().into()
}

/// `syscall(SYS_close_range, ...)`, implemented by the function of that name.
unsafe extern "C-unwind" fn close_range_by_number(
    _number: c_long,
    first: c_uint,
    last: c_uint,
    flags: c_int,
) -> c_long {
    // SAFETY: the program closes the range by `syscall`, where the arguments are valid for it
    // (contract of this function).
    unsafe { close_range(first, last, flags) }.into()
}

extern "C" fn note_vfork() -> usize {
    thread::forks();
    real::vfork.address()
}

/// # Safety
///
/// As of [`leave`].
unsafe extern "C" fn note_longjmp(target: *const JumpTarget) -> usize {
    // SAFETY: the program calls libc's function with this target, and so jumps there (contract of
    // this function).
    unsafe { leave(target) };
    real::longjmp.address()
}

/// # Safety
///
/// As of [`leave`].
unsafe extern "C" fn note_longjmp_old(target: *const JumpTarget) -> usize {
    // SAFETY: the program calls libc's function with this target, and so jumps there (contract of
    // this function).
    unsafe { leave(target) };
    real::_longjmp.address()
}

/// # Safety
///
/// As of [`leave`].
unsafe extern "C" fn note_siglongjmp(target: *const JumpTarget) -> usize {
    // SAFETY: the program calls libc's function with this target, and so jumps there (contract of
    // this function).
    unsafe { leave(target) };
    real::siglongjmp.address()
}

/// # Safety
///
/// As of [`leave`].
unsafe extern "C" fn note_longjmp_chk(target: *const JumpTarget) -> usize {
    // SAFETY: the program calls libc's function with this target, and so jumps there (contract of
    // this function).
    unsafe { leave(target) };
    real::__longjmp_chk.address()
}

/// Ends a moved call from which a handler jumps out: the call has to be over before its frame is
/// gone.
///
/// # Safety
///
/// The calling thread will jump to the target, which is a `jmp_buf` of libc's.
unsafe fn leave(target: *const JumpTarget) {
    let Some(flight) = thread::in_flight() else { return };
    // SAFETY: the target is a `jmp_buf` of libc's (contract of this function).
    let to = machine::stack_pointer(unsafe { &*target });
    if to > flight.addr() && !stays_on_handlers_stack(to, flight.addr()) {
        // SAFETY: the call's frame is still there, and no part of it is in use: the handler that
        // interrupted it does not return.
        moved::jumped_out(unsafe { &mut *flight });
    }
}

/// Whether a handler on a stack of its own jumps to a frame on the same stack. Then it leaves no
/// call, wherever that stack is.
fn stays_on_handlers_stack(to: usize, flight: usize) -> bool {
    let none = core::ptr::null_mut();
    let mut stack = libc::stack_t { ss_sp: none, ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the structure is as large as the kernel writes.
    unsafe { raw_syscall!(Sysno::sigaltstack, 0, &raw mut stack) };
    let begin = stack.ss_sp.addr();
    let has = |address| (begin..=begin + stack.ss_size).contains(&address);
    stack.ss_flags & libc::SS_ONSTACK != 0 && has(to) && !has(flight)
}
