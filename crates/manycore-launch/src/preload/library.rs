//! Where the libraries are that go under programs.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::embedded::Embedded;
use super::purpose::Purpose;
use crate::failure::{Failure, Result};
use crate::target;

/// Where a library may be.
fn candidates(purpose: Purpose) -> Result<Vec<PathBuf>> {
    if let Some(named) = env::var_os(purpose.variable()) {
        // The user's choice: a search elsewhere would measure another library than the requested
        // one.
        return Ok(vec![named.into()]);
    }
    let own = env::current_exe().and_then(|path| path.canonicalize()).map_err(|error| {
        Failure::bad_input(
            format!("cannot tell where this command is installed ({error})"),
            format!("name {} in {}", purpose.name(), purpose.variable()),
        )
    })?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let file = purpose.file_name();
    Ok(vec![beside.join(file), beside.join("../lib/manycore").join(file)])
}

/// A library to preload, which this machine can load.
#[derive(Clone, Debug)]
pub struct Library {
    path: PathBuf,
}

impl Library {
    /// Finds the library at the path in its variable (`$MANYCORE_PRELOAD`,
    /// `$MANYCORE_SYSCALLS_PRELOAD`), beside this executable or in `../lib/manycore/` from there;
    /// otherwise unpacks the one that this executable carries.
    pub fn find(purpose: Purpose) -> Result<Self> {
        let (name, variable) = (purpose.name(), purpose.variable());
        let candidates = candidates(purpose)?;
        let beside = candidates.iter().find(|path| path.is_file()).cloned();
        let path = match (beside, Embedded::of(purpose)) {
            (Some(path), _) => path,
            (None, Some(carried)) if env::var_os(variable).is_none() => {
                carried.unpack().map_err(|why| {
                    Failure::bad_input(
                        format!("there is no place for {name} ({why})"),
                        "let XDG_CACHE_HOME name a directory that is yours alone to write to",
                    )
                })?
            }
            _ => {
                let looked = candidates.iter().map(|path| path.display().to_string());
                return Err(Failure::bad_input(
                    format!(
                        "{name} is missing (looked at {})",
                        looked.collect::<Vec<_>>().join(", ")
                    ),
                    format!("build it with `make build`, or name it in {variable}"),
                ));
            }
        };
        let path = &path;
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

/// The entries of an LD_PRELOAD list, without those that an enclosing `manycore run` has added.
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
