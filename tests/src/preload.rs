//! The library under test: where it is, and how a program is run on top of it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The preload library: `$MANYCORE_PRELOAD`, or built from this workspace.
///
/// # Panics
///
/// If it cannot be built.
pub fn library() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let build = || build("manycore-preload", "libmanycore_preload.so");
        env::var_os("MANYCORE_PRELOAD").map_or_else(build, PathBuf::from)
    });
    &LIBRARY
}

/// The library that moves system calls: `$MANYCORE_SYSCALLS_PRELOAD`, the one beside
/// `$MANYCORE_COMMAND`, or one built from this workspace.
///
/// # Panics
///
/// If it cannot be built.
pub fn syscalls_library() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        const NAME: &str = "libmanycore_syscalls.so";
        let named = env::var_os("MANYCORE_SYSCALLS_PRELOAD").map(PathBuf::from);
        let shipped = || {
            let command = PathBuf::from(env::var_os("MANYCORE_COMMAND")?);
            Some(command.with_file_name(NAME)).filter(|library| library.is_file())
        };
        named.or_else(shipped).unwrap_or_else(|| build("manycore-syscalls", NAME))
    });
    &LIBRARY
}

/// The command `manycore`: `$MANYCORE_COMMAND`, or built from this workspace.
///
/// # Panics
///
/// If it cannot be built.
pub fn command() -> &'static Path {
    static COMMAND: LazyLock<PathBuf> = LazyLock::new(|| {
        let build = || build("manycore-cli", "manycore");
        env::var_os("MANYCORE_COMMAND").map_or_else(build, PathBuf::from)
    });
    &COMMAND
}

fn build(package: &str, product: &str) -> PathBuf {
    let target = crate::target();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let (profile, directory) = crate::profile();
    cargo.args(["build", "--quiet", "--profile", profile, "--package", package, "--target-dir"]);
    let status = cargo.arg(target).status().expect("start cargo");
    assert!(status.success(), "{package} does not build");
    directory.join(product)
}

/// Variables that would preload a library into a program. Programs under test do not inherit them.
const VARIABLES: [&str; 6] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "MANYCORE_LOCK",
    "MANYCORE_STATS",
    "MANYCORE_SYSCALLS",
    "MANYCORE_SYSCALLS_STATS",
];

/// The CPUs that this process may use, as the kernel lists them: `0-3,8`.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.expect("Linux names the CPUs that a process may use").trim().to_owned()
}

/// What is beneath a program when it runs.
#[derive(Clone, Debug, Default)]
pub struct Beneath {
    libraries: Vec<PathBuf>,
    variables: Vec<(&'static str, OsString)>,
}

impl Beneath {
    /// Nothing but the system's libraries.
    pub fn glibc() -> Self {
        Self::default()
    }

    /// The library under test, with a lock.
    pub fn lock(name: &str) -> Self {
        Self::glibc().library(library()).variable("MANYCORE_LOCK", name)
    }

    /// The library that moves system calls, all of them by this mechanism: `in-place`, `thread`,
    /// `pool`, `uring`.
    pub fn syscalls(mechanism: &str) -> Self {
        Self::ordered(mechanism, "no")
    }

    /// The same library with the mechanism `pool`. It leaves calls in place where that was measured
    /// to be faster.
    pub fn syscalls_as_measured() -> Self {
        Self::ordered("pool", "yes")
    }

    fn ordered(mechanism: &str, bypass: &str) -> Self {
        let cpus = allowed_cpus();
        let order = format!("{mechanism}:cpus={cpus}:rule=first:files=yes:bypass={bypass}");
        Self::glibc().library(syscalls_library()).variable("MANYCORE_SYSCALLS", order)
    }

    /// A library to preload after those that are there.
    #[must_use]
    pub fn library(mut self, path: &Path) -> Self {
        self.libraries.push(path.to_owned());
        self
    }

    /// A library to preload before those that are there.
    #[must_use]
    pub fn library_first(mut self, path: &Path) -> Self {
        self.libraries.insert(0, path.to_owned());
        self
    }

    /// A variable in the program's environment.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Runs the program on top of the library, and removes the libraries that the tester's own
    /// environment would preload.
    pub fn put<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        for name in VARIABLES {
            program.env_remove(name);
        }
        if !self.libraries.is_empty() {
            let paths: Vec<_> = self.libraries.iter().map(|path| path.as_os_str()).collect();
            program.env("LD_PRELOAD", paths.join(":".as_ref()));
        }
        program.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }
}
