//! Where the libraries are that go under programs.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::target;

/// What a library does for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It puts other locks in.
    Locks,
    /// It executes system calls on chosen CPUs.
    Calls,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Locks, Self::Calls];

    /// What its file is called.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Locks => "libmanycore_preload.so",
            Self::Calls => "libmanycore_syscalls.so",
        }
    }

    /// Names the library, instead of the search beside the command.
    fn variable(self) -> &'static str {
        match self {
            Self::Locks => "MANYCORE_PRELOAD",
            Self::Calls => "MANYCORE_SYSCALLS_PRELOAD",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Locks => "the preload library",
            Self::Calls => "the library for system calls",
        }
    }

    fn candidates(self) -> Result<Vec<PathBuf>> {
        if let Some(named) = env::var_os(self.variable()) {
            // The user's choice: looking elsewhere would measure something else than was asked for.
            return Ok(vec![named.into()]);
        }
        let own = env::current_exe().and_then(|path| path.canonicalize()).map_err(|error| {
            Failure::bad_input(
                format!("cannot tell where this command is installed ({error})"),
                format!("name {} in {}", self.name(), self.variable()),
            )
        })?;
        let beside = own.parent().unwrap_or(Path::new("/"));
        let file = self.file_name();
        Ok(vec![beside.join(file), beside.join("../lib/manycore").join(file)])
    }
}

/// A library that goes under programs, known to be one that this machine can load.
#[derive(Clone, Debug)]
pub struct Library {
    path: PathBuf,
}

impl Library {
    /// Finds the library where its variable says (`$MANYCORE_PRELOAD`,
    /// `$MANYCORE_SYSCALLS_PRELOAD`), beside this executable or in `../lib/manycore/` from there.
    pub fn find(purpose: Purpose) -> Result<Self> {
        let (name, variable) = (purpose.name(), purpose.variable());
        let candidates = purpose.candidates()?;
        let Some(path) = candidates.iter().find(|path| path.is_file()) else {
            let looked: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
            return Err(Failure::bad_input(
                format!("{name} is missing (looked at {})", looked.join(", ")),
                format!("build it with `make build`, or name it in {variable}"),
            ));
        };
        // The dynamic linker would say so of a bad one and then run the program without it.
        target::elf::check_library(path).map_err(|why| {
            Failure::bad_input(
                format!("{} cannot be preloaded: {why}", path.display()),
                format!("build it with `make build`, or name another in {variable}"),
            )
        })?;
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        if path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
            return Err(Failure::bad_input(
                format!("LD_PRELOAD cannot carry the path '{}'", path.display()),
                format!(
                    "copy the library to a path without spaces, ':' and '$' and name it in {variable}"
                ),
            ));
        }
        Ok(Self { path })
    }

    /// Finds the one with the locks.
    pub fn of_locks() -> Result<Self> {
        Self::find(Purpose::Locks)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is.
    pub fn into_path(self) -> PathBuf {
        self.path
    }
}

/// The entries of an LD_PRELOAD list without those that a `manycore run` around this one has put
/// there.
pub fn of_others(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    let is_ours =
        |entry: &[u8]| Purpose::ALL.iter().any(|of| entry.ends_with(of.file_name().as_bytes()));
    let entries = list.as_bytes().split(|byte| b" :".contains(byte));
    entries.filter(move |entry| !entry.is_empty() && !is_ours(entry)).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_entries_are_dropped() {
        let list = OsStr::new(
            "/lib/libfoo.so:/lib/libmanycore_preload.so /lib/libbar.so:/lib/libmanycore_syscalls.so",
        );
        assert_eq!(of_others(list).collect::<Vec<_>>(), ["/lib/libfoo.so", "/lib/libbar.so"]);
        assert_eq!(of_others(OsStr::new("")).count(), 0);
    }
}
