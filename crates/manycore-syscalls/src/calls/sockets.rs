//! Making sockets, and what is not about their bytes.

use core::ffi::{c_int, c_void};

use crate::offload::{Answer, Call, Reason, Route};
use libc::{sockaddr, socklen_t};
use manycore_stats::syscalls::{Function, Outcome};

use super::moved_as_they_are;
use crate::descriptors::{LINGERS, TIMED};
use crate::in_flight::Shape;
use crate::moved;
use crate::table::OFFLOAD;
use crate::{counters, descriptors, real};

moved_as_they_are! {
    connect(fd, address: *const sockaddr, length: socklen_t) -> c_int = libc::SYS_connect, Shape::waits(Function::Connect);
    bind(fd, address: *const sockaddr, length: socklen_t) -> c_int = libc::SYS_bind, Shape::quick(Function::Bind);
    listen(fd, backlog: c_int) -> c_int = libc::SYS_listen, Shape::quick(Function::Listen);
    shutdown(fd, how: c_int) -> c_int = libc::SYS_shutdown, Shape::quick(Function::Shutdown);
    getsockopt(fd, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int
        = libc::SYS_getsockopt, Shape::quick(Function::Getsockopt);
    getsockname(fd, address: *mut sockaddr, length: *mut socklen_t) -> c_int
        = libc::SYS_getsockname, Shape::quick(Function::Getsockname);
    getpeername(fd, address: *mut sockaddr, length: *mut socklen_t) -> c_int
        = libc::SYS_getpeername, Shape::quick(Function::Getpeername);
    accept(fd, address: *mut sockaddr, length: *mut socklen_t) -> c_int
        = libc::SYS_accept, Shape::waits(Function::Accept).makes() => |made| accepted(fd, made);
    accept4(fd, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int
        = libc::SYS_accept4, Shape::waits(Function::Accept4).makes() => |made| accepted(fd, made);
    setsockopt(fd, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int
        = libc::SYS_setsockopt, Shape::quick(Function::Setsockopt) => |result| {
            if result == 0 {
                descriptors::option_set(fd, level, name);
            }
        };
}

/// Creates an object on the route that will serve it, so that the kernel's memory for it is on the
/// same node. Reports if the object has to be created in place.
///
/// # Safety
///
/// The caller vouches for the call's arguments.
pub unsafe fn make(route: Route, shape: Shape, call: Call) -> Option<Answer> {
    if route == Route::NONE {
        return None;
    }
    if OFFLOAD.bypass(&route).is_some() {
        counters::count(shape.function, Outcome::Bypassed);
        return None;
    }
    // SAFETY: the arguments are those of the call, and their targets are valid during it (contract
    // of this function).
    let answer: Result<_, Reason> =
        unsafe { moved::perform(route, None, &call, shape.kind, shape) };
    answer.ok()
}

/// `socket`.
///
/// # Safety
///
/// As the manual page says. This holds for all functions here.
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let route = descriptors::new_route(Function::Socket);
    let args = [domain as usize, kind as usize, protocol as usize, 0, 0, 0];
    let call = Call { number: libc::SYS_socket as usize, args };
    // SAFETY: no argument is a pointer, so that the kernel accesses no memory by this call.
    let fd = unsafe {
        match make(route, Shape::quick(Function::Socket).makes(), call) {
            Some(answer) => moved::result(answer) as c_int,
            None => real::socket(domain, kind, protocol),
        }
    };
    if fd >= 0 {
        descriptors::steer(fd, route, 0);
    } else if route != Route::NONE {
        OFFLOAD.close(route);
    }
    fd
}

/// `socketpair`.
///
/// # Safety
///
/// See [`socket`].
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut c_int,
) -> c_int {
    let route = descriptors::new_route(Function::Socketpair);
    let args = [domain as usize, kind as usize, protocol as usize, pair as usize, 0, 0];
    let call = Call { number: libc::SYS_socketpair as usize, args };
    // SAFETY: `pair` has room for two descriptors (contract of this function), which are there if
    // the call succeeds.
    unsafe {
        // It makes two, and its answer is neither.
        let result = match make(route, Shape::quick(Function::Socketpair), call) {
            Some(answer) => moved::result(answer) as c_int,
            None => real::socketpair(domain, kind, protocol, pair),
        };
        if result == 0 {
            descriptors::steer(*pair, route, 0);
            descriptors::opened(*pair.add(1), 0);
        } else if route != Route::NONE {
            OFFLOAD.close(route);
        }
        result
    }
}

/// Notes an accepted connection. It inherits the time-outs and the linger option of the listening
/// socket.
fn accepted(listening: c_int, made: c_int) {
    if made >= 0 {
        descriptors::opened(made, descriptors::traits_of(listening) & (TIMED | LINGERS));
    }
}
