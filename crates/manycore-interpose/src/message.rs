//! A library's messages to the user of the program: on standard error, never on standard output.

use core::sync::atomic::{AtomicU64, Ordering};

use syscalls::{Sysno, raw_syscall};

/// Ends the program before its start, with a message in one line.
pub fn refuse(message: &[&[u8]]) -> ! {
    write(message);
    // SAFETY: `exit_group` does not return, and so leaves nothing in use that would have to be
    // dropped.
    unsafe { raw_syscall!(Sysno::exit_group, 2) };
    unreachable!("exit_group does not return")
}

/// Writes a line to standard error, in one system call. If that is impossible, the line is lost
/// without other effects: if the reader is gone, if the file may not grow, or if the descriptor is
/// another socket by now.
pub fn say(message: &[&[u8]]) {
    if is_a_connection() {
        return;
    }
    // By default, the kernel's signals for these failures end a program.
    let ours = bit(libc::SIGPIPE) | bit(libc::SIGXFSZ);
    let before = mask(libc::SIG_BLOCK, ours);
    let old = pending();
    write(message);
    let new = pending() & !old & ours;
    if new != 0 {
        let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel reads the set and the time, and is given no place to write to.
        unsafe { raw_syscall!(Sysno::rt_sigtimedwait, &raw const new, 0, &raw const no_time, 8) };
    }
    mask(libc::SIG_SETMASK, before);
}

/// The inode of standard error at the program's start, if it was a socket; otherwise 0.
static SOCKET: AtomicU64 = AtomicU64::new(0);

/// Notes what standard error is, before the program can close it.
pub fn prepare() {
    SOCKET.store(socket(), Ordering::Relaxed); // Relaxed: there is one thread
}

/// The inode of standard error, if it is a socket; else 0.
fn socket() -> u64 {
    // SAFETY: the structure consists of numbers, for which zero is a value, and is as large as the
    // kernel writes.
    let file = unsafe {
        let mut file: libc::stat = core::mem::zeroed();
        raw_syscall!(Sysno::fstat, 2, &raw mut file);
        file
    };
    if file.st_mode & libc::S_IFMT == libc::S_IFSOCK { file.st_ino } else { 0 }
}

/// Whether standard error is a socket that it was not when the program began: a client's, perhaps.
fn is_a_connection() -> bool {
    let now = socket();
    now != 0 && now != SOCKET.load(Ordering::Relaxed) // Relaxed: as above
}

/// Changes the set of blocked signals; returns the old set.
fn mask(how: i32, set: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: the kernel reads one set and writes another.
    unsafe { raw_syscall!(Sysno::rt_sigprocmask, how, &raw const set, &raw mut before, 8) };
    before
}

/// A signal's place in a set.
const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals that are pending because they are blocked.
fn pending() -> u64 {
    let mut set = 0_u64;
    // SAFETY: the kernel writes a set of eight bytes, into `set`.
    unsafe { raw_syscall!(Sysno::rt_sigpending, &raw mut set, 8) };
    set
}

fn write(message: &[&[u8]]) {
    let mut line = [0u8; 512];
    let mut length = 0;
    for part in [b"manycore: ".as_slice()].iter().chain(message).chain([&b"\n".as_slice()]) {
        let fits = part.len().min(line.len() - length);
        line[length..length + fits].copy_from_slice(&part[..fits]);
        length += fits;
    }
    // SAFETY: `line` has `length` bytes at least.
    unsafe { raw_syscall!(Sysno::write, 2, line.as_ptr(), length) };
}
