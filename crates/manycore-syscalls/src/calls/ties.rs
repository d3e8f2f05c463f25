//! Calls that change state which the kernel keeps for each thread. Once a program has made such a
//! call, its threads execute all their calls themselves.
//!
//! libc changes users and groups in all threads, including ours. It does not do so for the calls
//! here, nor for system calls that the program makes itself. While the calling thread is the only
//! one, nothing has to be done: later threads inherit its state. The same holds if the kernel
//! refuses the change, as far as the result shows that.

use core::ffi::{c_char, c_int, c_uint, c_void};

use libc::pid_t;
use manycore_interpose::counter;
use manycore_stats::syscalls::Outcome;

use crate::table::OFFLOAD;
use crate::{counters, program_threads, real, state, thread, threads};

/// Executes all calls in place from now on, if a thread lacks the state that the caller has changed
/// or will change.
pub fn tie() {
    prepare();
    tie_prepared();
}

fn tie_prepared() {
    // A child of vfork has the parent's memory, but a state of its own.
    if !thread::shares_memory() && (OFFLOAD.threads() > 0 || program_threads::count() > 1) {
        state::end(Outcome::ThreadState);
    }
}

/// Executes all calls in place from now on, because the system calls that move them may be
/// forbidden.
fn restrict() {
    if may_restrict() {
        state::end(Outcome::ThreadState);
    }
}

/// Before a change: creates everything that may be forbidden afterwards. A child that was forked
/// without libc's knowledge forgets its parent's workers.
fn prepare() {
    let _ = state::check();
    counters::prepare();
}

/// Returns whether the calls of this process are the ones to be restricted.
fn may_restrict() -> bool {
    prepare();
    !thread::shares_memory()
}

/// Makes a change by a function whose result does not show whether there was one.
fn tie_before(change: impl FnOnce() -> c_int) -> c_int {
    tie();
    change()
}

/// Makes a change by a function that reports failure by a negative number, and ties later calls to
/// their threads.
pub fn tie_after(change: impl FnOnce() -> c_int) -> c_int {
    prepare();
    let result = change();
    if result >= 0 {
        tie_prepared();
    }
    result
}

/// Tries a change that may be possible only for a process with one thread. If it is refused for
/// that reason, tries it again without our threads.
fn alone_if_needed(change: impl Fn() -> c_int) -> c_int {
    let before = errno();
    let result = change();
    if result == -1 && errno() == libc::EINVAL && threads::leave_alone() {
        set_errno(before);
        return change();
    }
    result
}

fn errno() -> c_int {
    // SAFETY: `__errno_location` returns the address of the calling thread's own number.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    // SAFETY: `__errno_location` returns the address of the calling thread's own number.
    unsafe { *libc::__errno_location() = value };
}

/// The flags of `unshare` that need a process with one thread.
const NEEDS_ONE_THREAD: c_int =
    libc::CLONE_NEWUSER | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM;

/// `unshare`.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn unshare(flags: c_int) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    let change = || unsafe { real::unshare(flags) };
    tie_after(|| if flags & NEEDS_ONE_THREAD == 0 { change() } else { alone_if_needed(change) })
}

/// `setns`. Only a process with one thread can enter some kinds of namespaces.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn setns(fd: c_int, kind: c_int) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    tie_after(|| alone_if_needed(|| unsafe { real::setns(fd, kind) }))
}

/// `nice`, of which -1 is also a result.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn nice(by: c_int) -> c_int {
    prepare();
    let before = errno();
    set_errno(0);
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    let result = unsafe { real::nice(by) };
    if errno() == 0 {
        set_errno(before);
        tie_prepared();
    }
    result
}

/// `how the change is made: functions that make one`.
macro_rules! tying {
    ($how:ident: $($name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// As the manual page says.
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
                // SAFETY: the arguments are valid for libc's function of this name (contract of
                // this function).
                $how(|| unsafe { real::$name($($arg),*) })
            }
        )*
    };
}

tying! {
    tie_before:
    setfsuid(user: libc::uid_t);
    setfsgid(group: libc::gid_t);
}

tying! {
    tie_after:
    capset(header: *mut c_void, data: *const c_void);
    setpriority(which: c_int, who: libc::id_t, priority: c_int);
    sched_setscheduler(who: pid_t, policy: c_int, parameters: *const libc::sched_param);
    sched_setparam(who: pid_t, parameters: *const libc::sched_param);
    pkey_alloc(flags: c_uint, rights: c_uint);
}

/// `chroot`, after which the process may not be able to make a file for its statistics.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn chroot(path: *const c_char) -> c_int {
    counters::prepare();
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    unsafe { real::chroot(path) }
}

/// Functions that change the identity of all threads of the process, but not of the kernel's
/// threads that work for it.
macro_rules! changing {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// As the manual page says.
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
                prepare();
                // SAFETY: the arguments are valid for libc's function of this name (contract of
                // this function).
                let result = unsafe { real::$name($($arg),*) };
                // Afterwards: later set-ups are made with the process' new identity.
                if result == 0 && !thread::shares_memory() {
                    OFFLOAD.change_rights();
                }
                result
            }
        )*
    };
}

