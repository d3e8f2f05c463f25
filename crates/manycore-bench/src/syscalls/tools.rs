//! Programs of others: their paths, their arguments, and their time limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use manycore_launch::failure::{Failure, Result};

/// How much longer than its time a run may take, and how long a server or its load may take to
/// start and to end.
pub const GRACE: Duration = Duration::from_secs(60);

/// The path of a program. Debian keeps servers out of an ordinary user's path.
pub fn installed(program: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = places.map(|place| place.join(program)).find(|file| file.is_file());
    found.ok_or_else(|| not_installed(program, package))
}

/// The error for a program that is not installed.
pub fn not_installed(what: &str, package: &str) -> Failure {
    Failure::bad_input(
        format!("{what} is not installed"),
        format!("on Debian, `apt-get install {package}`; or leave it out, with --part or --driver"),
    )
}

/// Words as the shell reads them.
pub fn for_shell(words: &[OsString]) -> Result<OsString> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let joined = words.and_then(|words| shlex::try_join(words).ok());
    joined.map(OsString::from).ok_or_else(|| {
        Failure::bad_input(
            "the path of this command cannot be written to a shell",
            "install it under a name of ordinary characters",
        )
    })
}
