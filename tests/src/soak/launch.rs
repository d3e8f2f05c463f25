//! The ways to start a program: unchanged, with a lock, or on top of a library that is known to be
//! broken.

use std::path::Path;
use std::process::Command;

use crate::preload::{self, Beneath};

/// What stands before a program on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch<'a> {
    /// Nothing.
    Plain,
    /// `manycore run --lock NAME --`.
    Lock(&'a str),
    /// The library that moves system calls, by this mechanism.
    Calls(&'a str),
    /// The library that moves system calls, by this mechanism; it counts them in this directory.
    Counted(&'a str, &'a Path),
    /// Nothing, and a library preloaded.
    Library(&'a Path),
}

impl Launch<'_> {
    /// A command that starts a program so.
    pub fn command(self, program: &Path) -> Command {
        let (beneath, mut command) = self.parts(program);
        beneath.put(&mut command);
        command
    }

    /// Does the same, with one more library between the program and the library beneath it.
    pub fn command_on(self, library: &Path, program: &Path) -> Command {
        let (beneath, mut command) = self.parts(program);
        beneath.library_first(library).put(&mut command);
        command
    }

    fn parts(self, program: &Path) -> (Beneath, Command) {
        match self {
            Self::Plain => (Beneath::glibc(), Command::new(program)),
            Self::Calls(mechanism) => (Beneath::syscalls(mechanism), Command::new(program)),
            Self::Counted(mechanism, directory) => {
                let beneath = Beneath::syscalls(mechanism);
                (beneath.variable("MANYCORE_SYSCALLS_STATS", directory), Command::new(program))
            }
            Self::Library(path) => (Beneath::glibc().library(path), Command::new(program)),
            Self::Lock(name) => (Beneath::glibc(), with_lock(name, program)),
        }
    }
}

fn with_lock(name: &str, program: &Path) -> Command {
    let mut command = Command::new(preload::command());
    command.env("MANYCORE_PRELOAD", preload::library());
    command.args(["run", "--lock", name, "--"]).arg(program);
    command
}

/// The library's messages on a program's standard error that should not occur.
///
/// The preload library warns a program with more threads than CPUs of a lock that serves in order
/// of arrival. That warning is correct.
pub fn complaints(said: &str) -> impl Iterator<Item = &str> {
    let own = said.lines().filter(|line| line.starts_with("manycore: "));
    own.filter(|line| !line.contains("more threads than CPUs"))
}

#[test]
fn a_warning_is_no_complaint() {
    let said = "ready\nmanycore: the program has more threads than CPUs: ...\nmanycore: half\n";
    assert_eq!(complaints(said).collect::<Vec<_>>(), ["manycore: half"]);
}
