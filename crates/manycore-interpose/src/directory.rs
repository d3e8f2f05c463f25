//! The directory for statistics, and the files that processes make there.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use syscalls::{Errno, Sysno, raw_syscall};

use crate::path::Path;

/// The path of a directory, kept for forked children: programs that change their title overwrite their environment.
pub struct Directory([AtomicU64; 64]);

// Relaxed throughout: set once at start, and read there and in forked children only.

impl Directory {
    /// None yet.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 64])
    }

    /// Keeps the path; one that is too long is cut, and nothing will be made there.
    pub fn set(&self, path: &CStr) {
        store_bytes(&self.0, path.to_bytes());
    }

    /// Makes the calling process' file, `PID-NOW` and the ending, of so many zero bytes, and maps it into memory, to be shared. Gives
    /// the address.
    ///
    /// # Errors
    ///
    /// Those of [`Path::map_new`].
    pub fn map_new(&self, now: u64, ending: &str, size: usize) -> Result<*mut c_void, Errno> {
        self.file(now, ending).map_new(size)
    }

    /// Removes the calling process' file of this time. One that cannot be removed stays, without anything in it.
    pub fn remove(&self, now: u64, ending: &str) {
        self.file(now, ending).remove();
    }

    fn file(&self, now: u64, ending: &str) -> Path {
        let mut path = Path::default();
        self.0.iter().for_each(|word| path.push(&word.load(Ordering::Relaxed).to_le_bytes()));
        path.end_at_zero();
        path.push(b"/");
        // SAFETY: a system call without arguments.
        path.push_number(unsafe { raw_syscall!(Sysno::getpid) } as u64);
        path.push(b"-");
        path.push_number(now);
        path.push(ending.as_bytes());
        path
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes in words, padded with zeros, the last byte always zero.
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
