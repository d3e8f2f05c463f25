//! The reason why locks cannot be replaced in a program, and the remedy for the user.

use std::ffi::OsStr;
use std::io;

use crate::failure::Failure;

/// What the preload library is for.
const OURS: &str = if cfg!(target_arch = "aarch64") { "64-bit Arm" } else { "x86-64" };

/// What is wrong with a program.
#[derive(Debug)]
pub enum Reason {
    /// No file of that path.
    NotFound,
    /// No file of that name in any directory of PATH.
    NotInPath,
    /// It is a directory.
    Directory,
    /// The permission bits say no.
    NotExecutable,
    /// It cannot be opened or read.
    Unreadable(io::Error),
    /// Neither ELF nor a script that names its interpreter.
    NotAProgram,
    /// More interpreters of interpreters than the kernel follows.
    Interpreters,
    /// No dynamic linker has a hand in it.
    Static,
    /// It is the dynamic linker, without a program to run.
    LoaderAlone,
    /// For a 32-bit machine.
    Bits32,
    /// For another architecture than this one: its name.
    Foreign(String),
    /// Linked against musl.
    Musl,
    /// Linked by a dynamic linker that is not glibc's.
    OtherLoader(String),
    /// Its dynamic linker is not installed.
    MissingLoader(String),
    /// Runs with privileges of its own: which kind.
    Privileged(&'static str),
}

const LOADER_ALONE: (&str, &str) = (
    "it is the dynamic linker, and is not told to run a program",
    "name the program behind it and its options",
);

/// A reason together with the program that it is about.
pub struct Refusal {
    program: String,
    message: String,
    remedy: String,
    runs: bool,
}

impl Reason {
    /// Names the program, and the requested script if the program is its interpreter.
    pub fn about(self, program: &OsStr, script: Option<&OsStr>) -> Refusal {
        let program = program.to_string_lossy();
        let named = match script {
            Some(script) => format!("'{}' (run by '{program}')", script.to_string_lossy()),
            None => format!("'{program}'"),
        };
        let runs = self.runs();
        let (message, remedy) = self.text(&program);
        Refusal { program: named, message, remedy, runs }
    }

    /// Whether the program may run all the same, without the library.
    fn runs(&self) -> bool {
        match self {
            Self::NotFound
            | Self::NotInPath
            | Self::Directory
            | Self::NotExecutable
            | Self::NotAProgram
            | Self::Interpreters
            | Self::MissingLoader(_) => false,
            Self::Unreadable(_)
            | Self::Static
            | Self::LoaderAlone
            | Self::Bits32
            | Self::Foreign(_)
            | Self::Musl
            | Self::OtherLoader(_)
            | Self::Privileged(_) => true,
        }
    }

    /// What is wrong, without a remedy.
    pub fn message(self) -> String {
        self.text("").0
    }

    fn text(self, program: &str) -> (String, String) {
        let (message, remedy) = match self {
            Self::NotFound => ("there is no such file", "check the path"),
            Self::NotInPath => {
                ("no such command in PATH", "check the spelling, install it, or give its path")
            }
            Self::Directory => ("it is a directory", "give the path of a program in it"),
            Self::NotExecutable => {
                return (
                    "it is not executable".into(),
                    format!("`chmod +x {program}` makes it so"),
                );
            }
            Self::Unreadable(error) => {
                return (
                    format!("it cannot be read ({error})"),
                    "what cannot be read cannot be checked: run a copy that you may read".into(),
                );
            }
            Self::NotAProgram => (
                "it is neither an ELF program nor a script with a '#!' line",
                "give a script its interpreter: `#!/bin/sh` as the first line",
            ),
            Self::Interpreters => (
                "its interpreters lead in a circle",
                "check the '#!' lines of the scripts on the way",
            ),
            Self::Static => (
                "it is statically linked, and a library can be preloaded only through the dynamic linker",
                "build it without -static",
            ),
            Self::LoaderAlone => LOADER_ALONE,
            Self::Bits32 => ("it is a 32-bit program", "build it for 64 bits"),
            Self::Foreign(machine) => {
                return (
                    format!("it is a program for {machine}, and the preload library is for {OURS}"),
                    "build it for this machine".into(),
                );
            }
            Self::Musl => (
                "it is linked against musl, and the preload library replaces the locks of glibc",
                "build it against glibc",
            ),
            Self::OtherLoader(loader) => {
                return (
                    format!(
                        "its dynamic linker '{loader}' is not glibc's, whose locks the preload library replaces"
                    ),
                    "build it against glibc".into(),
                );
            }
            Self::MissingLoader(loader) => {
                return (
                    format!("its dynamic linker '{loader}' is not installed"),
                    "install it, or build the program for this machine".into(),
                );
            }
            Self::Privileged(kind) => {
                return (
                    format!(
                        "it has {kind} privileges, and the dynamic linker ignores LD_PRELOAD in such programs"
                    ),
                    format!(
                        "run a copy without them (`cp {program} /tmp/`) from an account that may do what it does"
                    ),
                );
            }
        };
        (message.into(), remedy.into())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Refusal { program, message, remedy, .. } = refusal;
        Self::bad_input(format!("cannot run {program}: {message}"), remedy)
    }
}

impl Refusal {
    /// Why the library cannot be preloaded into a program that runs without it; or the refusal
    /// itself, for one that does not run at all.
    pub fn without_the_library(self) -> Result<String, Self> {
        if !self.runs {
            return Err(self);
        }
        Ok(format!("{}: {}; {}", self.program, self.message, self.remedy))
    }
}
