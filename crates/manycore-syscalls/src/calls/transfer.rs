//! Bytes that go in and out: `read` and `write`, and their kin for sockets.

use core::ffi::{c_int, c_uint, c_void};

use libc::{iovec, mmsghdr, msghdr, off_t, sockaddr, socklen_t, timespec};
use manycore_stats::syscalls::Function;

use super::moved_as_they_are;
use crate::in_flight::Shape;
use crate::moved::{self, Verdict};
use crate::{descriptors, real};

moved_as_they_are! {
    read(fd, buffer: *mut c_void, length: usize) -> isize = libc::SYS_read, Shape::waits(Function::Read);
    readv(fd, parts: *const iovec, count: c_int) -> isize = libc::SYS_readv, Shape::waits(Function::Readv);
    write(fd, buffer: *const c_void, length: usize) -> isize = libc::SYS_write, Shape::waits(Function::Write).in_parts();
    writev(fd, parts: *const iovec, count: c_int) -> isize = libc::SYS_writev, Shape::waits(Function::Writev).in_parts();
    sendto(fd, buffer: *const c_void, length: usize, flags: c_int, to: *const sockaddr, to_length: socklen_t) -> isize
        = libc::SYS_sendto, Shape::waits(Function::Sendto).in_parts().quick_if(returns_at_once(flags));
    sendmsg(fd, message: *const msghdr, flags: c_int) -> isize
        = libc::SYS_sendmsg, Shape::waits(Function::Sendmsg).in_parts().quick_if(returns_at_once(flags));
    sendmmsg(fd, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int
        = libc::SYS_sendmmsg, Shape::waits(Function::Sendmmsg).in_parts().quick_if(returns_at_once(flags));
    recvfrom(fd, buffer: *mut c_void, length: usize, flags: c_int, from: *mut sockaddr, from_length: *mut socklen_t) -> isize
        = libc::SYS_recvfrom, Shape::waits(Function::Recvfrom).in_parts_if(wants_all(flags)).quick_if(returns_at_once(flags));
    sendfile(fd, from: c_int, offset: *mut off_t, count: usize) -> isize
        = libc::SYS_sendfile, Shape::waits(Function::Sendfile).in_parts().uncancelled();
}

/// Whether the call does not wait, whatever the descriptor's mode.
fn returns_at_once(flags: c_int) -> bool {
    flags & libc::MSG_DONTWAIT != 0
}

/// Whether the call waits until all bytes are there.
fn wants_all(flags: c_int) -> bool {
    flags & libc::MSG_WAITALL != 0
}

/// `send`: the kernel knows only `sendto`.
///
/// # Safety
///
/// As the manual page says. This holds for all functions here.
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    buffer: *const c_void,
    length: usize,
    flags: c_int,
) -> isize {
    let shape = Shape::waits(Function::Send).in_parts().quick_if(returns_at_once(flags));
    let args = [fd as usize, buffer as usize, length, flags as usize, 0, 0];
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { moved::on(fd, shape, libc::SYS_sendto, args) } {
        Verdict::Done(answer) => moved::result(answer),
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::send(fd, buffer, length, flags) };
            measured.end();
            result
        }
    }
}

/// `recv`: the kernel knows only `recvfrom`.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
) -> isize {
    let shape =
        Shape::waits(Function::Recv).in_parts_if(wants_all(flags)).quick_if(returns_at_once(flags));
    let args = [fd as usize, buffer as usize, length, flags as usize, 0, 0];
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { moved::on(fd, shape, libc::SYS_recvfrom, args) } {
        Verdict::Done(answer) => moved::result(answer),
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::recv(fd, buffer, length, flags) };
            measured.end();
            result
        }
    }
}

/// `recvmsg`: descriptors may arrive.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> isize {
    let shape = Shape::waits(Function::Recvmsg)
        .in_parts_if(wants_all(flags))
        .quick_if(returns_at_once(flags));
    let args = [fd as usize, message as usize, flags as usize, 0, 0, 0];
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    let result = match unsafe { moved::on(fd, shape, libc::SYS_recvmsg, args) } {
        Verdict::Done(answer) => moved::result(answer),
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::recvmsg(fd, message, flags) };
            measured.end();
            result
        }
    };
    if result >= 0 {
        // SAFETY: the call has succeeded, so that the kernel has filled in the message.
        unsafe { note_received(&*message) };
    }
    result
}

