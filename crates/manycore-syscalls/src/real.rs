//! The functions of the same names behind ours: libc's, or those of a library that is preloaded
//! after this one.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libc::{
    FILE, epoll_event, fd_set, iovec, mmsghdr, mode_t, msghdr, nfds_t, off_t, pid_t, pollfd,
    sigset_t, sockaddr, socklen_t, timespec, timeval,
};
use manycore_interpose::next::Function;

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        /// Finds all functions now, so that no signal handler has to. Older C libraries lack some
        /// of them.
        pub fn find_all() {
            $(let _ = addresses::$name.find();)*
        }

        #[allow(non_upper_case_globals, reason = "named as the functions are")]
        mod addresses {
            use super::*;
            $(
                pub static $name: Function = Function::of_any_library(
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    },
                );
            )*
        }

        $(
            #[doc = concat!("libc's `", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// As the function's manual page says.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "as libc has it")]
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $out {
                type Signature = unsafe extern "C-unwind" fn($($ty),*) -> $out;
                // SAFETY: `Function` has the address of the next function of this name, which has
                // this signature.
                let f: Signature = unsafe { core::mem::transmute(addresses::$name.address()) };
                // SAFETY: the arguments are as the function's manual page asks (contract of this
                // function).
                unsafe { f($($arg),*) }
            }
        )*
    };
}

/// Functions that are not called, but jumped to.
macro_rules! jumps {
    ($($name:ident),*) => {
        $(
            #[allow(non_upper_case_globals, reason = "named as the functions are")]
            #[doc = concat!("Where libc's `", stringify!($name), "` is.")]
            pub static $name: Function = Function::of_any_library(
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
            );
        )*

        /// Looks all of them up, as [`find_all`] does.
        pub fn find_jumps() {
            $(let _ = $name.find();)*
        }
    };
}

/// What a thread runs.
pub type Run = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
/// What a C11 thread runs.
pub type RunC11 = extern "C-unwind" fn(*mut c_void) -> c_int;
/// What a process of `clone` runs.
pub type RunClone = RunC11;

functions! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int;
    getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;

    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    closefrom(first: c_int) -> ();
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, to: c_int) -> c_int;
    dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    ioctl(fd: c_int, request: usize, argument: usize) -> c_int;
    signalfd(fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int;
    clone(run: RunClone, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent: *mut pid_t, storage: *mut c_void, child: *mut pid_t) -> c_int;

    read(fd: c_int, buffer: *mut c_void, length: usize) -> isize;
    __read_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize) -> isize;
    readv(fd: c_int, parts: *const iovec, count: c_int) -> isize;
    write(fd: c_int, buffer: *const c_void, length: usize) -> isize;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> isize;
    send(fd: c_int, buffer: *const c_void, length: usize, flags: c_int) -> isize;
    sendto(fd: c_int, buffer: *const c_void, length: usize, flags: c_int, to: *const sockaddr, to_length: socklen_t) -> isize;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> isize;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    recv(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> isize;
    __recv_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int) -> isize;
    recvfrom(fd: c_int, buffer: *mut c_void, length: usize, flags: c_int, from: *mut sockaddr, from_length: *mut socklen_t) -> isize;
    __recvfrom_chk(fd: c_int, buffer: *mut c_void, length: usize, size: usize, flags: c_int, from: *mut sockaddr, from_length: *mut socklen_t) -> isize;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> isize;
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    sendfile(to: c_int, from: c_int, offset: *mut off_t, count: usize) -> isize;
    splice(from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, length: usize, flags: c_uint) -> isize;

    poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    __poll_chk(list: *mut pollfd, count: nfds_t, timeout: c_int, size: usize) -> c_int;
    ppoll(list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    __ppoll_chk(list: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, size: usize) -> c_int;
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    epoll_create(size: c_int) -> c_int;
    epoll_create1(flags: c_int) -> c_int;
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    epoll_wait(epoll: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int;
    epoll_pwait(epoll: c_int, events: *mut epoll_event, count: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    epoll_pwait2(epoll: c_int, events: *mut epoll_event, count: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int;

    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    creat(path: *const c_char, mode: mode_t) -> c_int;
    creat64(path: *const c_char, mode: mode_t) -> c_int;
    __open_2(path: *const c_char, flags: c_int) -> c_int;
    __open64_2(path: *const c_char, flags: c_int) -> c_int;
    __openat_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int;
    __openat64_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int;
    pread(fd: c_int, buffer: *mut c_void, length: usize, offset: off_t) -> isize;
    __pread_chk(fd: c_int, buffer: *mut c_void, length: usize, offset: off_t, size: usize) -> isize;
    pwrite(fd: c_int, buffer: *const c_void, length: usize, offset: off_t) -> isize;
    preadv(fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> isize;
    pwritev(fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> isize;
    fsync(fd: c_int) -> c_int;
    fdatasync(fd: c_int) -> c_int;

    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE;
    fclose(stream: *mut FILE) -> c_int;
    freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
    freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
    popen(command: *const c_char, mode: *const c_char) -> *mut FILE;
    pclose(stream: *mut FILE) -> c_int;

    pthread_create(thread: *mut libc::pthread_t, attr: *const libc::pthread_attr_t, run: Run, argument: *mut c_void) -> c_int;
    thrd_create(thread: *mut libc::pthread_t, run: RunC11, argument: *mut c_void) -> c_int;

    sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    sysv_signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    sigset(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    siginterrupt(signal: c_int, interrupts: c_int) -> c_int;

    chroot(path: *const c_char) -> c_int;
    setuid(user: libc::uid_t) -> c_int;
    seteuid(user: libc::uid_t) -> c_int;
    setreuid(real: libc::uid_t, effective: libc::uid_t) -> c_int;
    setresuid(real: libc::uid_t, effective: libc::uid_t, saved: libc::uid_t) -> c_int;
    setgid(group: libc::gid_t) -> c_int;
    setegid(group: libc::gid_t) -> c_int;
    setregid(real: libc::gid_t, effective: libc::gid_t) -> c_int;
    setresgid(real: libc::gid_t, effective: libc::gid_t, saved: libc::gid_t) -> c_int;
    setgroups(count: usize, groups: *const libc::gid_t) -> c_int;
    initgroups(user: *const c_char, group: libc::gid_t) -> c_int;
    setfsuid(user: libc::uid_t) -> c_int;
    setfsgid(group: libc::gid_t) -> c_int;
    capset(header: *mut c_void, data: *const c_void) -> c_int;
    unshare(flags: c_int) -> c_int;
    setns(fd: c_int, kind: c_int) -> c_int;
    prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int;
    setpriority(which: c_int, who: libc::id_t, priority: c_int) -> c_int;
    nice(by: c_int) -> c_int;
    sched_setscheduler(who: pid_t, policy: c_int, parameters: *const libc::sched_param) -> c_int;
    sched_setparam(who: pid_t, parameters: *const libc::sched_param) -> c_int;
    pthread_setschedparam(thread: libc::pthread_t, policy: c_int, parameters: *const libc::sched_param) -> c_int;
    pthread_setschedprio(thread: libc::pthread_t, priority: c_int) -> c_int;
    pkey_alloc(flags: c_uint, rights: c_uint) -> c_int;
}

jumps! {
    syscall, vfork, longjmp, _longjmp, siglongjmp, __longjmp_chk,
    stat, stat64, lstat, lstat64, fstatat, fstatat64, statx, opendir,
    __xstat, __xstat64, __lxstat, __lxstat64, __fxstatat, __fxstatat64
}
