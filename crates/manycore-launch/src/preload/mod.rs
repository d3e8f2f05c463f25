//! The environment that puts a library under a program, or two.

mod embedded;
mod library;
mod purpose;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Result;
use crate::spec::Spec;
use crate::target;

pub use library::Library;
use library::of_others;
use purpose::Purpose;

/// Names the lock.
const LOCK_VARIABLE: &str = "MANYCORE_LOCK";
/// The variable with the directory for the statistics. Without it there are none.
const STATISTICS_VARIABLE: &str = "MANYCORE_STATS";
/// The same, for those of system calls.
const CALLS_STATISTICS_VARIABLE: &str = "MANYCORE_SYSCALLS_STATS";
/// Says how and where system calls are executed.
const CALLS_VARIABLE: &str = "MANYCORE_SYSCALLS";

/// Options of AddressSanitizer's runtime.
const ADDRESS_SANITIZER: &str = "ASAN_OPTIONS";

/// The libraries that are preloaded into a program: a lock, and the library that moves its system
/// calls.
#[derive(Clone, Debug)]
pub struct Interposition {
    lock: Spec,
    library: Option<Library>,
    statistics: Option<PathBuf>,
    calls: Option<Calls>,
}

/// System calls that are executed elsewhere.
#[derive(Clone, Debug)]
struct Calls {
    library: Library,
    settings: String,
}

impl Interposition {
    /// Prepares to run programs with `lock`. The library must exist, unless the lock is glibc's
    /// own.
    pub fn new(lock: Spec) -> Result<Self> {
        let library = if lock.is_glibc() { None } else { Some(Library::of_locks()?) };
        Ok(Self { lock, library, statistics: None, calls: None })
    }

    /// As [`new`](Self::new), but system calls are executed according to these settings of their
    /// library.
    pub fn with_calls(self, settings: String) -> Result<Self> {
        let library = Library::find(Purpose::Calls)?;
        Ok(Self { calls: Some(Calls { library, settings }), ..self })
    }

    /// As `self`, but each process leaves its statistics in this directory: those of locks and
    /// those of system calls, as far as the libraries are preloaded.
    pub fn with_statistics(&self, directory: &Path) -> Self {
        Self { statistics: Some(directory.to_owned()), ..self.clone() }
    }

    /// Whether system calls are executed as settings say.
    pub fn moves_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// A library that every process loads; `None` if there is none.
    pub fn any_library(&self) -> Option<&Path> {
        self.library().or_else(|| self.calls.as_ref().map(|calls| calls.library.path()))
    }

    /// The lock that a program runs with.
    pub fn lock(&self) -> &Spec {
        &self.lock
    }

    /// The library with the lock; `None` for glibc's own lock.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_ref().map(Library::path)
    }

    /// Sets the command's environment: other preloaded libraries stay, behind ours.
    pub fn apply(&self, command: &mut Command) {
        let lock = self.library.as_ref().map(|_| OsStr::new(self.lock.as_str()));
        set(command, LOCK_VARIABLE, lock);
        let statistics = self.statistics.as_deref().map(Path::as_os_str);
        set(command, STATISTICS_VARIABLE, self.library.as_ref().and(statistics));
        let calls = self.calls.as_ref();
        set(command, CALLS_VARIABLE, calls.map(|calls| OsStr::new(&calls.settings)));
        set(command, CALLS_STATISTICS_VARIABLE, calls.and(statistics));
        set(command, "LD_PRELOAD", self.preloaded(command.get_program()).as_deref());
        if self.any_library().is_some() {
            let options = env::var_os(ADDRESS_SANITIZER).unwrap_or_default();
            set(command, ADDRESS_SANITIZER, Some(&behind_others(options)));
        }
    }

    /// The list of libraries that are preloaded into the program, if there are any.
    fn preloaded(&self, program: &OsStr) -> Option<OsString> {
        let calls = self.calls.as_ref().map(|calls| &calls.library);
        let ours: Vec<_> = [self.library.as_ref(), calls].into_iter().flatten().collect();
        let others = env::var_os("LD_PRELOAD").unwrap_or_default();
        let (first, last): (Vec<_>, Vec<_>) =
            of_others(&others).partition(|library| target::is_thread_sanitizer(library));
        let needed = if ours.is_empty() { None } else { target::thread_sanitizer(program) };
        let first = needed.as_deref().filter(|_| first.is_empty()).into_iter().chain(first);
        let ours = ours.iter().map(|library| library.path().as_os_str());
        let list = first.chain(ours).chain(last).collect::<Vec<_>>().join(OsStr::new(":"));
        (!list.is_empty()).then_some(list)
    }
}

/// Options of AddressSanitizer with one more: it need not be the first library. It replaces the
/// allocator, which our libraries leave alone.
fn behind_others(mut options: OsString) -> OsString {
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    options
}

/// Sets a variable of the command's, or takes it away.
fn set(command: &mut Command, name: &str, value: Option<&OsStr>) {
    match value {
        Some(value) => command.env(name, value),
        None => command.env_remove(name),
    };
}