/// `recvmmsg`.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let shape = Shape::waits(Function::Recvmmsg).in_parts().quick_if(returns_at_once(flags));
    let args =
        [fd as usize, messages as usize, count as usize, flags as usize, timeout as usize, 0];
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    let result = match unsafe { moved::on(fd, shape, libc::SYS_recvmmsg, args) } {
        Verdict::Done(answer) => moved::result(answer) as c_int,
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::recvmmsg(fd, messages, count, flags, timeout) };
            measured.end();
            result
        }
    };
    for index in 0..usize::try_from(result).unwrap_or(0) {
        // SAFETY: the kernel has filled in that number of messages.
        unsafe { note_received(&(*messages.add(index)).msg_hdr) };
    }
    result
}

/// Notes the descriptors that came with a message. Their numbers may have been those of other
/// files.
///
/// # Safety
///
/// The kernel has filled in the message, and its control messages are still valid.
unsafe fn note_received(message: &msghdr) {
    // SAFETY: the kernel has filled in the message (contract of this function), and the macros stay
    // within its control messages.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS
            {
                let bytes = (*control).cmsg_len - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(control).cast::<c_int>();
                for index in 0..bytes / size_of::<c_int>() {
                    // At its first use, the kernel is asked for its kind.
                    descriptors::forget(first.add(index).read_unaligned());
                }
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
}

/// `splice`: served where the socket is.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_offset: *mut off_t,
    to: c_int,
    to_offset: *mut off_t,
    length: usize,
    flags: c_uint,
) -> isize {
    let shape =
        Shape::waits(Function::Splice).in_parts().quick_if(flags & libc::SPLICE_F_NONBLOCK != 0);
    let args = [
        from as usize,
        from_offset as usize,
        to as usize,
        to_offset as usize,
        length,
        flags as usize,
    ];
    let fd = match moved::find(from) {
        Ok(held) => {
            descriptors::leave(held.into_number());
            from
        }
        Err(_) => to,
    };
    // SAFETY: the arguments are valid for this function (contract of this function), and so for the
    // system call, which takes the same.
    match unsafe { moved::on(fd, shape, libc::SYS_splice, args) } {
        Verdict::Done(answer) => moved::result(answer),
        Verdict::InPlace(measured) => {
            // SAFETY: the arguments are valid for libc's function of this name (contract of this
            // function).
            let result = unsafe { real::splice(from, from_offset, to, to_offset, length, flags) };
            measured.end();
            result
        }
    }
}

/// `__read_chk`: the form of `read` in a program that was compiled with checks.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn read_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    size: usize,
) -> isize {
    // SAFETY: the arguments are valid for `read` (contract of this function), unless the buffer is
    // too small: then libc's function ends the program.
    unsafe {
        if length > size {
            return real::__read_chk(fd, buffer, length, size);
        }
        read(fd, buffer, length)
    }
}

/// `__recv_chk`.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    size: usize,
    flags: c_int,
) -> isize {
    // SAFETY: the arguments are valid for `recv` (contract of this function), unless the buffer is
    // too small: then libc's function ends the program.
    unsafe {
        if length > size {
            return real::__recv_chk(fd, buffer, length, size, flags);
        }
        recv(fd, buffer, length, flags)
    }
}

/// `__recvfrom_chk`.
///
/// # Safety
///
/// See [`send`].
pub unsafe extern "C-unwind" fn recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    size: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> isize {
    // SAFETY: the arguments are valid for `recvfrom` (contract of this function), unless the buffer
    // is too small: then libc's function ends the program.
    unsafe {
        if length > size {
            return real::__recvfrom_chk(fd, buffer, length, size, flags, from, from_length);
        }
        recvfrom(fd, buffer, length, flags, from, from_length)
    }
}
