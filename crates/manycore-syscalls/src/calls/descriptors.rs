//! Closing, duplicating and controlling descriptors.

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicBool, Ordering};

use manycore_channel::descriptors::Held;
use manycore_interpose::message::say;
use manycore_stats::syscalls::{Function, Outcome};

use super::ties;
use crate::descriptors as known;
use crate::in_flight::Shape;
use crate::moved::{self, Verdict};
use crate::offload::number;
use crate::table::OFFLOAD;
use crate::{counters, real, thread};

/// `close`.
///
/// Removes the entry before the descriptor is closed: afterwards its number may be another
/// thread's.
///
/// # Safety
///
/// As the manual page says. This holds for all functions here.
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_ours(fd) {
        return not_open();
    }
    let found = moved::find_known(fd);
    // SAFETY: closing the descriptor is right (contract of this function).
    known::closing(fd, || unsafe { close_found(fd, found) })
}

/// `close` of a descriptor that has this route, or that has no route for this reason.
///
/// # Safety
///
/// The descriptor may be closed: the program asks for it.
unsafe fn close_found(fd: c_int, found: Result<Held, Outcome>) -> c_int {
    let shape = Shape::quick(Function::Close).cancels();
    let held = match found {
        Ok(held) => held,
        Err(why) => {
            counters::count(shape.function, why);
            // SAFETY: closing the descriptor is right (contract of this function).
            return unsafe { real::close(fd) };
        }
    };
    // SAFETY: no argument is a pointer, so that the kernel accesses no memory by this call.
    match unsafe { moved::with(held, shape, libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: closing the descriptor is right (contract of this function).
            let result = unsafe { real::close(fd) };
            measured.end();
            result
        }
    }
}

/// The result of a call on a descriptor of our workers'.
pub fn not_open() -> c_int {
    moved::result(-(libc::EBADF as isize)) as c_int
}

/// Whether a descriptor is private to our workers, so that it has to look closed to the program. A
/// child that shares memory has descriptors of its own, and is free to close them.
pub fn is_ours(fd: c_int) -> bool {
    OFFLOAD.owns(fd) && !thread::shares_memory()
}

/// Whether there are any: threads of ours have them.
fn has_ours() -> bool {
    OFFLOAD.threads() > 0 && !thread::shares_memory()
}

/// `close_range`: of what is ours, nothing is closed.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: closing the range is right (contract of this function).
    let close = || unsafe { close_others(first, last, flags) };
    if flags & libc::CLOSE_RANGE_UNSHARE as c_int == 0 { close() } else { ties::tie_after(close) }
}

/// Closes what is not ours, or marks it.
///
/// # Safety
///
/// See [`close`].
unsafe fn close_others(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: closing the range is right (contract of this function).
    let close = || unsafe { range_but_ours(first, last, flags) };
    // Otherwise this would close a file that a worker opens meanwhile beyond the present largest
    // number.
    let close = || if has_ours() { OFFLOAD.with_descriptors_at_rest(close) } else { close() };
    if flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        known::closing_range(first, last, close)
    } else {
        close()
    }
}

/// `close_range`, some of them at a time.
///
/// # Safety
///
/// See [`close`].
unsafe fn range_but_ours(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    /// A larger number is none of ours.
    const END: c_uint = 1 << 20;
    let end = if has_ours() { last.min(END) } else { 0 };
    let ours = || (first..=end).filter(|fd| is_ours(*fd as c_int));
    let mut from = first;
    for fd in ours() {
        if from < fd {
            // SAFETY: closing the range is right (contract of this function), and so is a part of
            // it.
            let failed = unsafe { real::close_range(from, fd - 1, flags) };
            if failed != 0 {
                return failed;
            }
        }
        from = fd + 1;
    }
    if from > last && from > first {
        return 0;
    }
    // SAFETY: closing the range is allowed (contract of this function), and this is the remaining
    // part of it.
    unsafe { real::close_range(from, last, flags) }
}

/// `closefrom`.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: closing the range is right (contract of this function). libc has another way where
    // the kernel or a sandbox refuses this one.
    unsafe {
        if close_range(first.max(0) as c_uint, c_uint::MAX, 0) != 0 {
            real::closefrom(first);
        }
    }
}

/// `dup`.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    let shape = Shape::quick(Function::Dup).makes();
    // SAFETY: no argument is a pointer, so that the kernel accesses no memory by this call.
    let made = match unsafe { moved::on(fd, shape, libc::SYS_dup, [fd as usize, 0, 0, 0, 0, 0]) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: duplicating the descriptor is right (contract of this function).
            let made = unsafe { real::dup(fd) };
            measured.end();
            made
        }
    };
    duplicated(fd, made)
}

/// Runs `f`, which puts an open file at this number. Meanwhile the number does not become a
/// worker's.
fn at_rest_for<R>(number: c_int, f: impl FnOnce() -> R) -> R {
    if has_ours() && OFFLOAD.may_own(number) { OFFLOAD.with_descriptors_at_rest(f) } else { f() }
}

