//! The files that processes have mapped: found while the processes live, and kept open, since
//! afterwards they may be out of reach.
//!
//! A path is the process' own. Here it may be another file, in another mount namespace or below
//! another root, or after a library was replaced. So each opened file is compared with the kernel's
//! list of the process' mappings. For a living process the kernel also offers its root, and each
//! mapped file, whatever has become of the file's path.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use memmap2::MmapOptions;

use crate::analyze::names::listed::Listed;
use crate::analyze::names::modules::Key;
use crate::analyze::names::modules::{Modules, Range};
use manycore_launch::regular;

/// The most processes whose lists of mappings are kept, some kilobytes each.
const LISTS_MAX: usize = 256;
const PROCESSES_MAX: usize = 8192;
/// The share of the files that this process may have open, as its inverse: half of them. The rest
/// is for other uses.
const KEPT_SHARE: u64 = 2;

/// A file that can be read.
#[derive(Debug)]
pub struct ReadableFile {
    /// A path by which the file can be opened from this process, now.
    pub path: PathBuf,
    /// The path that it has in the process.
    pub called: PathBuf,
}

/// Why a file cannot be looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It is not there.
    Unreadable,
    /// It is gone.
    Deleted,
    /// It is not the file that the process had mapped, or it was written since.
    Replaced,
}

/// The kept files. Descriptors belong to this process, and so does this.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Kept {
    /// None of a file that was not found.
    files: HashMap<Listed, Option<Arc<One>>>,
    processes: HashMap<Key, Process>,
}

struct One {
    file: File,
    called: PathBuf,
    was: Written,
}

/// What changes when a program writes to a file.
type Written = (i64, i64, u64);

/// A process that was seen while it lived.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The process' root and mount namespace, if they differ from ours. As long as both are open,
    /// the files below the root stay there.
    root: Option<Arc<(File, File)>>,
    /// The number that it has for itself.
    pub pid: u32,
    /// Whose it is.
    pub user: u32,
    /// When it began, or a little earlier.
    pub started: Option<SystemTime>,
    /// Files in which the process describes the code that it makes.
    pub dumps: Vec<PathBuf>,
    /// Its mappings when it was seen last.
    list: Vec<u8>,
}

/// Never locked while a file is opened: opening may wait for a file system that does not answer,
/// and other threads must not wait as well.
fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the files that a living process has mapped now. The process has this number in our
/// namespace; `owner` is its key.
pub fn see(process: u32, owner: Key) {
    // None of a process that has ended.
    let Ok(list) = fs::read(format!("/proc/{process}/maps")) else { return };
    see_mapped(process, &Modules::of_maps(owner, &list));
    let mut kept = kept();
    let lists = kept.processes.values().filter(|seen| !seen.list.is_empty()).count();
    if let Some(seen) = kept.processes.get_mut(&owner)
        && (lists < LISTS_MAX || !seen.list.is_empty())
    {
        seen.list = list;
    }
}

/// The files that a process had mapped when it was last seen; empty if it was not seen.
pub fn seen(owner: Key) -> Modules {
    let kept = kept();
    let list = kept.processes.get(&owner).map_or(&[][..], |process| &process.list);
    Modules::of_maps(owner, list)
}

/// As [`see`], for a process whose mappings are known.
pub fn see_mapped(process: u32, modules: &Modules) {
    note_process(process, modules);
    let most = kept_max();
    let wanted = |(file, _): &(&Listed, &Range)| {
        let kept = kept();
        file.is_file() && !kept.files.contains_key(file) && kept.files.len() < most
    };
    for (file, range) in modules.files().filter(wanted) {
        let one = One::open(file, process, range).map(Arc::new);
        kept().files.insert(file.clone(), one);
    }
}

fn note_process(process: u32, modules: &Modules) {
    let is_known = kept().processes.contains_key(&modules.owner);
    let new = (!is_known)
        .then(|| Process::sample(process).unwrap_or_else(|| Process::unseen(modules.owner)));
    let mut kept = kept();
    if let Some(new) = new.filter(|_| kept.processes.len() < PROCESSES_MAX) {
        kept.processes.entry(modules.owner).or_insert(new);
    }
    let Some(seen) = kept.processes.get_mut(&modules.owner) else { return };
    for path in modules.files().filter(|(file, _)| is_dump(file)).map(|(file, _)| file.path()) {
        if !seen.dumps.contains(&path) {
            seen.dumps.push(path);
        }
    }
}

/// Whether this file announces generated code: compilers map the file in this way, so that
/// profilers find it.
fn is_dump(file: &Listed) -> bool {
    let path = file.path();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with("jit-") && name.ends_with(".dump")
}

