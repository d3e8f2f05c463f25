//! The known properties of this process' descriptors, and how they are learnt.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::offload::Route;
use manycore_channel::descriptors::{Held, Left, Lookup};
use manycore_stats::syscalls::Function;
use syscalls::{Sysno, raw_syscall};

use crate::table::{Descriptors, OFFLOAD};
use crate::{counters, files, state, table, thread};

/// Calls may end early by a time-out, or wait for more than one byte: `SO_RCVTIMEO`, `SO_SNDTIMEO`,
/// `SO_RCVLOWAT`.
pub const TIMED: u32 = 1;
/// Closing it may wait: `SO_LINGER`.
pub const LINGERS: u32 = 4;
/// Calls stay in place. Either the first send connects the socket (`TCP_FASTOPEN_CONNECT`), and
/// then waits for more than room. Or events depend on the waiting thread (an epoll descriptor with
/// one of `signalfd`).
pub const STAYS: u32 = 8;
/// A file on a disk or in memory: calls do not wait for other programs.
pub const FILE: u32 = 2;

/// The table, if this thread may move calls or note descriptors now.
pub fn table() -> Option<&'static Descriptors> {
    if state::check().is_err() || thread::check().is_err() { None } else { table::get() }
}

/// The known kind of a descriptor, or the kernel's answer if it is unknown.
#[inline]
pub fn find(table: &'static Descriptors, fd: c_int) -> Lookup {
    match table.find(fd) {
        Lookup::Unknown => ask(table, fd),
        found => found,
    }
}

/// Asks the kernel for the kind of a descriptor that was inherited, or created by a function that
/// is not interposed.
#[cold]
fn ask(table: &'static Descriptors, fd: c_int) -> Lookup {
    let Some(asked) = Identity::of(fd) else { return Lookup::Unknown };
    let traits = match asked.kind {
        libc::S_IFSOCK => traits(fd),
        libc::S_IFREG if table::moves_files() && files::are_plain(fd) => FILE,
        // Descriptors of epoll and similar functions have no kind, and are noted when they are
        // made.
        _ => {
            table.adopt_plain(fd);
            return table.find(fd);
        }
    };
    let route = OFFLOAD.open();
    if route == Route::NONE {
        table.adopt_plain(fd);
    } else if table.adopt(fd, route, traits) && Identity::of(fd) != Some(asked) {
        // Another thread has closed it meanwhile.
        table.forget(fd);
    }
    table.find(fd)
}

/// The open file of a descriptor, and its kind.
#[derive(PartialEq, Eq)]
struct Identity {
    device: libc::dev_t,
    number: libc::ino_t,
    kind: libc::mode_t,
}

impl Identity {
    fn of(fd: c_int) -> Option<Self> {
        // SAFETY: the structure consists of numbers, for which zero is a value.
        let mut status: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: the structure is as large as the kernel writes.
        let failed = unsafe { raw_syscall!(Sysno::fstat, fd, &raw mut status) } != 0;
        let libc::stat { st_dev: device, st_ino: number, st_mode, .. } = status;
        (!failed).then_some(Self { device, number, kind: st_mode & libc::S_IFMT })
    }
}

/// A route for the object that a function will create. If it has to be created in place, counts
/// that and returns none.
pub fn new_route(function: Function) -> Route {
    match state::check().and_then(|()| thread::check()) {
        Ok(()) => OFFLOAD.open(),
        Err(why) => {
            counters::count(function, why);
            Route::NONE
        }
    }
}

/// What is known of a descriptor's open description.
pub fn traits_of(fd: c_int) -> u32 {
    let Some(table) = table() else { return 0 };
    let Lookup::Steered(held) = table.find(fd) else { return 0 };
    let traits = table.traits(&held);
    table.leave(held);
    traits
}

/// Notes a new descriptor with a route of its own.
pub fn opened(fd: c_int, traits: u32) {
    if table().is_some() {
        steer(fd, OFFLOAD.open(), traits);
    }
}

/// Notes a new descriptor with this route.
pub fn steer(fd: c_int, route: Route, traits: u32) {
    let Some(table) = table() else { return };
    if route == Route::NONE {
        table.leave_alone(fd, Left::Plain);
    } else {
        table.steer(fd, route, traits);
    }
}

fn traits(fd: c_int) -> u32 {
    let timed = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO].iter().any(|option| {
        let mut value = [0_u64; 2];
        let mut length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the kernel writes no more than `length` says that there is room for.
        let failed = unsafe {
            let value = value.as_mut_ptr();
            raw_syscall!(Sysno::getsockopt, fd, libc::SOL_SOCKET, *option, value, &raw mut length)
        };
        failed != 0 || value != [0; 2]
    });
    (u32::from(timed || waits_for_more(fd)) * TIMED) | (u32::from(lingers(fd)) * LINGERS)
}