/// `dup2`: what the second descriptor was is closed.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    let replace = || {
        if is_ours(to) {
            return in_use();
        }
        // SAFETY: replacing the second descriptor is right (contract of this function).
        let call = || unsafe { dup2_of(fd, to) };
        if fd == to { call() } else { known::closing(to, call) }
    };
    at_rest_for(to, replace)
}

/// `dup2`, after the entry of the second descriptor was removed.
///
/// # Safety
///
/// The second descriptor may be replaced: the program requests it, and it is none of ours.
unsafe fn dup2_of(fd: c_int, to: c_int) -> c_int {
    let shape = Shape::quick(Function::Dup2);
    let args = [fd as usize, to as usize, 0, 0, 0, 0];
    // SAFETY: no argument is a pointer, so that the kernel accesses no memory by this call.
    let made = match unsafe { moved::on(fd, shape, number::DUP2, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: replacing the second descriptor is right (contract of this function).
            let made = unsafe { real::dup2(fd, to) };
            measured.end();
            made
        }
    };
    duplicated(fd, made)
}

/// `dup3`.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    let replace = || {
        if is_ours(to) {
            return in_use();
        }
        // SAFETY: replacing the second descriptor is right (contract of this function).
        let call = || unsafe { dup3_of(fd, to, flags) };
        if fd == to { call() } else { known::closing(to, call) }
    };
    at_rest_for(to, replace)
}

/// `dup3`, after the entry of the second descriptor was removed.
///
/// # Safety
///
/// As for [`dup2_of`].
unsafe fn dup3_of(fd: c_int, to: c_int, flags: c_int) -> c_int {
    let shape = Shape::quick(Function::Dup3);
    let args = [fd as usize, to as usize, flags as usize, 0, 0, 0];
    // SAFETY: no argument is a pointer, so that the kernel accesses no memory by this call.
    let made = match unsafe { moved::on(fd, shape, libc::SYS_dup3, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: replacing the second descriptor is right (contract of this function).
            let made = unsafe { real::dup3(fd, to, flags) };
            measured.end();
            made
        }
    };
    duplicated(fd, made)
}

/// `signalfd`. A thread that reads the new descriptor, or waits for it, gets its own signals.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn signalfd(
    fd: c_int,
    mask: *const libc::sigset_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the mask leads to a set of signals (contract of this function).
    let made = unsafe { real::signalfd(fd, mask, flags) };
    known::tied(made);
    made
}

/// The result for a program that asks to put a file at the number of one of our workers'
/// descriptors. If it did so, calls would hang.
pub fn in_use() -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: at worst two threads say it.
    if !SAID.swap(true, Ordering::Relaxed) {
        say(&[b"a descriptor that moved system calls need was not replaced (EBUSY): use a smaller number, or mechanism=thread"]);
    }
    moved::result(-(libc::EBUSY as isize)) as c_int
}

fn duplicated(fd: c_int, made: c_int) -> c_int {
    if made >= 0 {
        known::duplicated(fd, made);
    }
    made
}

/// Whether any thread may execute the command. It may if the command concerns only the descriptor
/// or its open description. Locks can wait, and commands that set an owner or a lease may mean the
/// calling thread.
fn is_movable(command: c_int) -> bool {
    use libc::{F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFD, F_SETFL};
    [F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD, F_DUPFD_CLOEXEC].contains(&command)
}

/// `fcntl`. The third argument is passed on as it is in its register, whatever the command takes.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    let makes = [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&command);
    let shape = Shape { makes, ..Shape::quick(Function::Fcntl) };
    let args = [fd as usize, command as usize, argument, 0, 0, 0];
    let verdict = if is_movable(command) {
        // SAFETY: with these commands no argument is a pointer.
        unsafe { moved::on(fd, shape, libc::SYS_fcntl, args) }
    } else {
        counters::count_with(shape.function, || moved::unmoved(fd, Outcome::Unsure));
        Verdict::InPlace(moved::Measurement::NONE)
    };
    let result = match verdict {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the argument is right for this command (contract of this function).
            let result = unsafe { real::fcntl(fd, command, argument) };
            measured.end();
            result
        }
    };
    if makes {
        duplicated(fd, result);
    }
    result
}

/// `ioctl`. The third argument is passed on as it is in its register.
///
/// # Safety
///
/// See [`close`].
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: usize, argument: usize) -> c_int {
    const SIOCATMARK: usize = 0x8905;
    let request_number = request & 0xFFFF_FFFF;
    let (set_blocking, readable, writable) =
        (libc::FIONBIO as usize, libc::FIONREAD as usize, libc::TIOCOUTQ as usize);
    let shape = Shape::quick(Function::Ioctl);
    let verdict = if [set_blocking, readable, writable, SIOCATMARK].contains(&request_number) {
        let args = [fd as usize, request, argument, 0, 0, 0];
        // SAFETY: the argument is right for this request (contract of this function).
        unsafe { moved::on(fd, shape, libc::SYS_ioctl, args) }
    } else {
        counters::count_with(shape.function, || moved::unmoved(fd, Outcome::Unsure));
        Verdict::InPlace(moved::Measurement::NONE)
    };
    match verdict {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the argument is right for this request (contract of this function).
            let result = unsafe { real::ioctl(fd, request, argument) };
            measured.end();
            result
        }
    }
}
