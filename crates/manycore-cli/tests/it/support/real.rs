//! The command with the real preload library, and profiles of small programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// `manycore profile` with these options, of a command.
pub fn profiling<W: AsRef<OsStr>>(options: &[&str], command: &[W]) -> Command {
    let mut profiling = super::bare_manycore();
    profiling.arg("profile").args(options).arg("--").args(command);
    profiling.env("MANYCORE_PRELOAD", super::library());
    profiling
}

/// A profile, and what the command said.
pub struct Profiled {
    pub output: Output,
    pub json: Value,
}

/// Profiles a command.
pub fn profile<W: AsRef<OsStr>>(command: &[W]) -> Profiled {
    profile_by(super::library(), command)
}

/// Profiles a command by this preload library.
pub fn profile_by<W: AsRef<OsStr>>(library: &Path, command: &[W]) -> Profiled {
    let directory = super::directory();
    let file = directory.path().join("profile.json");
    let mut profiling = profiling(&["--json", file.to_str().unwrap()], command);
    let output = profiling.env("MANYCORE_PRELOAD", library).output().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let json = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}\n{}", super::stderr(&output)));
    Profiled { output, json }
}

impl Profiled {
    /// The locks, by name.
    pub fn names(&self) -> Vec<&str> {
        self.json["locks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lock| lock["name"].as_str().unwrap())
            .collect()
    }

    /// The lock whose name begins so.
    pub fn lock(&self, name: &str) -> &Value {
        named(&self.json, name)
    }

    pub fn processes(&self) -> &[Value] {
        self.json["processes"].as_array().unwrap()
    }
}

/// The lock of a profile, or of a process in it, whose name begins with `name`.
pub fn named<'a>(of: &'a Value, name: &str) -> &'a Value {
    let mut locks = of["locks"].as_array().unwrap().iter();
    let found = locks.find(|lock| lock["name"].as_str().unwrap().starts_with(name));
    found.unwrap_or_else(|| panic!("no {name} in {of:#}"))
}

/// Compiles a C++ program.
pub fn compile_cxx(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let input = directory.join(format!("{name}.cc"));
    std::fs::write(&input, source).unwrap();
    let output = directory.join(name);
    let status =
        Command::new("c++").args(flags).arg("-pthread").arg("-o").args([&output, &input]).status();
    assert!(status.unwrap().success());
    output
}