/// Whether a receive waits for more bytes than one.
fn waits_for_more(fd: c_int) -> bool {
    let mut value: c_int = 1;
    let mut length = size_of_val(&value) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
    // SAFETY: the kernel writes no more than `length` says that there is room for.
    unsafe {
        raw_syscall!(Sysno::getsockopt, fd, level, name, &raw mut value, &raw mut length);
    }
    value > 1
}

fn lingers(fd: c_int) -> bool {
    let mut value = libc::linger { l_onoff: 0, l_linger: 0 };
    let mut length = size_of_val(&value) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: the kernel writes no more than `length` says that there is room for.
    unsafe {
        raw_syscall!(Sysno::getsockopt, fd, level, name, &raw mut value, &raw mut length);
    }
    value.l_onoff != 0 && value.l_linger != 0
}

/// Notes a descriptor whose calls are not moved: a file, a pipe.
pub fn plain(fd: c_int) {
    if fd >= 0
        && let Some(table) = table()
    {
        table.leave_alone(fd, Left::Plain);
    }
}

/// stdio has the descriptor.
pub fn stream(fd: c_int) {
    if fd >= 0
        && let Some(table) = table()
    {
        table.leave_alone(fd, Left::Stream);
    }
}

/// Forgets what was known about the number of a new descriptor. The kernel will be asked for its
/// kind.
pub fn forget(fd: c_int) {
    if fd >= 0
        && let Some(table) = table()
    {
        table.forget(fd);
    }
}

/// Closes a descriptor, or replaces it by another file. Meanwhile, notes of other threads about it
/// are dropped.
pub fn closing<R>(fd: c_int, close: impl FnOnce() -> R) -> R {
    closes(fd);
    let result = close();
    if let Some(table) = table() {
        table.closed(fd);
    }
    result
}

/// The first half of [`closing`], for a thread that does not return from closing.
pub fn closes(fd: c_int) {
    if let Some(table) = table() {
        table.closes(fd);
    }
}

/// As [`closing`], for a range of descriptors, as far as calls on them are moved.
pub fn closing_range<R>(first: u32, last: u32, close: impl FnOnce() -> R) -> R {
    let Some(table) = table() else { return close() };
    let end = (table.end() as u32).min(last.saturating_add(1));
    (first..end).for_each(|fd| table.closes(fd as c_int));
    let result = close();
    (first..end).for_each(|fd| table.closed(fd as c_int));
    result
}

/// Notes that the second descriptor has become a duplicate of the first.
pub fn duplicated(from: c_int, to: c_int) {
    let Some(table) = table() else { return };
    if from == to {
        return;
    }
    match table.find(from) {
        Lookup::Steered(held) => {
            table.share(to, &held);
            table.leave(held);
        }
        Lookup::Left(why @ (Left::Plain | Left::Tied)) => table.leave_alone(to, why),
        // A stream has the descriptor that it was given, not the duplicate.
        Lookup::Left(Left::Stream | Left::Closing) | Lookup::Unknown | Lookup::Beyond => {
            table.forget(to);
        }
    }
}

/// Notes an option of a socket that was set or will be set. From now on calls may end early, or
/// wait for more or for longer.
pub fn option_set(fd: c_int, level: c_int, name: c_int) {
    let trait_set = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO | libc::SO_RCVLOWAT) => TIMED,
        (libc::SOL_SOCKET, libc::SO_LINGER) => LINGERS,
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT) => STAYS,
        _ => return,
    };
    add_traits(fd, trait_set);
}

fn add_traits(fd: c_int, set: u32) {
    let Some(table) = table() else { return };
    if let Lookup::Steered(held) = table.find(fd) {
        table.add_traits(&held, set);
        table.leave(held);
    }
}

/// Whether the process has made a descriptor of `signalfd`, or one that it comes from has.
static HAS_TIED: AtomicBool = AtomicBool::new(false);

/// Notes a new descriptor that reports each thread's own signals.
pub fn tied(fd: c_int) {
    if fd >= 0
        && let Some(table) = table()
    {
        HAS_TIED.store(true, Ordering::Relaxed); // Relaxed: a thread that waits for it knows of it
        table.leave_alone(fd, Left::Tied);
    }
}

/// Whether the process has such descriptors.
#[inline]
pub fn has_tied() -> bool {
    HAS_TIED.load(Ordering::Relaxed) // Relaxed: as in `tied`
}

/// Whether a descriptor is one of them.
pub fn is_tied(fd: c_int) -> bool {
    let Some(table) = table() else { return false };
    match table.find(fd) {
        Lookup::Steered(held) => {
            table.leave(held);
            false
        }
        found => matches!(found, Lookup::Left(Left::Tied)),
    }
}

/// An epoll descriptor has been told of another one.
pub fn listens(epoll: c_int, to: c_int) {
    if has_tied() && is_tied(to) {
        add_traits(epoll, STAYS);
    }
}

/// Gives back a reference that was kept as a number.
pub fn leave(number: u32) {
    if let Some(table) = table::get() {
        table.leave(Held::from_number(number));
    }
}
