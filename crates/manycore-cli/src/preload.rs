//! Where the preload library is, and the environment that puts it under a program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::spec::Spec;
use crate::target;

const FILE_NAME: &str = "libmanycore_preload.so";
/// Names the library, instead of the search beside the command.
const LIBRARY_VARIABLE: &str = "MANYCORE_PRELOAD";

/// Names the directory for the statistics; without it there are none.
const STATISTICS_VARIABLE: &str = "MANYCORE_STATS";

/// The preload library, known to be one that this machine can load.
#[derive(Clone, Debug)]
pub struct Library {
    path: PathBuf,
}

impl Library {
    /// Finds the library at `$MANYCORE_PRELOAD`, beside this executable or in `../lib/manycore/` from there.
    pub fn find() -> Result<Self> {
        let candidates = candidates()?;
        let Some(path) = candidates.iter().find(|path| path.is_file()) else {
            let looked: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
            return Err(Failure::bad_input(
                format!("the preload library is missing (looked at {})", looked.join(", ")),
                format!("build it with `make`, or name it in {LIBRARY_VARIABLE}"),
            ));
        };
        // The dynamic linker would say so of a bad one and then run the program without it.
        target::elf::check_library(path).map_err(|why| {
            Failure::bad_input(
                format!("{} cannot be preloaded: {why}", path.display()),
                format!("build it with `make`, or name another in {LIBRARY_VARIABLE}"),
            )
        })?;
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        if path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
            return Err(Failure::bad_input(
                format!("LD_PRELOAD cannot carry the path '{}'", path.display()),
                format!(
                    "copy the library to a path without spaces, ':' and '$' and name it in {LIBRARY_VARIABLE}"
                ),
            ));
        }
        Ok(Self { path })
    }

    /// Where it is.
    pub fn into_path(self) -> PathBuf {
        self.path
    }
}

fn candidates() -> Result<Vec<PathBuf>> {
    if let Some(named) = env::var_os(LIBRARY_VARIABLE) {
        // The user's choice: looking elsewhere would measure something else than was asked for.
        return Ok(vec![named.into()]);
    }
    let own = env::current_exe().and_then(|path| path.canonicalize()).map_err(|error| {
        Failure::bad_input(
            format!("cannot tell where this command is installed ({error})"),
            format!("name the preload library in {LIBRARY_VARIABLE}"),
        )
    })?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    Ok(vec![beside.join(FILE_NAME), beside.join("../lib/manycore").join(FILE_NAME)])
}

/// A lock, and how to get it under a program.
#[derive(Clone, Debug)]
pub struct Interposition {
    lock: Spec,
    library: Option<Library>,
    statistics: Option<PathBuf>,
}

impl Interposition {
    /// Prepares to run programs with `lock`; the library has to be there unless the lock is glibc's own.
    pub fn new(lock: Spec) -> Result<Self> {
        let library = if lock.is_glibc() { None } else { Some(Library::find()?) };
        Ok(Self { lock, library, statistics: None })
    }

    /// The same, but each process leaves its statistics in this directory. Without a library there are none.
    pub fn with_statistics(&self, directory: &Path) -> Self {
        Self { statistics: Some(directory.to_owned()), ..self.clone() }
    }

    /// The lock that a program runs with.
    pub fn lock(&self) -> &Spec {
        &self.lock
    }

    /// The library, unless the lock is glibc's own.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_ref().map(|library| library.path.as_path())
    }

    /// Sets the command's environment: what else is preloaded stays, behind the library.
    pub fn apply(&self, command: &mut Command) {
        let others = env::var_os("LD_PRELOAD").map(|list| without_ours(&list)).unwrap_or_default();
        match (&self.library, &self.statistics) {
            (Some(_), Some(directory)) => command.env(STATISTICS_VARIABLE, directory),
            _ => command.env_remove(STATISTICS_VARIABLE),
        };
        let Some(library) = &self.library else {
            command.env_remove("MANYCORE_LOCK");
            if others.is_empty() {
                command.env_remove("LD_PRELOAD");
            } else {
                command.env("LD_PRELOAD", others);
            }
            return;
        };
        let mut list = library.path.clone().into_os_string();
        if !others.is_empty() {
            list.push(":");
            list.push(others);
        }
        command.env("LD_PRELOAD", list).env("MANYCORE_LOCK", self.lock.as_str());
    }
}

/// An LD_PRELOAD list without the library that a `manycore run` around this one has put there.
fn without_ours(list: &OsStr) -> OsString {
    let entries = list.as_bytes().split(|byte| b" :".contains(byte));
    let kept: Vec<&[u8]> = entries
        .filter(|entry| !entry.is_empty() && !entry.ends_with(FILE_NAME.as_bytes()))
        .collect();
    OsStr::from_bytes(&kept.join(&b':')).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_entries_are_dropped() {
        let list = OsStr::new("/lib/libfoo.so:/lib/libmanycore_preload.so /lib/libbar.so");
        assert_eq!(without_ours(list), OsStr::new("/lib/libfoo.so:/lib/libbar.so"));
        assert_eq!(without_ours(OsStr::new("")), OsStr::new(""));
    }
}
