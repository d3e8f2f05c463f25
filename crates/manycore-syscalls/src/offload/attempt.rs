//! Calls that might block, tried so that they do not.
//!
//! A worker of the pool serves many routes and must not sleep for one of them. A call on a socket
//! is made in its non-blocking form, which gives the same answer if there is one. If there is none
//! yet, the worker waits for the descriptor together with all others. A call without such a form is
//! left to a thread that may block.
//!
//! No form trusts a table of descriptors: another thread may have put something else in a
//! descriptor's place. A socket shows itself, by not answering `ENOTSOCK`.

use libc::{EAGAIN, ENOSYS, ENOTSOCK, EOPNOTSUPP, MSG_DONTWAIT};
use syscalls::{Sysno, raw_syscall};

use super::number;
use super::raw::{self, error, execute};
use manycore_channel::call::{Answer, Call, Kind};

/// What came of trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The answer.
    Done(Answer),
    /// No answer yet: try again when the descriptor is ready for these events of epoll's.
    Later { descriptor: i32, events: u32, timeout: Timeout },
    /// This may block the thread that executes it.
    Blocks,
}

/// How long a call is willing to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    Never,
    Milliseconds(u32),
}

/// With these flags a receive waits only for the event that makes the descriptor readable. With any
/// other flag it may wait for more, or not at all.
pub const RECEIVE_TRIES: i32 =
    libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_NOSIGNAL | libc::MSG_CMSG_CLOEXEC;
/// As [`RECEIVE_TRIES`], for sends: they wait only for the event that makes the socket writable.
pub const SEND_TRIES: i32 =
    libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_DONTROUTE | libc::MSG_CONFIRM;

/// Tries a call. `done` is the number of its bytes that earlier attempts have transferred.
///
/// # Safety
///
/// The arguments' pointers are those of a call that the program has made, and stay valid until its
/// end, for which the program's thread waits.
pub unsafe fn attempt(call: &Call, kind: Kind, done: &mut usize) -> Attempt {
    // SAFETY: the program's pointers stay valid until the call's end (contract of this function);
    // each attempt below is this call, or a part of it, in a form that does not wait.
    unsafe {
        match kind {
            Kind::Quick if closes_lingering(call) => return Attempt::Blocks,
            Kind::Quick => return Attempt::Done(execute(call)),
            Kind::File => return Attempt::Blocks,
            Kind::Waits | Kind::Timed => {}
        }
        let [descriptor, second, third, fourth, ..] = call.args;
        let timed = kind == Kind::Timed;
        match call.number as i64 {
            number::POLL => poll(call),
            number::EPOLL_WAIT => epoll(call),
            libc::SYS_epoll_pwait if call.args[4] == 0 => epoll(call),
            _ if timed => Attempt::Blocks,
            libc::SYS_read if third == 0 => Attempt::Done(execute(call)),
            libc::SYS_read => receive(call, &receive_from(descriptor, second, third, [0; 3])),
            libc::SYS_recvfrom if has(fourth, MSG_DONTWAIT) => Attempt::Done(execute(call)),
            libc::SYS_recvfrom if has(fourth, !RECEIVE_TRIES) => Attempt::Blocks,
            libc::SYS_recvfrom => {
                let rest = [fourth, call.args[4], call.args[5]];
                receive(call, &receive_from(descriptor, second, third, rest))
            }
            libc::SYS_recvmsg if has(third, MSG_DONTWAIT) => Attempt::Done(execute(call)),
            libc::SYS_recvmsg if has(third, !RECEIVE_TRIES) => Attempt::Blocks,
            libc::SYS_recvmsg => receive(call, &with_flag(call, 2)),
            libc::SYS_readv if is_socket(descriptor) => {
                receive(call, &vectored(libc::SYS_preadv2, call))
            }
            libc::SYS_write => send(call, &send_to(call, *done, [0; 3]), third, done),
            libc::SYS_sendto if has(fourth, MSG_DONTWAIT) => Attempt::Done(execute(call)),
            libc::SYS_sendto if has(fourth, !SEND_TRIES) => Attempt::Blocks,
            libc::SYS_sendto => {
                let rest = [fourth, call.args[4], call.args[5]];
                send(call, &send_to(call, *done, rest), third, done)
            }
            libc::SYS_sendmsg if has(third, MSG_DONTWAIT) => Attempt::Done(execute(call)),
            libc::SYS_sendmsg if has(third, !SEND_TRIES) => Attempt::Blocks,
            libc::SYS_sendmsg | libc::SYS_writev => gather(call, done),
            libc::SYS_accept | libc::SYS_accept4 => accept(call),
            _ if never_waits(call) => Attempt::Done(execute(call)),
            _ => Attempt::Blocks,
        }
    }
}

