//! What a library says to whoever runs the program: on standard error, never on standard output.

use syscalls::{Sysno, raw_syscall};

use crate::path::largest_file;

/// Ends the program before it has begun, in one line.
pub fn refuse(message: &[&[u8]]) -> ! {
    write(message);
    // SAFETY: does not return.
    unsafe { raw_syscall!(Sysno::exit_group, 2) };
    unreachable!("exit_group does not return")
}

/// A line on standard error, in one system call. None where that might be the end of the program.
pub fn say(message: &[&[u8]]) {
    if !may_signal() {
        write(message);
    }
}

fn write(message: &[&[u8]]) {
    let mut line = [0u8; 512];
    let mut length = 0;
    for part in [b"manycore: ".as_slice()].iter().chain(message).chain([&b"\n".as_slice()]) {
        let fits = part.len().min(line.len() - length);
        line[length..length + fits].copy_from_slice(&part[..fits]);
        length += fits;
    }
    // SAFETY: the bytes are ours.
    unsafe { raw_syscall!(Sysno::write, 2, line.as_ptr(), length) };
}

/// Whether standard error is a file and the size of files is limited: who goes past the limit gets SIGXFSZ.
fn may_signal() -> bool {
    if largest_file() == libc::RLIM_INFINITY {
        return false;
    }
    // SAFETY: a structure of numbers, for which zero is a value; and the kernel writes to it.
    let file = unsafe {
        let mut file: libc::stat = core::mem::zeroed();
        raw_syscall!(Sysno::fstat, 2, &raw mut file);
        file
    };
    file.st_mode & libc::S_IFMT == libc::S_IFREG
}