fn kept_max() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the structure, or fails and leaves it zero: then no file is kept
    // open.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (limit.rlim_cur / KEPT_SHARE) as usize
}

impl One {
    /// Opens a file by its path, by the path below the process' root, or by the mapping itself,
    /// which needs more rights.
    fn open(listed: &Listed, process: u32, range: &Range) -> Option<Self> {
        let opened =
            |path: PathBuf| regular::open(&path).ok().filter(|file| is_listed(file, listed));
        let paths = listed.paths();
        let here = || paths.iter().find_map(|path| Some((opened(path.clone())?, path.clone())));
        let root = PathBuf::from(format!("/proc/{process}/root"));
        let there = || {
            let below = |path: &PathBuf| root.join(path.strip_prefix("/").unwrap_or(path));
            paths.iter().find_map(|path| Some((opened(below(path))?, path.clone())))
        };
        let mapped = || {
            let Range { start, end, .. } = range;
            let path = format!("/proc/{process}/map_files/{start:x}-{end:x}");
            Some((opened(path.into())?, listed.path()))
        };
        let (file, called) = here().or_else(there).or_else(mapped)?;
        Some(Self { was: written(&file)?, file, called })
    }
}

impl Process {
    /// None of a process that has ended meanwhile.
    fn sample(process: u32) -> Option<Self> {
        let place = format!("/proc/{process}");
        let status = fs::read_to_string(format!("{place}/status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let innermost = numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok());
        Some(Self {
            root: root(process).map(Arc::new),
            pid: innermost.unwrap_or(process),
            user: fs::metadata(&place).ok()?.uid(),
            started: Some(started(process)?),
            dumps: Vec::new(),
            list: Vec::new(),
        })
    }

    /// A process that was not seen while it lived. Only the information that does not need its
    /// files is available.
    fn unseen(owner: Key) -> Self {
        // SAFETY: `getuid` takes no arguments, and changes nothing in memory.
        let user = unsafe { libc::getuid() };
        let started = started(std::process::id());
        Self { pid: owner.0, user, started, ..Self::default() }
    }

    /// Opens a file if its process' user or root has written it since the process began: otherwise
    /// it is not the process' own.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let file = match &self.root {
            None => regular::open(path)?,
            Some(root) => regular::open(&below(&root.0, path))?,
        };
        let found = file.metadata()?;
        let is_new = self
            .started
            .zip(found.modified().ok())
            .is_some_and(|(began, written)| written >= began);
        let is_its_own = found.uid() == self.user || found.uid() == 0;
        if is_new && is_its_own { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

/// What is known of a process.
pub fn process(owner: Key) -> Process {
    let known = kept().processes.get(&owner).cloned();
    known.unwrap_or_else(|| Process::unseen(owner))
}

/// The root and the mount namespace of a process, unless they are ours.
fn root(process: u32) -> Option<(File, File)> {
    let of = |process: &str, what: &str| fs::metadata(format!("/proc/{process}/{what}")).ok();
    let place = |found: fs::Metadata| (found.dev(), found.ino());
    let same =
        |what: &str| of(&process.to_string(), what).map(place) == of("self", what).map(place);
    if same("root") && same("ns/mnt") {
        return None;
    }
    let root = File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
        .open(format!("/proc/{process}/root"))
        .ok()?;
    Some((root, File::open(format!("/proc/{process}/ns/mnt")).ok()?))
}

fn below(root: &File, path: &Path) -> PathBuf {
    let place = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()));
    place.join(path.strip_prefix("/").unwrap_or(path))
}

/// The start of a process, or a little earlier: the kernel counts it in hundredths of a second, and
/// times of files are not much finer.
fn started(process: u32) -> Option<SystemTime> {
    /// Counted from the state, which follows the name, because the name may contain anything.
    const STARTED: usize = 22 - 3;
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(STARTED)?.parse().ok()?;
    // Ahead of the other clock: a thread that is preempted between them takes the process to be
    // older than it is. The other way round, it would refuse the files that the process wrote.
    let today = SystemTime::now();
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, here.
    let (second, done) = unsafe {
        (libc::sysconf(libc::_SC_CLK_TCK), libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now))
    };
    let since_boot = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    let began = Duration::from_secs_f64(ticks as f64 / second.max(1) as f64);
    const ROUNDED: Duration = Duration::from_millis(50);
    (done == 0).then(|| today - since_boot.saturating_sub(began) - ROUNDED)
}