/// Whether a call closes a socket that may wait for its other end then.
fn closes_lingering(call: &Call) -> bool {
    let [first, second, ..] = call.args;
    match call.number as i64 {
        libc::SYS_close => raw::lingers(first),
        number::DUP2 | libc::SYS_dup3 => first != second && raw::lingers(second),
        _ => false,
    }
}

/// Whether flags among a call's arguments have one of these.
fn has(argument: usize, flags: i32) -> bool {
    argument as i32 & flags != 0
}

fn receive_from(descriptor: usize, buffer: usize, length: usize, rest: [usize; 3]) -> Call {
    let [flags, address, size] = rest;
    let flags = flags | MSG_DONTWAIT as usize;
    let args = [descriptor, buffer, length, flags, address, size];
    Call { number: libc::SYS_recvfrom as usize, args }
}

/// `write` or `sendto` of what is left.
fn send_to(call: &Call, done: usize, rest: [usize; 3]) -> Call {
    let [descriptor, buffer, length, ..] = call.args;
    let [flags, address, size] = rest;
    // The next call returns the remaining bytes after an error, and gets the signal.
    let quiet = if done > 0 { libc::MSG_NOSIGNAL } else { 0 };
    let flags = flags | (MSG_DONTWAIT | quiet) as usize;
    let (buffer, length) = (buffer.wrapping_add(done), length.wrapping_sub(done));
    let args = [descriptor, buffer, length, flags, address, size];
    Call { number: libc::SYS_sendto as usize, args }
}

fn with_flag(call: &Call, at: usize) -> Call {
    let mut tried = *call;
    tried.args[at] |= MSG_DONTWAIT as usize;
    tried
}

/// Executes `readv` or `writev` by `preadv2` or `pwritev2` at the current position, because these
/// take a flag. With the flag they act on a socket like `readv` and `writev` on a non-blocking one.
fn vectored(number: i64, call: &Call) -> Call {
    let [descriptor, vector, count, ..] = call.args;
    let here = usize::MAX;
    let args = [descriptor, vector, count, here, here, libc::RWF_NOWAIT as usize];
    Call { number: number as usize, args }
}

/// A receive, by the call that does not wait.
///
/// # Safety
///
/// As of [`attempt`], for both calls: the second one is the first, in a form that does not wait.
unsafe fn receive(call: &Call, tried: &Call) -> Attempt {
    // SAFETY: the program's pointers stay valid until the call's end (contract of this function).
    let answer = unsafe { execute(tried) };
    if has_no_such_form(answer) {
        return Attempt::Blocks;
    }
    if answer != error(EAGAIN) || is_non_blocking(call.args[0]) {
        return Attempt::Done(answer);
    }
    if raw::has_timeout(call.args[0], libc::SO_RCVTIMEO) {
        return Attempt::Blocks;
    }
    later(call.args[0], libc::EPOLLIN, Timeout::Never)
}

/// Whether the answer says that a call, or this descriptor, has no non-blocking form. `ENOSYS` is a
/// sandbox's or an emulator's, which have `readv` but no `preadv2`.
fn has_no_such_form(answer: Answer) -> bool {
    [ENOTSOCK, EOPNOTSUPP, ENOSYS].map(error).contains(&answer)
}

/// A send of `length` bytes. A blocking send ends when all bytes were sent, or after an error with
/// those sent before it.
///
/// # Safety
///
/// As for [`receive`].
unsafe fn send(call: &Call, tried: &Call, length: usize, done: &mut usize) -> Attempt {
    // SAFETY: the program's pointers stay valid until the call's end (contract of this function).
    let answer = unsafe { execute(tried) };
    after_send(call, answer, length, done)
}

fn after_send(call: &Call, answer: Answer, length: usize, done: &mut usize) -> Attempt {
    if answer >= 0 {
        *done += answer as usize;
        if *done >= length || is_non_blocking(call.args[0]) {
            return Attempt::Done(*done as Answer);
        }
        return later_send(call);
    }
    if *done > 0 && (answer != error(EAGAIN) || is_non_blocking(call.args[0])) {
        return Attempt::Done(*done as Answer);
    }
    if has_no_such_form(answer) {
        return Attempt::Blocks;
    }
    if answer != error(EAGAIN) || is_non_blocking(call.args[0]) {
        return Attempt::Done(answer);
    }
    later_send(call)
}

/// The result for a send that has to wait. On a local socket epoll does not report every event that
/// ends a waiting send (`shutdown` of its own side), and the same send made again may have another
/// result.
fn later_send(call: &Call) -> Attempt {
    let descriptor = call.args[0];
    let is_internet = matches!(
        raw::socket_option(descriptor, libc::SO_DOMAIN),
        Some(libc::AF_INET | libc::AF_INET6)
    );
    if !is_internet || raw::has_timeout(descriptor, libc::SO_SNDTIMEO) {
        return Attempt::Blocks;
    }
    later(descriptor, libc::EPOLLOUT, Timeout::Never)
}

