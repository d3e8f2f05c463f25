//! Runs a program under a limit, so that a program that hangs is a result and does not stop the
//! suite.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or by a signal that we did not send.
    Exited(ExitStatus),
    /// Stopped, because it had not ended after this time.
    Stopped(Duration),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "{status}"),
            Self::Stopped(limit) => write!(f, "hangs: stopped after {} s", limit.as_secs()),
        }
    }
}

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// All of its standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
}

/// Runs a program with `input` as its standard input, and ends it and its children after `limit` at
/// the latest.
///
/// Output is written to files: a pipe would stay open while any grandchild keeps it.
///
/// # Panics
///
/// If the program cannot be started.
pub fn run(command: &mut Command, input: &str, limit: Duration) -> Outcome {
    let mut stdin = scratch();
    stdin
        .write_all(input.as_bytes())
        .and_then(|()| stdin.rewind())
        .expect("write to a scratch file");
    let (stdout, stderr) = (scratch(), scratch());
    let duplicate = |file: &File| file.try_clone().expect("duplicate a descriptor");
    // The program has a process group of its own, so that its children end with it.
    let mut child = command
        .stdin(stdin)
        .stdout(duplicate(&stdout))
        .stderr(duplicate(&stderr))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let group = Pid::from_child(&child);
    let in_time = ends_within(group, limit);
    // The group's leader has not been reaped yet, so the group's number still belongs to it. The
    // group must be empty.
    _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().expect("wait for a child of ours");
    let end = if in_time { End::Exited(status) } else { End::Stopped(limit) };
    Outcome { end, stdout: contents(stdout), stderr: contents(stderr) }
}

/// The non-empty results of `f` for each of these. For programs that mostly wait: two run at a
/// time.
///
/// # Panics
///
/// If `f` does.
pub fn two_at_a_time<I, T: Send>(
    items: impl Iterator<Item = I> + Clone + Send,
    f: impl Fn(I) -> Option<T> + Sync,
) -> Vec<T> {
    let half = |first: usize| {
        let items = items.clone().skip(first).step_by(2);
        let f = &f;
        move || items.filter_map(f).collect::<Vec<_>>()
    };
    let (one, other) = (half(0), half(1));
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let mut results = one();
        results.extend(other.join().expect("the other half does not panic"));
        results
    })
}

fn scratch() -> File {
    tempfile::tempfile().expect("a scratch file in the temporary directory")
}

fn contents(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read a scratch file");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a child ends in time. It is not reaped.
fn ends_within(child: Pid, limit: Duration) -> bool {
    let child = pidfd_open(child, PidfdFlags::empty()).expect("Linux 5.3 or later");
    let limit = Timespec::try_from(limit).expect("a limit that the kernel can count");
    loop {
        match poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&limit)) {
            Ok(events) => return events > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot wait for a child: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Outcome {
        run(Command::new("sh").args(["-c", script]), "input\n", limit)
    }

    #[test]
    fn what_it_prints_and_how_it_ends() {
        let outcome = shell("cat; echo oops >&2; exit 3", Duration::from_secs(10));
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("input\n", "oops\n"));
        let End::Exited(status) = outcome.end else { panic!("it was stopped") };
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_program_that_hangs_is_stopped_with_its_children() {
        let limit = Duration::from_millis(300);
        let outcome = shell("echo before; sleep 1000 & sleep 1000", limit);
        assert_eq!(outcome.end, End::Stopped(limit));
        assert_eq!(outcome.stdout, "before\n");
    }
}
