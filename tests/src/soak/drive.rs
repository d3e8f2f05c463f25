//! Puts load on a server, and watches both.
//!
//! Each [`Worker`] has a thread, and reports its progress. A worker without progress for
//! [`STANDSTILL`] hangs. The run ends with the first failure: the server is then killed, so that no
//! worker waits for an answer for ever.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::memory::Course;
use super::process::Process;
use super::{Failure, Result, STANDSTILL};

// Relaxed throughout: no other data depends on the flag and the counts, and the workers' results
// are read after they have been joined.

/// How long between two looks at workers and server.
const LOOK: Duration = Duration::from_millis(20);

/// One source of load.
pub struct Worker<'a> {
    name: String,
    work: Box<dyn Work<'a>>,
}

/// What a worker does in its shift.
trait Work<'a>: FnOnce(&Shift) -> Result<()> + Send + 'a {}
impl<'a, W: FnOnce(&Shift) -> Result<()> + Send + 'a> Work<'a> for W {}

impl<'a> Worker<'a> {
    /// Work that goes on until its shift is over.
    pub fn new(
        name: impl Into<String>,
        work: impl FnOnce(&Shift) -> Result<()> + Send + 'a,
    ) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// A worker's view of the run.
#[derive(Debug)]
pub struct Shift<'a> {
    run: &'a Run,
    done: AtomicU64,
}