changing! {
    setuid(user: libc::uid_t);
    seteuid(user: libc::uid_t);
    setreuid(real: libc::uid_t, effective: libc::uid_t);
    setresuid(real: libc::uid_t, effective: libc::uid_t, saved: libc::uid_t);
    setgid(group: libc::gid_t);
    setegid(group: libc::gid_t);
    setregid(real: libc::gid_t, effective: libc::gid_t);
    setresgid(real: libc::gid_t, effective: libc::gid_t, saved: libc::gid_t);
    setgroups(count: usize, groups: *const libc::gid_t);
    initgroups(user: *const c_char, group: libc::gid_t);
}

/// `pthread_setschedparam`: ties the calls of a thread to it, unless both its old and its new
/// scheduling are the usual ones.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn pthread_setschedparam(
    thread: libc::pthread_t,
    policy: c_int,
    parameters: *const libc::sched_param,
) -> c_int {
    let mut before = libc::SCHED_OTHER;
    // SAFETY: the structure consists of numbers, for which zero is a value.
    let mut old: libc::sched_param = unsafe { core::mem::zeroed() };
    // SAFETY: thread and parameters are right for this function (contract of this function); the
    // first call writes to two places in this frame.
    let failed = unsafe {
        libc::pthread_getschedparam(thread, &raw mut before, &raw mut old);
        real::pthread_setschedparam(thread, policy, parameters)
    };
    if failed == 0 && [before, policy] != [libc::SCHED_OTHER; 2] {
        tie();
    }
    failed
}

/// `pthread_setschedprio`.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn pthread_setschedprio(
    thread: libc::pthread_t,
    priority: c_int,
) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    let failed = unsafe { real::pthread_setschedprio(thread, priority) };
    if failed == 0 {
        tie();
    }
    failed
}

/// Notes a file that was opened for writing. A file in `/proc/PID/attr` holds a thread's own state:
/// the label of its calls.
///
/// # Safety
///
/// The path is the one that was opened.
pub unsafe fn opened_to_write(path: *const c_char) {
    // SAFETY: the path is a string, which was opened and so read to its end (contract of this
    // function).
    let path = unsafe { core::ffi::CStr::from_ptr(path) }.to_bytes();
    if path.starts_with(b"/proc/") && path.split(|byte| *byte == b'/').any(|part| part == b"attr") {
        tie();
    }
}

/// Whether this `prctl` changes what a thread may do.
fn is_tying(option: c_int) -> bool {
    /// Flags of threads that do the input and output of other threads, as in the kernel's headers.
    const PR_SET_IO_FLUSHER: c_int = 57;
    [
        libc::PR_SET_NO_NEW_PRIVS,
        libc::PR_SET_SECUREBITS,
        libc::PR_SET_KEEPCAPS,
        libc::PR_CAPBSET_DROP,
        libc::PR_CAP_AMBIENT,
        PR_SET_IO_FLUSHER,
    ]
    .contains(&option)
}

/// `prctl`, with all that may be in its registers.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn prctl(
    option: c_int,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
) -> c_int {
    // SAFETY: the arguments are valid for libc's `prctl` with this option (contract of this
    // function).
    let change = || unsafe { real::prctl(option, a, b, c, d) };
    if is_tying(option) {
        return tie_after(change);
    }
    // Asked ahead: afterwards asking may be forbidden, too.
    let restricts = option == libc::PR_SET_SECCOMP && may_restrict();
    if counter::before_prctl(option, a) && restricts {
        // A process that may do nothing but read, write and end cannot have threads of ours end
        // with it.
        threads::leave_alone();
    }
    let result = change();
    if restricts && result == 0 {
        state::end(Outcome::ThreadState);
    }
    result
}

/// Notes a system call that the program makes by `syscall`. Its result is not known.
pub fn note(number: libc::c_long, first: usize) {
    match number {
        libc::SYS_seccomp | libc::SYS_landlock_restrict_self => restrict(),
        libc::SYS_prctl if first == libc::PR_SET_SECCOMP as usize => restrict(),
        libc::SYS_prctl if is_tying(first as c_int) => tie(),
        libc::SYS_chroot | libc::SYS_pivot_root => counters::prepare(),
        libc::SYS_unshare | libc::SYS_setns => {
            prepare();
            if number == libc::SYS_setns || first as c_int & NEEDS_ONE_THREAD != 0 {
                threads::leave_alone();
            }
            tie_prepared();
        }
        libc::SYS_setuid
        | libc::SYS_setgid
        | libc::SYS_setreuid
        | libc::SYS_setregid
        | libc::SYS_setresuid
        | libc::SYS_setresgid
        | libc::SYS_setgroups
        | libc::SYS_setfsuid
        | libc::SYS_setfsgid
        | libc::SYS_capset
        | libc::SYS_setpriority
        | libc::SYS_ioprio_set
        | libc::SYS_sched_setscheduler
        | libc::SYS_sched_setattr
        | libc::SYS_sched_setparam
        | libc::SYS_pkey_alloc => tie(),
        _ => {}
    }
}
