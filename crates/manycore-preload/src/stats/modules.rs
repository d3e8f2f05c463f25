//! The files that are mapped: what the command needs to give addresses names.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use manycore_profile::layout::{MODULES, Mapping, Module};
use syscalls::{Errno, Sysno, raw_syscall};

use manycore_interpose::directory::store_bytes;
use manycore_interpose::path::Path;

// Relaxed throughout, unless noted: what makes up a module is published by the number of modules.

/// Sees to it that the modules of these addresses are in the mapping.
pub fn note(mapping: &Mapping, frames: &[u64]) {
    if frames.iter().any(|frame| *frame != 0 && !contain(mapping, *frame)) {
        read_maps(mapping);
    }
}

/// Whether an address is in a file that is mapped, or in the zero-initialised data of one.
pub fn contain(mapping: &Mapping, address: u64) -> bool {
    modules(mapping).iter().any(|module| {
        (module.start.load(Ordering::Relaxed)..module.end.load(Ordering::Relaxed))
            .contains(&address)
    })
}

fn modules(mapping: &Mapping) -> &[Module] {
    // Acquire: partner of the Release in `add`.
    &mapping.modules[..(mapping.header.modules.load(Ordering::Acquire) as usize).min(MODULES)]
}

/// Whether a thread reads `/proc/self/maps`.
static READING: AtomicBool = AtomicBool::new(false);

/// In the child of a fork: who read when the parent forked is not here.
pub fn forked() {
    READING.store(false, Ordering::Relaxed);
}

/// In the child of a fork: what the parent has noted holds of the child, too.
pub fn copy(old: &Mapping, new: &Mapping) {
    let noted = modules(old);
    for (from, to) in noted.iter().zip(new.modules.iter()) {
        let words = [&from.start, &from.end, &from.offset, &from.inode].into_iter();
        let places = [&to.start, &to.end, &to.offset, &to.inode].into_iter();
        for (from, to) in words.chain(&from.path).zip(places.chain(&to.path)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    // Release: as in `add`.
    new.header.modules.store(noted.len() as u32, Ordering::Release);
}

/// Adds what `/proc/self/maps` has and the mapping has not.
pub fn read_maps(mapping: &Mapping) {
    // Acquire, and Release below: one reader at a time adds modules. Another one's are then on their way.
    if READING.swap(true, Ordering::Acquire) {
        return;
    }
    const PATH: &CStr = c"/proc/self/maps";
    // SAFETY: system calls on memory of this frame.
    unsafe {
        let file = raw_syscall!(
            Sysno::openat,
            libc::AT_FDCWD,
            PATH.as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC
        );
        if (file as isize) >= 0 {
            let mut lines = Lines { buffer: [0; 4096], length: 0 };
            let mut last_file = None;
            loop {
                let room = &mut lines.buffer[lines.length..];
                let read = raw_syscall!(Sysno::read, file, room.as_mut_ptr(), room.len());
                if (read as isize) <= 0 {
                    break;
                }
                lines.length += read;
                lines.take(|line| last_file = add_line(mapping, line, last_file));
            }
            raw_syscall!(Sysno::close, file);
        }
    }
    // Release: partner of the Acquire above.
    READING.store(false, Ordering::Release);
}

/// Whole lines out of pieces of a file.
struct Lines {
    buffer: [u8; 4096],
    length: usize,
}

impl Lines {
    fn take(&mut self, mut line: impl FnMut(&[u8])) {
        let mut start = 0;
        while let Some(end) = self.buffer[start..self.length].iter().position(|byte| *byte == b'\n')
        {
            line(&self.buffer[start..start + end]);
            start += end + 1;
        }
        // A line that fills the buffer is dropped: no path is that long.
        let kept =
            if start == 0 && self.length == self.buffer.len() { 0 } else { self.length - start };
        self.buffer.copy_within(start..start + kept, 0);
        self.length = kept;
    }
}

/// `start-end perms offset device inode path`. Returns the module that an anonymous line right behind would extend.
fn add_line(mapping: &Mapping, line: &[u8], before: Option<u64>) -> Option<u64> {
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let range = fields.next()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
    let offset = hex(fields.nth(1)?)?;
    match fields.nth(2) {
        // What the kernel lends to every process is no file, and yet has a name.
        Some(path) if path.starts_with(b"/") || path == b"[vdso]" => {
            add(mapping, start, end, offset, path)
        }
        // Zero-initialised data follows the file's last mapping.
        None if before == Some(start) => {
            let module =
                modules(mapping).iter().find(|m| m.end.load(Ordering::Relaxed) == start)?;
            module.end.store(end, Ordering::Relaxed);
        }
        _ => return None,
    }
    Some(end)
}

fn add(mapping: &Mapping, start: u64, end: u64, offset: u64, path: &[u8]) {
    let known = modules(mapping)
        .iter()
        .any(|m| m.start.load(Ordering::Relaxed) == start && m.end.load(Ordering::Relaxed) >= end);
    let number = mapping.header.modules.load(Ordering::Relaxed);
    if known || number as usize >= MODULES {
        return;
    }
    let module = &mapping.modules[number as usize];
    module.start.store(start, Ordering::Relaxed);
    module.end.store(end, Ordering::Relaxed);
    module.offset.store(offset, Ordering::Relaxed);
    module.inode.store(inode(path), Ordering::Relaxed);
    store_bytes(&module.path, path);
    // Release: partner of the Acquires in `modules` and in the command; whoever sees the number sees the module.
    mapping.header.modules.store(number + 1, Ordering::Release);
}

/// The number of a file, by which the command can tell whether it has been replaced since; 0 if it is gone.
///
/// That is not the number which the kernel lists: file systems that are made of others have several for a file.
fn inode(path: &[u8]) -> u64 {
    let mut file = Path::default();
    file.push(path);
    // SAFETY: all zeros are a `stat`; the kernel writes it, and reads a NUL-terminated path.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        let done = raw_syscall!(
            Sysno::newfstatat,
            libc::AT_FDCWD,
            file.as_ptr(),
            &raw mut stat,
            libc::AT_NO_AUTOMOUNT
        );
        Errno::from_ret(done).map_or(0, |_| stat.st_ino)
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
