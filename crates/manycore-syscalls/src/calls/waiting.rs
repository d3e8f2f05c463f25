//! Waiting for several descriptors at once. Such a call is moved to the CPU that serves the first
//! socket among them.

use core::ffi::c_int;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use manycore_channel::descriptors::Held;
use manycore_stats::syscalls::{Function, Outcome};

use super::moved_as_they_are;
use crate::in_flight::Shape;
use crate::moved::{self, Measurement, Verdict};
use crate::offload::number;
use crate::{counters, descriptors, memory, real};

moved_as_they_are! {
    epoll_wait(epoll, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int
        = number::EPOLL_WAIT, Shape::timed(Function::EpollWait).quick_if(timeout == 0);
    epoll_ctl(epoll, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int
        = libc::SYS_epoll_ctl, Shape::quick(Function::EpollCtl) => |result| {
            if result == 0 && operation == libc::EPOLL_CTL_ADD {
                descriptors::listens(epoll, fd);
            }
        };
}

/// Moves a call to the route of the first descriptor that has one. `mask` is the caller's signal
/// mask during the wait.
///
/// # Safety
///
/// The arguments are those of the system call of this number, and their targets are valid during
/// it.
unsafe fn with_first(
    fds: impl Iterator<Item = c_int> + Clone,
    mask: *const sigset_t,
    shape: Shape,
    number: libc::c_long,
    args: [usize; 6],
) -> Verdict {
    let mut why = Outcome::Unknown;
    if descriptors::has_tied() && fds.clone().any(descriptors::is_tied) {
        counters::count(shape.function, Outcome::ThreadState);
        return Verdict::InPlace(Measurement::NONE);
    }
    let first: Option<Held> =
        fds.take(PROBES).find_map(|fd| moved::find(fd).map_err(|left| why = left).ok());
    let first = first.and_then(|held| {
        if mask.is_null() {
            return Some(held);
        }
        why = Outcome::SignalMask;
        descriptors::leave(held.into_number());
        None
    });
    match first {
        // SAFETY: the arguments are those of the system call, and their targets are valid during it
        // (contract of this function).
        Some(held) => unsafe { moved::with(held, shape, number, args) },
        None => {
            counters::count(shape.function, why);
            Verdict::InPlace(Measurement::NONE)
        }
    }
}

/// The number of descriptors that are searched for one with a route.
const PROBES: usize = 16;

/// The descriptors of a list, up to the end of readable memory.
///
/// # Safety
///
/// As long as the iterator or a copy is used, no other thread writes to the list or frees it. The
/// list need not be readable: the kernel checks that.
unsafe fn listed(list: *mut pollfd, count: nfds_t) -> impl Iterator<Item = c_int> + Clone {
    // SAFETY: an entry begins with a number, and no other thread takes the list away during the
    // call (contract of this function).
    (0..count as usize)
        .map_while(move |index| unsafe { memory::read(list.wrapping_add(index).cast::<c_int>()) })
}

/// `poll`.
///
/// # Safety
///
/// As the manual page says. This holds for all functions here.
pub unsafe extern "C-unwind" fn poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let shape = Shape::timed(Function::Poll).quick_if(timeout == 0);
    let args = [list as usize, count as usize, timeout as usize, 0, 0, 0];
    let none = core::ptr::null();
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { with_first(listed(list, count), none, shape, number::POLL, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::poll(list, count, timeout) };
            measured.end();
            result
        }
    }
}

/// `ppoll`. The time-out is copied, because the kernel would write to it, and libc's callers do not
/// expect that.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn ppoll(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let shape = Shape::timed(Function::Ppoll);
    // SAFETY: the time-out is null or leads to a time (contract of this function).
    let mut left = unsafe { timeout.as_ref() }.copied();
    let left = left.as_mut().map_or(core::ptr::null_mut(), core::ptr::from_mut);
    let args = [list as usize, count as usize, left as usize, 0, 0, 0];
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { with_first(listed(list, count), mask, shape, libc::SYS_ppoll, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::ppoll(list, count, timeout, mask) };
            measured.end();
            result
        }
    }
}

/// `__poll_chk`: the form of `poll` in a program that was compiled with checks.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn poll_chk(
    list: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    size: usize,
) -> c_int {
    // SAFETY: the arguments are valid for `poll` (contract of this function), unless the list is
    // too short: then libc's function ends the program.
    unsafe {
        if size / size_of::<pollfd>() < count as usize {
            return real::__poll_chk(list, count, timeout, size);
        }
        poll(list, count, timeout)
    }
}

