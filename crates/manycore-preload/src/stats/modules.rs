//! The mapped files: the command needs them to name addresses.
//!
//! They are read from `/proc/self/maps` at start, and again when an address is in a library that
//! was loaded since; the loader is asked for that without a lock and without a system call. Code
//! that a program generates is in no library, and is not searched for here.
//!
//! After a library is unloaded, another may be loaded at the same addresses. From then on addresses
//! there are distinguished by the mapped file: see [`salt`].

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use manycore::lock::{Futex, PlainLock};
use manycore_stats::{MAPPED_CODE, MAPPED_LOADED, MAPPED_SHARED, MODULES, Mapping, Module};
use syscalls::{Sysno, raw_syscall};

use super::asked::asked;
use super::index::key;
use super::loaded;

// Relaxed throughout, unless noted: the number of modules publishes a module's data, and `READING`
// orders all writes.

/// How often libraries were seen to have been unloaded.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Where they had been: from here on.
static VACATED_FROM: AtomicU64 = AtomicU64::new(u64::MAX);
/// Up to here.
static VACATED_TO: AtomicU64 = AtomicU64::new(0);

/// Whether the kernel's list cannot be read: then no thread tries again.
static NONE_LISTED: AtomicBool = AtomicBool::new(false);

/// Protects the list of modules while it changes.
static READING: Futex = Futex::new();

/// The present epoch.
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// Adds the modules of these addresses to the mapping unless they are in it.
pub fn note(mapping: &Mapping, frames: &[u64]) {
    let is_unknown = |frame: &&u64| {
        // Without being able to ask, any may be in a library.
        **frame != 0
            && at(mapping, **frame).is_none()
            && loaded::is_in_library(**frame) != Some(false)
    };
    if frames.iter().any(|frame| is_unknown(&frame)) {
        read_maps(mapping);
    }
}

/// Whether an address is in a library or in the program, or in the zero-initialised data of one of
/// them.
pub fn contain(mapping: &Mapping, address: u64) -> bool {
    loaded::is_in_library(address).unwrap_or_else(|| at(mapping, address).is_some())
}

/// A number that changes with the file that is mapped at these addresses; 0 if it never has
/// changed.
pub fn salt(mapping: &Mapping, addresses: &[u64]) -> u64 {
    // Acquire: partner of the Release in `retire`; a thread that sees the epoch sees where
    // libraries were.
    if EPOCH.load(Ordering::Acquire) == 0 {
        return 0;
    }
    let vacated = VACATED_FROM.load(Ordering::Relaxed)..VACATED_TO.load(Ordering::Relaxed);
    addresses.iter().filter(|address| vacated.contains(address)).fold(0, |salt, address| {
        note(mapping, &[*address]);
        // Code that the program itself generates there belongs to its time.
        let since = at(mapping, *address).map_or_else(epoch, |m| m.since.load(Ordering::Relaxed));
        key([salt, *address, since.into()])
    })
}

/// The module that is at an address now.
fn at(mapping: &Mapping, address: u64) -> Option<&Module> {
    present(mapping).find(|module| {
        (module.start.load(Ordering::Relaxed)..module.end.load(Ordering::Relaxed))
            .contains(&address)
    })
}

fn present(mapping: &Mapping) -> impl Iterator<Item = &Module> {
    modules(mapping).iter().filter(|module| module.until.load(Ordering::Relaxed) == 0)
}

fn modules(mapping: &Mapping) -> &[Module] {
    // Acquire: partner of the Release in `add`.
    &mapping.modules[..(mapping.header.modules.load(Ordering::Acquire) as usize).min(MODULES)]
}

/// Called in the child of a fork: a thread that was reading when the parent forked does not exist
/// here.
pub fn forked() {
    crate::own_lock::set_free(&READING);
}

