//! The harness's end of a worker.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{self, Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

use super::Origin;
use super::order::{Message, Order};
use super::subject::{Command, Subject, Through};
use crate::failure::Failure;

/// How much longer than ordered a worker may take, on a machine with other load.
const GRACE: Duration = Duration::from_secs(20);

/// A worker that runs. Dropped, it is killed.
pub(crate) struct Worker {
    subject: Subject,
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
    /// Yields the last line of the worker's standard error, once the worker has ended.
    complaint: Option<JoinHandle<String>>,
    /// The directory for the statistics of the preload library. It is removed together with the
    /// worker.
    _statistics: Option<TempDir>,
}

impl Worker {
    /// Starts a worker, under another program if `under` names one with its arguments.
    pub fn start(
        command: &Command,
        under: &[OsString],
        subject: &Subject,
    ) -> Result<Self, Failure> {
        let failed =
            |error| Failure::Failed(format!("cannot start a worker for {subject}: {error}"));
        let (mut process, statistics) = prepare(command, under, subject).map_err(failed)?;
        let mut child = process.spawn().map_err(failed)?;
        let (orders, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(orders), Some(output), Some(errors)) = (orders, output, errors) else {
            unreachable!("all three are pipes");
        };
        let (sender, answers) = mpsc::channel();
        // Both threads end with the worker.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        let last_line = move || BufReader::new(errors).lines().map_while(Result::ok).last();
        let complaint = Some(std::thread::spawn(move || last_line().unwrap_or_default()));
        let subject = subject.clone();
        let mut worker =
            Self { subject, child, orders, answers, complaint, _statistics: statistics };
        worker.check_origin()?;
        Ok(worker)
    }

    /// Has an order executed.
    pub fn execute<O: Order>(&mut self, order: &O) -> Result<O::Answer, Failure> {
        let message = Message::new(order).and_then(|message| serde_json::to_string(&message));
        if !matches!(message.map(|line| writeln!(self.orders, "{line}")), Ok(Ok(()))) {
            return Err(self.failure("the worker has ended"));
        }
        let line = match self.answers.recv_timeout(order.time_max() + GRACE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                return Err(self.failure("the worker does not answer"));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(self.failure("the worker has ended"));
            }
        };
        match serde_json::from_str::<Result<O::Answer, String>>(&line) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(complaint)) => Err(self.failure(&complaint)),
            Err(_) => Err(self.failure(&format!("the worker said {line}"))),
        }
    }

    /// The dynamic linker only warns about a library that it cannot preload. Results of another
    /// library than the requested one would be worse than none.
    fn check_origin(&mut self) -> Result<(), Failure> {
        let Some(library) = self.subject.through.library().map(Path::to_path_buf) else {
            return Ok(());
        };
        let wanted = library.canonicalize().ok();
        match self.execute(&Origin)? {
            Some(found) if std::fs::canonicalize(&found).ok() == wanted => Ok(()),
            found => {
                let found = found.unwrap_or_else(|| "an unknown file".into());
                Err(self.failure(&format!(
                    "pthread_mutex_lock comes from {found}, not from {}",
                    library.display()
                )))
            }
        }
    }

    /// Ends the worker; returns an error with the reason and the worker's own last message.
    fn failure(&mut self, reason: &str) -> Failure {
        self.end();
        let last_words =
            self.complaint.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let separator = if last_words.is_empty() { "" } else { ": " };
        Failure::Failed(format!("{}: {reason}{separator}{last_words}", self.subject))
    }

    fn end(&mut self) {
        // Fails if the worker has ended, which is what we want.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

/// The process to start, and the directory that exists as long as the process runs.
fn prepare(
    command: &Command,
    under: &[OsString],
    subject: &Subject,
) -> std::io::Result<(process::Command, Option<TempDir>)> {
    let program = command.program.clone().into_os_string();
    let mut words = under.iter().chain([&program]).chain(&command.arguments);
    let mut process = process::Command::new(words.next().unwrap_or(&program));
    process.args(words).arg(subject.contender());
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Whatever this process was started under, all locks are to be measured under the same.
    for variable in ["LD_PRELOAD", "MANYCORE_LOCK", "MANYCORE_STATS"] {
        process.env_remove(variable);
    }
    let Some(library) = subject.through.library() else { return Ok((process, None)) };
    process.env("LD_PRELOAD", library).env("MANYCORE_LOCK", &subject.lock);
    if !matches!(subject.through, Through::PreloadWithStatistics(_)) {
        return Ok((process, None));
    }
    let directory = tempfile::tempdir()?;
    process.env("MANYCORE_STATS", directory.path());
    Ok((process, Some(directory)))
}