/// `sendmsg` and `writev`. The first attempt has the program's own vector. Once the kernel has
/// taken bytes from it, the vector is known to be readable, and the remaining bytes are sent from a
/// copy.
///
/// # Safety
///
/// As of [`attempt`].
unsafe fn gather(call: &Call, done: &mut usize) -> Attempt {
    let is_message = call.number as i64 == libc::SYS_sendmsg;
    if !is_message && !is_socket(call.args[0]) {
        return Attempt::Blocks;
    }
    // SAFETY: the program's pointers stay valid until the call's end (contract of this function).
    // The vector is read only after the kernel has read it.
    unsafe {
        let answer = if *done == 0 {
            let tried =
                if is_message { with_flag(call, 2) } else { vectored(libc::SYS_pwritev2, call) };
            execute(&tried)
        } else {
            send_rest(call, is_message, *done, MSG_DONTWAIT).0
        };
        let length =
            if answer > 0 { vector(call, is_message).iter().map(|v| v.iov_len).sum() } else { 0 };
        after_send(call, answer, length, done)
    }
}

/// The vector of a `sendmsg` or `writev`.
///
/// # Safety
///
/// The kernel has read it already.
unsafe fn vector<'a>(call: &Call, is_message: bool) -> &'a [libc::iovec] {
    let [_, second, third, ..] = call.args;
    // SAFETY: the kernel has read the vector (contract of this function), so it is there, and the
    // program does not change it until the call is over.
    unsafe {
        let (first, count) = if is_message {
            let message = &*core::ptr::with_exposed_provenance::<libc::msghdr>(second);
            (message.msg_iov.cast_const(), message.msg_iovlen)
        } else {
            (core::ptr::with_exposed_provenance(second), third)
        };
        core::slice::from_raw_parts(first, count)
    }
}

/// The number of a vector's remaining pieces that one system call sends.
const PIECES: usize = 64;

/// Sends the bytes after the first `done`, without the data that accompanied the first ones.
/// `wait`: 0, or `MSG_DONTWAIT`. Returns the answer, and the number of bytes for a complete send.
///
/// # Safety
///
/// As for [`gather`]; the kernel has taken `done` bytes of this call, so that its message or
/// vector is readable.
unsafe fn send_rest(call: &Call, is_message: bool, done: usize, wait: i32) -> (Answer, usize) {
    let mut pieces = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; PIECES];
    let (mut skip, mut count, mut length) = (done, 0, 0);
    // SAFETY: `done` bytes are gone, so that the kernel has read the vector.
    for piece in unsafe { vector(call, is_message) } {
        if skip >= piece.iov_len {
            skip -= piece.iov_len;
            continue;
        }
        let base = piece.iov_base.wrapping_byte_add(skip);
        pieces[count] = libc::iovec { iov_base: base, iov_len: piece.iov_len - skip };
        length += piece.iov_len - skip;
        skip = 0;
        count += 1;
        if count == PIECES {
            break;
        }
    }
    // SAFETY: the structure consists of numbers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = count;
    let flags = if is_message { call.args[2] } else { 0 };
    // As in `send_to`.
    let flags = flags | (wait | libc::MSG_NOSIGNAL) as usize;
    let args = [call.args[0], (&raw const message).expose_provenance(), flags, 0, 0, 0];
    // SAFETY: the program's pointers stay valid until the call's end (contract of `attempt`); the
    // message and its pieces are in this frame.
    (unsafe { execute(&Call { number: libc::SYS_sendmsg as usize, args }) }, length)
}

/// Sends the rest of a send after `done` bytes, and may block. Returns the total number of sent
/// bytes: fewer than all if an error prevents the rest, or if a signal came and `is_over` says that
/// it was meant for this call.
///
/// # Safety
///
/// As in [`attempt`], which has sent the first bytes.
pub unsafe fn finish(call: &Call, mut done: usize, is_over: impl Fn() -> bool) -> Answer {
    let is_message = call.number as i64 == libc::SYS_sendmsg;
    let is_vector = is_message || call.number as i64 == libc::SYS_writev;
    loop {
        // SAFETY: the program's pointers stay valid until the call's end (contract of this
        // function); some bytes of it are gone, so that the kernel has read the vector, if it has
        // one.
        let (answer, length) = unsafe {
            if is_vector {
                send_rest(call, is_message, done, 0)
            } else {
                let is_sendto = call.number as i64 == libc::SYS_sendto;
                let [.., flags, address, size] = call.args;
                let rest = if is_sendto { [flags, address, size] } else { [0; 3] };
                let mut sent = send_to(call, done, rest);
                sent.args[3] &= !(MSG_DONTWAIT as usize);
                (execute(&sent), sent.args[2])
            }
        };
        if length == 0 {
            return done as Answer;
        }
        if answer > 0 {
            done += answer as usize;
        } else if answer != error(libc::EINTR) {
            return done as Answer;
        }
        if answer < length as Answer && is_over() {
            return done as Answer;
        }
    }
}