/// `__ppoll_chk`.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn ppoll_chk(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    size: usize,
) -> c_int {
    // SAFETY: the arguments are valid for `ppoll` (contract of this function), unless the list is
    // too short: then libc's function ends the program.
    unsafe {
        if size / size_of::<pollfd>() < count as usize {
            return real::__ppoll_chk(list, count, timeout, mask, size);
        }
        ppoll(list, count, timeout, mask)
    }
}

/// The descriptors in any of three sets, up to the end of readable memory.
///
/// # Safety
///
/// As long as the iterator or a copy is used, no other thread writes to the sets or frees them. The
/// sets need not be readable: the kernel checks that.
unsafe fn in_sets(count: c_int, sets: [*mut fd_set; 3]) -> impl Iterator<Item = c_int> + Clone {
    let end = count.clamp(0, libc::FD_SETSIZE as c_int) as usize;
    let words = (0..end.div_ceil(64)).map(move |word| {
        let parts = sets.map(|set| {
            let part = set.cast::<u64>().wrapping_add(word);
            // SAFETY: any bits are a value, and no other thread takes the set away during the call
            // (contract of this function).
            if set.is_null() { 0 } else { unsafe { memory::read(part) }.unwrap_or(0) }
        });
        (word, parts[0] | parts[1] | parts[2])
    });
    let bits = |(word, any)| {
        (0..64).filter(move |bit| any >> bit & 1 != 0).map(move |bit| 64 * word + bit)
    };
    words.flat_map(bits).take_while(move |fd| *fd < end).map(|fd| fd as c_int)
}

/// `select`: by the kernel's `pselect6`. As libc does, it then stores the time that is left.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let shape = Shape::timed(Function::Select);
    let args =
        [count as usize, read as usize, write as usize, except as usize, timeout as usize, 0];
    // SAFETY: the arguments are valid for `select` (contract of this function), and so for the
    // system call, which writes the remaining time, as libc does.
    unsafe {
        let fds = in_sets(count, [read, write, except]);
        match with_first(fds, core::ptr::null(), shape, number::SELECT, args) {
            Verdict::Done(answer) => moved::result(answer) as c_int,
            Verdict::InPlace(measured) => {
                let result = real::select(count, read, write, except, timeout);
                measured.end();
                result
            }
        }
    }
}

/// `pselect`.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let shape = Shape::timed(Function::Pselect);
    // SAFETY: the time-out is null or leads to a time (contract of this function).
    let mut left = unsafe { timeout.as_ref() }.copied();
    let left = left.as_mut().map_or(core::ptr::null_mut(), core::ptr::from_mut);
    let args = [count as usize, read as usize, write as usize, except as usize, left as usize, 0];
    // SAFETY: the arguments are valid for `pselect` (contract of this function); the time that the
    // kernel writes to is in this frame.
    unsafe {
        let fds = in_sets(count, [read, write, except]);
        match with_first(fds, mask, shape, libc::SYS_pselect6, args) {
            Verdict::Done(answer) => moved::result(answer) as c_int,
            Verdict::InPlace(measured) => {
                let result = real::pselect(count, read, write, except, timeout, mask);
                measured.end();
                result
            }
        }
    }
}

/// `epoll_create`. The new descriptor gets a route, as sockets do.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    made(unsafe { real::epoll_create(size) })
}

/// `epoll_create1`.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    made(unsafe { real::epoll_create1(flags) })
}

fn made(fd: c_int) -> c_int {
    if fd >= 0 {
        descriptors::opened(fd, 0);
    }
    fd
}

/// `epoll_pwait`.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let shape = Shape::timed(Function::EpollPwait).quick_if(timeout == 0);
    let args = [epoll as usize, events as usize, count as usize, timeout as usize, 0, 0];
    let fds = core::iter::once(epoll);
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { with_first(fds, mask, shape, libc::SYS_epoll_pwait, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::epoll_pwait(epoll, events, count, timeout, mask) };
            measured.end();
            result
        }
    }
}

/// `epoll_pwait2`.
///
/// # Safety
///
/// See [`poll`].
pub unsafe extern "C-unwind" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let shape = Shape::timed(Function::EpollPwait2);
    let args = [epoll as usize, events as usize, count as usize, timeout as usize, 0, 0];
    let fds = core::iter::once(epoll);
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { with_first(fds, mask, shape, libc::SYS_epoll_pwait2, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::epoll_pwait2(epoll, events, count, timeout, mask) };
            measured.end();
            result
        }
    }
}