impl Shift<'_> {
    /// Whether it is time to come to an end.
    pub fn is_over(&self) -> bool {
        self.run.over.load(Ordering::Relaxed)
    }

    /// So much more is done.
    pub fn did(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Run {
    over: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

impl Run {
    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Records a failure; only the first one counts.
    fn fail(&self, failure: Failure) {
        self.slot().get_or_insert(failure);
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        // The slot is unchanged if a worker panicked.
        self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Account {
    /// The amount of work of each worker, in the order of the workers.
    pub done: Vec<u64>,
    /// What the server had in use.
    pub course: Course,
}

/// Lets workers load a server for this long.
pub fn drive(server: &Process, length: Duration, workers: Vec<Worker>) -> Result<Account> {
    drive_with(STANDSTILL, server, length, workers)
}

fn drive_with(
    standstill: Duration,
    server: &Process,
    length: Duration,
    workers: Vec<Worker>,
) -> Result<Account> {
    let run = Run::default();
    let (names, work): (Vec<_>, Vec<_>) =
        workers.into_iter().map(|worker| (worker.name, worker.work)).unzip();
    let shifts: Vec<_> =
        names.iter().map(|_| Shift { run: &run, done: AtomicU64::new(0) }).collect();
    let course = thread::scope(|scope| {
        let starts = work.into_iter().zip(&shifts).zip(&names);
        let threads: Vec<_> = starts
            .map(|((work, shift), name)| {
                scope.spawn(move || {
                    if let Err(failure) = work(shift) {
                        shift.run.fail(Failure::because(name)(failure));
                    }
                })
            })
            .collect();
        let watch = Watch { server, standstill, run: &run, shifts: &shifts, names: &names };
        let course = watch.until_all(length, || threads.iter().all(|thread| thread.is_finished()));
        run.end();
        if course.is_err() {
            server.kill();
        }
        course
    })?;
    match run.slot().take() {
        Some(failure) => Err(failure),
        // Relaxed: the workers have been joined.
        None => Ok(Account {
            done: shifts.iter().map(|shift| shift.done.load(Ordering::Relaxed)).collect(),
            course,
        }),
    }
}

struct Watch<'a> {
    server: &'a Process,
    standstill: Duration,
    run: &'a Run,
    shifts: &'a [Shift<'a>],
    names: &'a [String],
}

impl Watch<'_> {
    /// Watches until the time is over, and then until all workers have ended.
    fn until_all(&self, length: Duration, ended: impl Fn() -> bool) -> Result<Course> {
        let start = Instant::now();
        let mut course = Course::of(length);
        let mut progress: Vec<_> = self.shifts.iter().map(|_| (0, start)).collect();
        let mut sampled = 0;
        loop {
            let now = Instant::now();
            let since = now - start;
            if since >= length {
                self.run.end();
                if ended() {
                    return Ok(course);
                }
            } else if since >= course.interval() * sampled {
                course.sample(self.server.id())?;
                sampled += 1;
            }
            self.look(now, &mut progress, since >= length + self.standstill)?;
            thread::sleep(LOOK);
        }
    }

    fn look(&self, now: Instant, progress: &mut [(u64, Instant)], late: bool) -> Result<()> {
        super::interrupt::check()?;
        if let Some(failure) = self.run.slot().take() {
            return Err(failure);
        }
        if self.server.has_ended()? {
            return Err(Failure::new("the server has ended under load"));
        }
        for ((shift, (done, since)), name) in self.shifts.iter().zip(progress).zip(self.names) {
            let done_now = shift.done.load(Ordering::Relaxed);
            if done_now != *done {
                (*done, *since) = (done_now, now);
            } else if now - *since >= self.standstill && !shift.is_over() {
                let after = format!("serves nothing to {name}, which has done {done_now}");
                return Err(self.server.hangs(&after));
            }
        }
        if late {
            return Err(self.server.hangs("keeps workers from ending"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::place;
    use std::process::Command;
    use tempfile::TempDir;

    fn sleeping() -> (TempDir, Process) {
        let place = place().unwrap();
        let server =
            Process::start("server", Command::new("sleep").arg("1000"), place.path()).unwrap();
        (place, server)
    }

    fn busy(shift: &Shift) -> Result<()> {
        while !shift.is_over() {
            shift.did(1);
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    #[test]
    fn counts_what_each_worker_does() {
        let (_place, server) = sleeping();
        let three = |shift: &Shift| {
            shift.did(3);
            Ok(())
        };
        let workers = vec![Worker::new("a", busy), Worker::new("b", three)];
        let account = drive(&server, Duration::from_millis(400), workers).unwrap();
        assert!(account.done[0] > 3 && account.done[1] == 3, "{account:?}");
        account.course.expect_flat().unwrap();
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let (_place, server) = sleeping();
        let fails = |_: &Shift| Err(Failure::new("lost"));
        let workers = vec![Worker::new("a", busy), Worker::new("b", fails)];
        let start = Instant::now();
        let failure = drive(&server, Duration::from_secs(100), workers).unwrap_err();
        assert_eq!(failure.to_string(), "b: lost");
        assert!(start.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_worker_that_gets_nothing_done_hangs() {
        let (_place, server) = sleeping();
        let waits = |_: &Shift| {
            while !server.has_ended()? {
                thread::sleep(LOOK);
            }
            Ok(())
        };
        let standstill = Duration::from_millis(100);
        let workers = vec![Worker::new("a", waits)];
        let failure = drive_with(standstill, &server, Duration::from_secs(100), workers);
        let failure = failure.unwrap_err().to_string();
        assert!(failure.starts_with("server serves nothing to a"), "{failure}");
        assert!(failure.contains(" sleep S "), "{failure}");
    }

    #[test]
    fn a_worker_that_does_not_end_hangs() {
        let (_place, server) = sleeping();
        let goes_on = |shift: &Shift| {
            while !server.has_ended()? {
                shift.did(1);
                thread::sleep(LOOK);
            }
            Ok(())
        };
        let (standstill, length) = (Duration::from_millis(200), Duration::from_millis(100));
        let failure = drive_with(standstill, &server, length, vec![Worker::new("a", goes_on)]);
        assert!(failure.unwrap_err().to_string().contains("keeps workers from ending"));
    }

    #[test]
    fn a_server_that_ends_is_a_failure() {
        let (_place, server) = sleeping();
        server.kill();
        let failure = drive(&server, Duration::from_secs(100), vec![Worker::new("a", busy)]);
        assert!(failure.unwrap_err().to_string().contains("ended under load"));
    }
}
