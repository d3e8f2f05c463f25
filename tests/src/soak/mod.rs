//! Real servers under load, for as long as the user chooses: no error, no lost update, no growing
//! memory, no standstill.
//!
//! | module | what is in it |
//! |---|---|
//! | [`mariadb`] | transfers between accounts, whose sum stays, beside sysbench |
//! | [`memcached`] | values that belong to their keys, counters that count every increment |
//! | [`kyoto`] | Kyoto Cabinet's own test of random operations, seed after seed |
//! | [`drive`] | puts load on a server and watches both |
//! | [`memory`] | what a server has in use over time, and whether that is flat |
//! | [`hang`] | what the threads of a process wait for |
//! | [`interrupt`] | Ctrl-C, which ends a soak as a failure does |
//! | [`process`] | a program with its output in files, of which nothing stays behind |
//! | [`launch`] | how a program is started: as it is, with a lock, on top of a broken library |
//!
//! A server starts in a temporary directory, on a socket there or a loopback port that it chooses
//! itself. So soaks do not disturb each other, or other programs on the machine.
//!
//! # Memory, not a disk
//!
//! That directory is in `/dev/shm` if there is room, unless `TMPDIR` names another directory. The
//! reason is that a slow disk can look like a lost wake-up. MariaDB forces its log and its
//! doublewrite buffer to disk some two hundred times a second, whatever
//! `innodb-flush-method=nosync` promises. While two of its threads wait for that, its clients find
//! no free page in its small buffer pool, and search again and again. In a soak at the same time as
//! a build that wrote gigabytes, a client once made no progress for twenty seconds. The account of
//! that hang shows two threads in `fdatasync` (system call 75), fourteen that run and share the
//! CPUs evenly, and none that waits for a mutex. Under plain glibc, with calls of `fdatasync` that
//! take five seconds each, the account is the same.
//!
//! # How long
//!
//! The short form runs with all other tests. `make soak` runs the long one, of five minutes for
//! each program and lock; `make soak SOAK=20` makes them 20 seconds.

pub mod drive;
pub mod hang;
pub mod interrupt;
pub mod kyoto;
pub mod launch;
pub mod mariadb;
pub mod memcached;
pub mod memory;
pub mod process;

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use tempfile::TempDir;

/// A thread without progress for this long hangs. In 44 soaks of MariaDB, at the same time as four
/// programs that kept two CPUs busy or one that wrote to the disk all the time, no thread was
/// without progress for as long as four seconds.
pub const STANDSTILL: Duration = Duration::from_secs(20);

/// How many threads fight for the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Several times as many as there are CPUs, as servers have.
    Large,
    /// Two: for locks that serve strictly in order of arrival. With more threads than CPUs they
    /// wait for threads that do not run, and a server under them makes hardly any progress.
    Small,
}

impl Crowd {
    /// The number of threads: `large` where the crowd is a large one.
    pub fn threads(self, large: usize) -> usize {
        match self {
            Self::Large => large,
            Self::Small => large.min(2),
        }
    }
}

/// The failure, in words for a person who has to find its cause.
#[derive(Clone, Debug)]
pub struct Failure(String);

/// What a step of a soak comes to.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure of this description.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Another failure's description behind what was attempted: for `map_err`.
    pub fn because<E: Display>(attempt: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{attempt}: {error}"))
    }

    /// The failure with additional text below it.
    #[must_use]
    pub fn with(self, heading: &str, more: &str) -> Self {
        if more.trim().is_empty() {
            return self;
        }
        let lines: String = more.trim_end().lines().map(|line| format!("\n    {line}")).collect();
        Self(format!("{}\n  {heading}:{lines}", self.0))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with a description unless something is so.
pub fn ensure(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if is_so { Ok(()) } else { Err(Failure(otherwise())) }
}

/// A directory for one server, deleted when the value is dropped. Its path is short, because the
/// path of a socket has at most 107 bytes.
pub fn place() -> Result<TempDir> {
    let parent = in_memory().unwrap_or_else(env::temp_dir);
    tempfile::Builder::new()
        .prefix("soak-")
        .tempdir_in(parent)
        .map_err(Failure::because("no temporary directory (TMPDIR names where they are made)"))
}

/// The free memory that is needed to put several servers there at once.
const ROOM_BYTES: u64 = 1 << 30;

/// The directory of files in memory, if there is room and no variable names another one.
fn in_memory() -> Option<PathBuf> {
    const MEMORY: &str = "/dev/shm";
    let space = rustix::fs::statvfs(MEMORY).ok().filter(|_| env::var_os("TMPDIR").is_none())?;
    // If the directory of that name is on a disk, it is no better than any other.
    let is_memory = rustix::fs::statfs(MEMORY).ok()?.f_type == TMPFS_MAGIC;
    (is_memory && space.f_bavail * space.f_frsize >= ROOM_BYTES).then(|| PathBuf::from(MEMORY))
}

const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// The path of an installed program. Debian keeps servers outside of an ordinary user's search
/// path.
pub fn installed(program: &str, package: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let servers = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut files = env::split_paths(&path).chain(servers).map(|directory| directory.join(program));
    files
        .find(|file| fs::metadata(file).is_ok_and(|data| data.is_file()))
        .ok_or_else(|| Failure(format!("{program} is not installed: apt-get install {package}")))
}
