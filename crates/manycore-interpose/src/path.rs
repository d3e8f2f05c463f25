//! Paths without an allocator, and files that are mapped into memory.

use core::ffi::c_void;

use syscalls::{Errno, Sysno, raw_syscall};

/// A path under construction, NUL-terminated.
pub struct Path {
    bytes: [u8; 640],
    length: usize,
}

impl Default for Path {
    /// Empty.
    fn default() -> Self {
        Self { bytes: [0; 640], length: 0 }
    }
}

impl Path {
    /// Appends. A path that is too long is cut, and opening it fails.
    pub fn push(&mut self, part: &[u8]) {
        let fits = part.len().min(self.bytes.len() - 1 - self.length);
        self.bytes[self.length..self.length + fits].copy_from_slice(&part[..fits]);
        self.length += fits;
    }

    /// Appends the decimal digits of a number.
    pub fn push_number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut rest = number;
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[first..]);
    }

    /// Ends it there, if not before.
    pub fn end_at_zero(&mut self) {
        self.length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.length);
    }

    /// Makes the file, of `size` zero bytes, and maps it into shared memory. Returns the address.
    /// If this fails, there is no file.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error: the file exists already, there is no directory or no room for
    /// it, or it would be larger than this process may make a file (EFBIG).
    pub fn map_new(&self, size: usize) -> Result<*mut c_void, Errno> {
        self.make(size, |file| {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping at an address that the kernel chooses touches no memory of
            // others.
            let mapped = unsafe {
                raw_syscall!(Sysno::mmap, 0, size, protection, libc::MAP_SHARED, file, 0)
            };
            Errno::from_ret(mapped).map(|address| address as *mut c_void)
        })
    }

    /// As [`map_new`](Self::map_new), but `map` maps the file: it gets the descriptor.
    ///
    /// # Errors
    ///
    /// Those of [`map_new`](Self::map_new), or that of `map`.
    pub fn make(
        &self,
        size: usize,
        map: impl FnOnce(usize) -> Result<*mut c_void, Errno>,
    ) -> Result<*mut c_void, Errno> {
        // The kernel would send SIGXFSZ, which by default ends a program.
        if size as u64 > largest_file() {
            return Err(Errno::EFBIG);
        }
        // SAFETY: the path ends with a zero byte, since `push` leaves one; the descriptor was
        // opened in this function.
        unsafe {
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            let path = self.bytes.as_ptr();
            let file =
                Errno::from_ret(raw_syscall!(Sysno::openat, libc::AT_FDCWD, path, flags, 0o600))?;
            let sized = Errno::from_ret(raw_syscall!(Sysno::ftruncate, file, size));
            let mapped = sized.and_then(|_| map(file));
            raw_syscall!(Sysno::close, file);
            if mapped.is_err() {
                self.remove();
            }
            mapped
        }
    }

    /// Removes the file, if that is permitted.
    pub fn remove(&self) {
        // SAFETY: the path ends with a zero byte, since `push` leaves one.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            raw_syscall!(Sysno::unlink, self.bytes.as_ptr());
            #[cfg(target_arch = "aarch64")]
            raw_syscall!(Sysno::unlinkat, libc::AT_FDCWD, self.bytes.as_ptr(), 0);
        }
    }

    /// The path, as the kernel wants it.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// The largest file that this process may make, in bytes. Without a limit, the largest number.
fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let none = core::ptr::null::<libc::rlimit>();
    // SAFETY: the kernel writes the structure, or fails and leaves it zero: then nothing is made.
    unsafe { raw_syscall!(Sysno::prlimit64, 0, libc::RLIMIT_FSIZE, none, &raw mut limit) };
    limit.rlim_cur
}