/// Whether a call is a send with a non-blocking form that does not depend on the descriptor's
/// state.
pub fn is_plain_send(call: &Call) -> bool {
    matches!(call.number as i64, libc::SYS_write | libc::SYS_sendto | libc::SYS_sendmsg)
}

/// A blocking socket has no call that accepts without blocking: another process may take a
/// connection first. So the call is left to a thread that may block, but only when there is a
/// connection; and immediately if none can come.
///
/// # Safety
///
/// As for [`gather`].
unsafe fn accept(call: &Call) -> Attempt {
    let descriptor = call.args[0];
    if is_non_blocking(descriptor) {
        // SAFETY: the program's pointers stay valid until the call's end (contract of `attempt`).
        return Attempt::Done(unsafe { execute(call) });
    }
    let listens = raw::socket_option(descriptor, libc::SO_ACCEPTCONN) == Some(1);
    if !listens || raw::has_timeout(descriptor, libc::SO_RCVTIMEO) {
        return Attempt::Blocks;
    }
    let mut ready = libc::pollfd { fd: descriptor as i32, events: libc::POLLIN, revents: 0 };
    let entry = (&raw mut ready).expose_provenance();
    let poll = Call { number: number::POLL as usize, args: [entry, 1, 0, 0, 0, 0] };
    // SAFETY: the structure is as large as the kernel writes.
    let answer = unsafe { execute(&poll) };
    if answer == 0 { later(descriptor, libc::EPOLLIN, Timeout::Never) } else { Attempt::Blocks }
}

/// `poll` of one descriptor.
///
/// # Safety
///
/// As for [`gather`].
unsafe fn poll(call: &Call) -> Attempt {
    let [array, count, milliseconds, ..] = call.args;
    let mut tried = *call;
    tried.args[2] = 0;
    // SAFETY: the program's pointers stay valid until the call's end (contract of this function).
    let answer = unsafe { execute(&tried) };
    let milliseconds = milliseconds as i32;
    if answer != 0 || milliseconds == 0 {
        return Attempt::Done(answer);
    }
    if count != 1 {
        return Attempt::Blocks;
    }
    // SAFETY: the kernel has read and written the entry, so it is there.
    let polled = unsafe { *core::ptr::with_exposed_provenance::<libc::pollfd>(array) };
    if polled.fd < 0 {
        return Attempt::Blocks;
    }
    later(polled.fd as usize, i32::from(polled.events), timeout(milliseconds))
}

/// `epoll_wait` and its variants.
///
/// # Safety
///
/// As for [`gather`].
unsafe fn epoll(call: &Call) -> Attempt {
    let mut tried = *call;
    tried.args[3] = 0;
    // SAFETY: the program's pointers stay valid until the call's end (contract of this function).
    let answer = unsafe { execute(&tried) };
    let milliseconds = call.args[3] as i32;
    if answer != 0 || milliseconds == 0 {
        return Attempt::Done(answer);
    }
    later(call.args[0], libc::EPOLLIN, timeout(milliseconds))
}

fn timeout(milliseconds: i32) -> Timeout {
    u32::try_from(milliseconds).map_or(Timeout::Never, Timeout::Milliseconds)
}

fn later(descriptor: usize, events: i32, timeout: Timeout) -> Attempt {
    Attempt::Later { descriptor: descriptor as i32, events: events as u32, timeout }
}

/// Calls that do not wait on a non-blocking descriptor.
fn never_waits(call: &Call) -> bool {
    match call.number as i64 {
        libc::SYS_connect | libc::SYS_sendfile => is_non_blocking(call.args[0]),
        libc::SYS_recvmmsg | libc::SYS_sendmmsg => {
            has(call.args[3], MSG_DONTWAIT) || is_non_blocking(call.args[0])
        }
        _ => false,
    }
}

/// Whether the descriptor, whatever it is now, is in non-blocking mode.
pub fn is_non_blocking(descriptor: usize) -> bool {
    // SAFETY: `fcntl` with this command takes numbers only.
    let flags = unsafe { raw_syscall!(Sysno::fcntl, descriptor, libc::F_GETFL) } as isize;
    flags >= 0 && flags as i32 & libc::O_NONBLOCK != 0
}

fn is_socket(descriptor: usize) -> bool {
    raw::socket_type(descriptor).is_some()
}
