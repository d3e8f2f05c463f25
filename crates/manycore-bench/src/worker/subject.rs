//! What a worker measures, and how it is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::contender::{BASE, BASE_SHARED};
use crate::failure::Failure;

/// The command that starts a worker. Its arguments lead the program to [`serve`](super::serve),
/// which gets one more: the name of the contender.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without the last.
    pub arguments: Vec<OsString>,
}

impl Command {
    /// This executable, with these arguments.
    pub fn this_executable<A: Into<OsString>>(
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::Failed(format!("cannot find this executable: {error}")))?;
        Ok(Self { program, arguments: arguments.into_iter().map(Into::into).collect() })
    }
}

/// How a lock comes under the benchmark.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Through {
    /// Called as a Rust library.
    Native,
    /// A lock in place of the pthread mutex, by the preload library in this file.
    Preload(PathBuf),
    /// The same, while it keeps statistics.
    PreloadWithStatistics(PathBuf),
}

impl Through {
    /// Its name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Preload(_) => "preload",
            Self::PreloadWithStatistics(_) => "preload+statistics",
        }
    }

    pub(super) fn library(&self) -> Option<&Path> {
        match self {
            Self::Native => None,
            Self::Preload(library) | Self::PreloadWithStatistics(library) => Some(library),
        }
    }
}

/// A lock, and how it comes under the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The lock's name.
    pub lock: String,
    /// How it comes under the benchmark.
    pub through: Through,
    /// Whether it stands in for a reader-writer lock.
    pub shared: bool,
}

impl Subject {
    /// The contender that its worker runs. With the preload library, that is the pthread lock that
    /// the library replaces.
    pub fn contender(&self) -> &str {
        match (&self.through, self.shared) {
            (Through::Native, _) => &self.lock,
            (_, false) => BASE,
            (_, true) => BASE_SHARED,
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.through {
            Through::Native => f.pad(&self.lock),
            through => f.pad(&format!("{} ({})", self.lock, through.name())),
        }
    }
}