/// Called in the child of a fork: copies the parent's notes, which also hold for the child.
pub fn copy(old: &Mapping, new: &Mapping) {
    let noted = modules(old);
    for (from, to) in noted.iter().zip(new.modules.iter()) {
        copy_module(from, to);
    }
    let words = old.header.paths.load(Ordering::Relaxed);
    for (from, to) in old.paths.iter().zip(new.paths.iter()).take(words as usize) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    new.header.paths.store(words, Ordering::Relaxed);
    // Release: partner of the Acquires in `modules` and in the command, as in `add`.
    new.header.modules.store(noted.len() as u32, Ordering::Release);
}

fn copy_module(from: &Module, to: &Module) {
    for (from, to) in long(from).into_iter().zip(long(to)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    for (from, to) in short(from).into_iter().zip(short(to)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn long(module: &Module) -> [&AtomicU64; 5] {
    let Module { start, end, offset, inode, device, .. } = module;
    [start, end, offset, inode, device]
}

fn short(module: &Module) -> [&AtomicU32; 5] {
    let Module { flags, since, until, path, length, .. } = module;
    [flags, since, until, path, length]
}

/// Adds what `/proc/self/maps` has and the mapping has not.
pub fn read_maps(mapping: &Mapping) {
    const PATH: &CStr = c"/proc/self/maps";
    if NONE_LISTED.load(Ordering::Relaxed) {
        return;
    }
    READING.acquire();
    // SAFETY: the path is a string, and the kernel writes no more into the buffer than there is
    // room for.
    unsafe {
        let file =
            asked!(Sysno::openat, libc::AT_FDCWD, PATH.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
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
        } else if file as isize == -(libc::ENOENT as isize) {
            NONE_LISTED.store(true, Ordering::Relaxed);
        }
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { READING.release() };
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

/// A line of a list of mappings.
struct Line<'a> {
    start: u64,
    end: u64,
    offset: u64,
    device: u64,
    inode: u64,
    flags: u32,
    path: &'a [u8],
}

/// Parses `start-end perms offset device inode path`. Returns the end of the module that an
/// adjacent anonymous line would extend.
fn add_line(mapping: &Mapping, line: &[u8], before: Option<u64>) -> Option<u64> {
    let line = parsed(line)?;
    match line.path {
        // The kernel's mapping in every process is no file, but has a name.
        path if path.starts_with(b"/") || path == b"[vdso]" => add(mapping, &line),
        // Zero-initialised data follows the file's last mapping.
        b"" if before == Some(line.start) => {
            let module = present(mapping).find(|m| m.end.load(Ordering::Relaxed) == line.start)?;
            module.end.store(line.end, Ordering::Relaxed);
        }
        _ => return None,
    }
    Some(line.end)
}

fn parsed(line: &[u8]) -> Option<Line<'_>> {
    // A path may have spaces, and is set off by many.
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let (start, end) = pair(fields.next()?, b'-')?;
    let rights = fields.next()?;
    let offset = hex(fields.next()?)?;
    let (major, minor) = pair(fields.next()?, b':')?;
    let inode = str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = fields.next().unwrap_or_default();
    let path = &path[path.iter().position(|byte| *byte != b' ').unwrap_or(path.len())..];
    let code = if rights.get(2) == Some(&b'x') { MAPPED_CODE } else { 0 };
    let shared = if rights.get(3) == Some(&b's') { MAPPED_SHARED } else { 0 };
    Some(Line {
        start,
        end,
        offset,
        device: major << 32 | minor,
        inode,
        flags: code | shared,
        path,
    })
}

fn add(mapping: &Mapping, line: &Line) {
    let is_same = |m: &Module| {
        m.inode.load(Ordering::Relaxed) == line.inode
            && m.device.load(Ordering::Relaxed) == line.device
            && m.flags.load(Ordering::Relaxed) & !MAPPED_LOADED == line.flags
    };
    let is_known = present(mapping).any(|m| {
        m.start.load(Ordering::Relaxed) == line.start
            && m.end.load(Ordering::Relaxed) >= line.end
            && m.offset.load(Ordering::Relaxed) == line.offset
            && is_same(m)
    });
    if is_known {
        return;
    }
    // What was there before and is another file.
    let is_gone = |m: &Module| {
        m.start.load(Ordering::Relaxed) < line.end
            && line.start < m.end.load(Ordering::Relaxed)
            && (m.inode.load(Ordering::Relaxed), m.device.load(Ordering::Relaxed))
                != (line.inode, line.device)
    };
    retire(mapping, is_gone);
    let number = mapping.header.modules.load(Ordering::Relaxed);
    if number as usize >= MODULES {
        return;
    }
    let Some(path) = place_of_path(mapping, number, line.path) else { return };
    let module = &mapping.modules[number as usize];
    let loaded = if loaded::is_in_library(line.start) == Some(true) { MAPPED_LOADED } else { 0 };
    module.start.store(line.start, Ordering::Relaxed);
    module.end.store(line.end, Ordering::Relaxed);
    module.offset.store(line.offset, Ordering::Relaxed);
    module.inode.store(line.inode, Ordering::Relaxed);
    module.device.store(line.device, Ordering::Relaxed);
    module.flags.store(line.flags | loaded, Ordering::Relaxed);
    module.since.store(epoch(), Ordering::Relaxed);
    module.path.store(path, Ordering::Relaxed);
    module.length.store(line.path.len() as u32, Ordering::Relaxed);
    // Release: partner of the Acquires in `modules` and in the command; a reader that sees the
    // number sees the module.
    mapping.header.modules.store(number + 1, Ordering::Release);
}

/// The position of a path: that of the previous module if it has the same path, otherwise behind
/// all paths. `None` if there is no room.
fn place_of_path(mapping: &Mapping, number: u32, path: &[u8]) -> Option<u32> {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        let part = &path[at * 8..path.len().min(at * 8 + 8)];
        bytes[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(bytes)
    };
    let words = path.len().div_ceil(8);
    if let Some(before) = number.checked_sub(1).map(|before| &mapping.modules[before as usize]) {
        let place = before.path.load(Ordering::Relaxed);
        let kept = mapping.paths.get(place as usize..place as usize + words)?;
        let is_same = before.length.load(Ordering::Relaxed) as usize == path.len()
            && kept.iter().enumerate().all(|(at, kept)| kept.load(Ordering::Relaxed) == word(at));
        if is_same {
            return Some(place);
        }
    }
    let place = mapping.header.paths.load(Ordering::Relaxed);
    let room = mapping.paths.get(place as usize..place as usize + words)?;
    room.iter().enumerate().for_each(|(at, room)| room.store(word(at), Ordering::Relaxed));
    mapping.header.paths.store(place + words as u32, Ordering::Relaxed);
    Some(place)
}

/// Notes that modules are there no more. Under `READING`.
fn retire(mapping: &Mapping, is_gone: impl Fn(&Module) -> bool) {
    let next = epoch() + 1;
    let mut is_any = false;
    for module in present(mapping).filter(|module| is_gone(module)) {
        is_any = true;
        VACATED_FROM.fetch_min(module.start.load(Ordering::Relaxed), Ordering::Relaxed);
        VACATED_TO.fetch_max(module.end.load(Ordering::Relaxed), Ordering::Relaxed);
        module.until.store(next, Ordering::Relaxed);
    }
    if is_any {
        // Release: partner of the Acquire in `salt`.
        EPOCH.store(next, Ordering::Release);
    }
}

/// Notes which libraries have been unloaded.
pub fn look_for_unloaded(mapping: &Mapping) {
    READING.acquire();
    retire(mapping, |module| {
        module.flags.load(Ordering::Relaxed) & MAPPED_LOADED != 0
            && loaded::is_in_library(module.start.load(Ordering::Relaxed)) == Some(false)
    });
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { READING.release() };
}

fn pair(text: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|byte| *byte == between)?;
    Some((hex(&text[..at])?, hex(&text[at + 1..])?))
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
