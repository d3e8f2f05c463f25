//! The sources of pictures: a followed program, the kernel beside it, and the program itself if it
//! was started here.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use manycore_kernel_trace::Means;
use manycore_profile::command::joined;
use manycore_profile::safe;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempPath;

use crate::find::Program;
use crate::follow::Followed;
use crate::kernel::KernelSide;
use crate::state::State;
use manycore_launch::child::{Ended, Running, describe};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_profile::record::directory::Directory;

/// Polling takes at most this fraction (1/N) of a CPU's time.
const SHARE: u32 = 20;

/// Where pictures come from.
pub struct Source {
    followed: Followed,
    kernel: Option<KernelSide>,
    started: Option<Started>,
    /// Whether it was sampled before: the first time, names are looked up, which are cached
    /// afterwards.
    is_known: bool,
}

/// A program that was started to be looked at.
struct Started {
    /// None when it has ended.
    running: Option<Running>,
    /// It goes when the program has ended.
    _directory: Directory,
    output: TempPath,
}

impl Source {
    /// A program that runs.
    pub fn attach(program: Program, kernel: Option<Means>) -> Result<Self> {
        let followed = Followed::attach(program)?;
        let kernel = kernel.map(|means| KernelSide::start(means, followed.pid())).transpose()?;
        Ok(Self { followed, kernel, started: None, is_known: false })
    }

    /// Starts a program. What it prints goes to a file.
    pub fn start(
        command: &[OsString],
        interposition: &Interposition,
        kernel: Option<Means>,
    ) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            Failure::failed(format!("cannot make a file for the program's output: {error}"))
        };
        let (file, output) = tempfile::Builder::new()
            .prefix("manycore-top-")
            .suffix(".log")
            .tempfile()
            .map_err(cannot)?
            .into_parts();
        let same = file.try_clone().map_err(cannot)?;
        let directory = Directory::new()?;
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]);
        interposition.with_statistics(directory.path()).apply(&mut program);
        let running = start(program, file, same, &command[0])?;
        let pid = running.pid().as_raw_nonzero().get() as u32;
        let words = safe(&joined(command.iter().map(|word| word.to_string_lossy())));
        let program = Program::here(directory.path().to_owned(), pid);
        let kernel = kernel.map(|means| KernelSide::start(means, pid)).transpose()?;
        let started = Started { running: Some(running), _directory: directory, output };
        let followed = Followed::start(program, words);
        Ok(Self { followed, kernel, started: Some(started), is_known: false })
    }

    /// Samples the program. Returns for how long no sample is due.
    pub fn sample(&mut self, state: &mut State, inbox: &mut Inbox) -> Result<Duration> {
        let begun = cpu_time();
        // Asked first: all that it did is then there.
        let ended = self.ended(inbox)?;
        let cpu = ended.map(|ended| (ended.user.as_secs_f64(), ended.kernel.as_secs_f64()));
        let pictures = self.followed.sample(cpu);
        let is_over = pictures.facts.is_over && self.started.is_none();
        let kernel = self.kernel.as_mut().map(KernelSide::next);
        state.take(pictures, kernel);
        let how = ended.map(|ended| describe(ended.status));
        state.ended = how.or_else(|| is_over.then(|| "it is gone".to_owned()));
        let rest = cpu_time().saturating_sub(begun) * (SHARE - 1);
        Ok(if std::mem::replace(&mut self.is_known, true) { rest } else { Duration::ZERO })
    }

    /// Whether the program has ended since it was looked at.
    pub fn has_ended(&mut self, inbox: &mut Inbox) -> Result<bool> {
        match &mut self.started {
            None => Ok(self.followed.has_gone()),
            Some(Started { running: Some(running), .. }) => running.has_ended(inbox),
            Some(_) => Ok(true),
        }
    }

    /// The program's exit and its use of resources, if it was started here and has ended.
    fn ended(&mut self, inbox: &mut Inbox) -> Result<Option<Ended>> {
        let Some(started) = &mut self.started else { return Ok(None) };
        let Some(running) = &mut started.running else { return Ok(None) };
        if !running.has_ended(inbox)? {
            return Ok(None);
        }
        let ended = started.running.take().expect("it was there").reap();
        ended.map(Some).map_err(|error| Failure::failed(format!("cannot wait: {error}")))
    }

    /// What has to be done several times a second.
    pub fn look_after(&mut self) {
        self.kernel.iter_mut().for_each(KernelSide::sample);
    }

    /// Ends the program if it was started here. Returns the file with its output, if it printed
    /// anything.
    pub fn end(self) -> Result<Option<PathBuf>> {
        let Some(started) = self.started else { return Ok(None) };
        // Asks it to end, and waits.
        drop(started.running);
        if fs::metadata(&started.output).is_ok_and(|file| file.len() == 0) {
            return Ok(None);
        }
        let kept = started.output.keep();
        kept.map(Some).map_err(|error| {
            Failure::failed(format!("the program's output cannot be kept: {error}"))
        })
    }
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    // A clock that is always there, and whose times are never negative.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

fn start(program: Command, stdout: File, stderr: File, name: &OsString) -> Result<Running> {
    Running::spawn(program, stdout, stderr).map_err(|error| {
        Failure::bad_input(
            format!("cannot run '{}': {error}", name.to_string_lossy()),
            "check that it runs without `manycore`",
        )
    })
}