/// Finds a file that a process had mapped.
pub fn find(listed: &Listed) -> Result<ReadableFile, Unusable> {
    let known = kept().files.get(listed).cloned();
    if let Some(Some(one)) = known {
        if written(&one.file) != Some(one.was) {
            return Err(Unusable::Replaced);
        }
        let is_there = regular::open(&one.called).is_ok_and(|file| is_same(&file, &one.file));
        let descriptor = || format!("/proc/self/fd/{}", one.file.as_raw_fd()).into();
        // By its own path, beside which its symbols may be.
        let path = if is_there { one.called.clone() } else { descriptor() };
        return Ok(ReadableFile { path, called: one.called.clone() });
    }
    let mut is_other = false;
    for path in listed.paths().into_iter().filter(|_| listed.is_file()) {
        let Ok(file) = regular::open(&path) else { continue };
        if is_listed(&file, listed) {
            return Ok(ReadableFile { called: path.clone(), path });
        }
        is_other = true;
    }
    Err(match (listed.is_listed_as_deleted(), is_other) {
        (true, _) => Unusable::Deleted,
        (false, true) => Unusable::Replaced,
        (false, false) => Unusable::Unreadable,
    })
}

fn is_same(one: &File, other: &File) -> bool {
    let place = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    place(one).is_some() && place(one) == place(other)
}

fn written(file: &File) -> Option<Written> {
    let found = file.metadata().ok()?;
    Some((found.mtime(), found.mtime_nsec(), found.size()))
}

/// Whether the kernel's list has a mapping of this file. Layered file systems may list a number
/// that differs from that of `stat`. In that case the file is mapped here, and our own list is
/// read.
fn is_listed(file: &File, listed: &Listed) -> bool {
    let Listed { device, inode, .. } = *listed;
    let Ok(found) = file.metadata() else { return false };
    let number = u64::from(libc::major(found.dev())) << 32 | u64::from(libc::minor(found.dev()));
    inode == 0
        || (number, found.ino()) == (device, inode)
        || as_mapped(file) == Some((device, inode))
}

fn as_mapped(file: &File) -> Option<(u64, u64)> {
    let map = MmapOptions::new().len(1).map_raw_read_only(file).ok()?;
    let list = fs::read("/proc/self/maps").ok()?;
    let modules = Modules::of_maps((0, 0), &list);
    let found = modules.find(map.as_ptr() as u64, crate::analyze::names::modules::NOW)?.file;
    Some((found.device, found.inode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn listed(path: &Path, text: &[u8]) -> Listed {
        let (device, inode) = as_mapped(&regular::open(path).unwrap()).unwrap();
        Listed { text: text.to_owned(), device, inode }
    }

    #[test]
    fn a_file_is_found_by_whatever_its_text_stands_for() {
        let directory = tempfile::tempdir().unwrap();
        for (name, escaped) in
            [("a b (deleted)", "a b (deleted)"), ("a\nb", "a\\012b"), ("a\\012b", "a\\012b")]
        {
            let path = directory.path().join(name);
            fs::write(&path, "anything").unwrap();
            let text = [directory.path().as_os_str().as_bytes(), b"/", escaped.as_bytes()].concat();
            assert_eq!(find(&listed(&path, &text)).unwrap().path, path);
        }
    }

    #[test]
    fn what_is_another_file_by_now_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.so");
        fs::write(&path, "one").unwrap();
        let text = path.as_os_str().as_bytes();
        let mut first = listed(&path, text);
        fs::rename(&path, directory.path().join("elsewhere")).unwrap();
        assert_eq!(find(&first).unwrap_err(), Unusable::Unreadable);
        fs::write(&path, "another").unwrap();
        assert_eq!(find(&first).unwrap_err(), Unusable::Replaced);
        first.text.extend(b" (deleted)");
        assert_eq!(find(&first).unwrap_err(), Unusable::Deleted);
    }

    #[test]
    fn what_was_mapped_is_kept_whatever_becomes_of_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.so");
        fs::write(&path, vec![1; 5000]).unwrap();
        let map = MmapOptions::new().map_raw_read_only(&regular::open(&path).unwrap()).unwrap();
        let one = listed(&path, path.as_os_str().as_bytes());
        see(std::process::id(), (std::process::id(), 1));
        fs::remove_file(&path).unwrap();
        let found = find(&one).unwrap();
        assert_eq!((found.called.as_path(), fs::read(&found.path).unwrap().len()), (&*path, 5000));
        fs::write(&found.path, "other bytes").unwrap();
        assert_eq!(find(&one).unwrap_err(), Unusable::Replaced);
        drop(map);
    }

    #[test]
    fn a_process_began_before_now() {
        let began = started(std::process::id()).unwrap();
        assert!(
            began <= SystemTime::now() && began > SystemTime::now() - Duration::from_secs(3600)
        );
        assert_eq!(started(u32::MAX), None);
    }
}
