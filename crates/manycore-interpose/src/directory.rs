//! The directory for statistics, and the files that processes make there.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use syscalls::{Errno, Sysno, raw_syscall};

use crate::message::say;
use crate::path::Path;
use crate::process;

/// The path of a directory, kept for forked children: programs that change their title overwrite
/// their environment.
pub struct Directory {
    path: [AtomicU64; 64],
}

// Relaxed throughout: set once at start, and read there and in forked children only.

impl Directory {
    /// None yet.
    pub const fn new() -> Self {
        Self { path: [const { AtomicU64::new(0) }; 64] }
    }

    /// Stores the path. A path that is too long is cut, so that no file can be made there.
    pub fn set(&self, path: &CStr) {
        store_bytes(&self.path, path.to_bytes());
    }

    /// Makes the calling process' file, `PID-NOW-NAMESPACE` and the ending, of `size` zero bytes,
    /// and maps it into shared memory. Returns the address.
    ///
    /// # Errors
    ///
    /// Those of [`Path::map_new`].
    pub fn map_new(&self, now: u64, ending: &str, size: usize) -> Result<*mut c_void, Errno> {
        self.file(now, ending).map_new(size)
    }

    /// As [`make`](Self::make), but `map` maps the file: it gets the descriptor.
    ///
    /// # Errors
    ///
    /// Those of [`Path::make`].
    pub fn make(
        &self,
        now: u64,
        ending: &str,
        size: usize,
        map: impl FnOnce(usize) -> Result<*mut c_void, Errno>,
    ) -> Result<*mut c_void, Errno> {
        self.file(now, ending).make(size, map)
    }

    /// Removes the calling process' file of this time. If that is impossible, makes it empty.
    pub fn remove(&self, now: u64, ending: &str) {
        self.file(now, ending).remove();
    }

    fn file(&self, now: u64, ending: &str) -> Path {
        let mut path = Path::default();
        self.path.iter().for_each(|word| path.push(&word.load(Ordering::Relaxed).to_le_bytes()));
        path.end_at_zero();
        path.push(b"/");
        path.push_number(process::id().into());
        path.push(b"-");
        path.push_number(now);
        path.push(b"-");
        path.push_number(namespace());
        path.push(ending.as_bytes());
        path
    }
}

/// The number of this process' PID namespace in the kernel: outside of the namespace the process'
/// number has no meaning. 0 if it cannot be read.
fn namespace() -> u64 {
    let mut link = [0_u8; 32];
    let name = c"/proc/self/ns/pid".as_ptr();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel reads the name, and writes no more than there is room for.
    let length = unsafe { raw_syscall!(Sysno::readlink, name, link.as_mut_ptr(), link.len()) };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel reads the name, and writes no more than there is room for.
    let length = unsafe {
        raw_syscall!(Sysno::readlinkat, libc::AT_FDCWD, name, link.as_mut_ptr(), link.len())
    };
    // `pid:[NUMBER]`
    let text = &link[..Errno::from_ret(length).unwrap_or_default()];
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    digits
        .fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// Reports that this process has no statistics in the directory that a variable names, and why.
pub fn say_none(directory: &CStr, variable: &[u8], error: Errno) {
    let why: &[u8] = match error {
        Errno::EFBIG => b": the size of its files is limited (ulimit -f)",
        _ => b"",
    };
    say(&[
        b"no statistics of this process: cannot make a file in ",
        directory.to_bytes(),
        b" (",
        variable,
        b")",
        why,
    ]);
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

/// Stores bytes in words, padded with zeros. The last byte is always zero.
pub fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    for (index, word) in words.iter().enumerate() {
        let mut part = [0; 8];
        let rest = bytes.get(index * 8..).unwrap_or_default();
        let most = if index + 1 == words.len() { 7 } else { 8 };
        let length = rest.len().min(most);
        part[..length].copy_from_slice(&rest[..length]);
        word.store(u64::from_le_bytes(part), Ordering::Relaxed);
    }
}
