//! The bundled server: the places of its files, its start, and its output.

use std::env;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use manycore_launch::failure::{Failure, Result};

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/server"));
const SOURCE: &str = include_str!("../../demo/server.c");

/// Threads per CPU: more threads than CPUs, as servers have.
const THREADS_PER_CPU: usize = 4;
/// What the server takes at most.
const THREADS_MAX: usize = 256;

/// The server, unpacked.
#[derive(Debug)]
pub struct Server {
    directory: PathBuf,
    /// Its threads.
    pub workers: usize,
}

impl Server {
    /// Unpacks it, with its source, into the directory of the report, so that the user can continue
    /// to experiment with it.
    pub fn unpack() -> Result<Self> {
        let cpus = available_parallelism().map_or(1, usize::from);
        let workers = (THREADS_PER_CPU * cpus).min(THREADS_MAX);
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache")));
        let places = cache.into_iter().map(|cache| cache.join("manycore/demo")).chain([
            // If another user owns a directory of this name, it cannot be written, and the error
            // says so.
            env::temp_dir().join(format!("manycore-demo-{}", rustix::process::getuid().as_raw())),
        ]);
        let mut errors = Vec::new();
        for directory in places {
            match write_to(&directory) {
                Ok(()) => return Ok(Self { directory, workers }),
                Err(error) => errors.push(format!("{}: {error}", directory.display())),
            }
        }
        Err(Failure::bad_input(
            format!("there is no place for the demonstration ({})", errors.join("; ")),
            "let XDG_CACHE_HOME or TMPDIR name a directory that you may write to",
        ))
    }

    /// Where it and the report are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its command line.
    pub fn command(&self, seconds: f64, repaired: bool) -> Vec<OsString> {
        let program = self.directory.join("server").into_os_string();
        let numbers = [seconds.to_string().into(), self.workers.to_string().into()];
        let repaired = repaired.then(|| "outside".into());
        [program].into_iter().chain(numbers).chain(repaired).collect()
    }
}

/// Batches answered per second, of what the server printed.
pub fn rate(output: &str) -> Result<f64> {
    let number = output.trim().strip_suffix(" batches/s").and_then(|number| number.parse().ok());
    number.filter(|rate| *rate > 0.0).ok_or_else(|| {
        Failure::failed(format!("the server printed '{}' instead of its rate", output.trim()))
    })
}

fn write_to(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    // Another demonstration may be running the existing file: it is replaced, not written to.
    let mut program = tempfile::NamedTempFile::new_in(directory)?;
    program.write_all(PROGRAM)?;
    program.as_file().set_permissions(Permissions::from_mode(0o755))?;
    program.persist(directory.join("server"))?;
    fs::write(directory.join("server.c"), SOURCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rate_is_a_rate() {
        assert_eq!(rate("1234 batches/s\n").unwrap(), 1234.0);
        for other in ["", "0 batches/s", "x batches/s", "1234"] {
            assert!(
                rate(other).unwrap_err().to_string().contains("instead of its rate"),
                "{other}"
            );
        }
    }
}
