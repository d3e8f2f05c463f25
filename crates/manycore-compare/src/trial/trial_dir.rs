//! A private place for one run: an empty directory, a free port, and files for the programs'
//! output.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use manycore_launch::regular;
use tempfile::TempDir;

use manycore_launch::failure::{Failure, Result};

/// The end of a program's output that is searched for the metric.
const OUTPUT_MAX: u64 = 64 << 20;
/// Lines of a failed program's output that are shown.
const TAIL_LINES: usize = 8;

/// The place of one run. It is deleted when the run is over.
#[derive(Debug)]
pub struct TrialDir {
    place: TempDir,
    work: PathBuf,
    statistics: PathBuf,
    port: u16,
}

/// If a directory gets new files while it is deleted, it is emptied again after a pause, up to this
/// many times.
const DELETE_ATTEMPTS: u32 = 20;
const DELETE_PAUSE: Duration = Duration::from_millis(10);

impl Drop for TrialDir {
    /// A killed process without a parent to wait for its end may still create one more file. Files
    /// that cannot be deleted for any other reason stay, because no one is left to notify.
    fn drop(&mut self) {
        for _ in 0..DELETE_ATTEMPTS {
            match fs::remove_dir_all(self.place.path()) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                _ => return,
            }
            std::thread::sleep(DELETE_PAUSE);
        }
    }
}

/// Where one program of a run writes.
#[derive(Debug)]
pub struct Log {
    stdout: PathBuf,
    stderr: PathBuf,
}

impl TrialDir {
    /// Makes one under `$TMPDIR`.
    pub fn new() -> Result<Self> {
        Self::under(&std::env::temp_dir(), "let TMPDIR name one that you may write to")
    }

    /// Makes one under a directory. If that fails, the error ends with the remedy.
    pub fn under(directory: &Path, remedy: &str) -> Result<Self> {
        let (place, work, statistics) = directories(directory).map_err(|error| {
            let culprit = format!("cannot make a directory in '{}': {error}", directory.display());
            Failure::bad_input(culprit, remedy)
        })?;
        let port = free_port().map_err(|error| {
            Failure::failed(format!(
                "cannot get a port of {} for a run: {error}; let the loopback interface be up (ip link set lo up)",
                Ipv4Addr::LOCALHOST
            ))
        })?;
        Ok(Self { place, work, statistics, port })
    }

    /// The run's directory.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// A text with the run's directory for `{dir}` and its port for `{port}`.
    pub fn fill(&self, text: &OsStr) -> OsString {
        let with_dir = replace(text.as_bytes(), b"{dir}", self.work.as_os_str().as_bytes());
        OsString::from_vec(replace(&with_dir, b"{port}", self.port.to_string().as_bytes()))
    }

    /// A directory for the statistics of the run's processes.
    pub fn statistics(&self) -> &Path {
        &self.statistics
    }

    /// Files for the output of one of the run's programs.
    pub fn log(&self, name: &str) -> Log {
        let file = |end| self.place.path().join(format!("{name}.{end}"));
        Log { stdout: file("out"), stderr: file("err") }
    }
}

/// Creates a run's directory, and two in it: one for the run's commands, and one for statistics.
fn directories(directory: &Path) -> io::Result<(TempDir, PathBuf, PathBuf)> {
    // Short, because a path to a socket has room for 107 bytes.
    let place = tempfile::Builder::new().prefix("mc-").tempdir_in(directory)?;
    let (work, statistics) = (place.path().join("d"), place.path().join("s"));
    fs::create_dir(&work)?;
    fs::create_dir(&statistics)?;
    Ok((place, work, statistics))
}

/// The port is free at this moment, and the kernel does not hand it out again soon.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl Log {
    /// Opens both files for a program to write.
    pub fn open(&self) -> Result<(File, File)> {
        let open = |path| {
            File::create(path).map_err(|error| {
                Failure::failed(format!("cannot write what a program says: {error}"))
            })
        };
        Ok((open(&self.stdout)?, open(&self.stderr)?))
    }

    /// The program's output: all of stdout, then all of stderr. If that is very long, only the end.
    pub fn read(&self) -> Result<String> {
        let read = |path| {
            end_of(path, OUTPUT_MAX).map_err(|error| {
                Failure::failed(format!("cannot read what a program said: {error}"))
            })
        };
        Ok(read(&self.stdout)? + &read(&self.stderr)?)
    }

    /// The last lines of stderr, or of stdout if the program said nothing there.
    pub fn tail(&self) -> String {
        let end = |path| end_of(path, 64 << 10).unwrap_or_default();
        let stderr = end(&self.stderr);
        let text = if stderr.trim().is_empty() { end(&self.stdout) } else { stderr };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

fn end_of(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut file = regular::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    result.extend_from_slice(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_wherever_they_stand() {
        let dir = TrialDir::new().unwrap();
        let filled = dir.fill(OsStr::new("--port={port} {dir}/a:{dir} {other}"));
        let directory = dir.work.display();
        let expected = format!("--port={} {directory}/a:{directory} {{other}}", dir.port);
        assert_eq!(filled, OsString::from(expected));
    }

    #[test]
    fn the_tail_prefers_stderr() {
        let dir = TrialDir::new().unwrap();
        let log = dir.log("x");
        fs::write(&log.stdout, "one\ntwo\n").unwrap();
        fs::write(&log.stderr, "").unwrap();
        assert_eq!(log.tail(), "one\ntwo");
        fs::write(&log.stderr, (0..20).map(|n| format!("{n}\n")).collect::<String>()).unwrap();
        assert_eq!(
            log.tail().lines().collect::<Vec<_>>(),
            ["12", "13", "14", "15", "16", "17", "18", "19"]
        );
        assert!(log.read().unwrap().starts_with("one\ntwo\n0\n"));
    }
}
