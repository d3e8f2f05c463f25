//! Simulations in parallel, each in a process of its own: a process simulates one machine at a
//! time.
//!
//! The process is this executable, started with arguments that lead it to [`serve`]. It reads jobs
//! from its standard input, one JSON value a line, and answers each on its standard output. It ends
//! at the end of its input, so it also ends with the process that started it. If a process dies,
//! its present job is lost.

use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZero;
use std::process::{self, Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::cache::Cache;
use super::job::{Finding, Job};
use super::outlook::Outlook;
use super::program::{self, Simulator};
use crate::progress::Progress;
use crate::worker::Command;

/// A job's result; the error tells in a line why there is none.
pub(crate) type Answer = Result<Finding, String>;

/// How jobs are run.
#[derive(Clone, Debug)]
pub struct SimulatorPool {
    /// The command that starts a worker. Its arguments lead to [`serve`].
    pub worker: Command,
    /// The number of workers; `None` means one for each CPU.
    pub workers: Option<NonZero<usize>>,
    /// Where results are kept, and looked for first.
    pub cache: Option<Cache>,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
    duty: Duty,
}

/// What a pool does with jobs.
#[derive(Clone, Debug)]
enum Duty {
    Simulate,
    /// As `Simulate`, as part of a larger plan, whose remaining time is shown.
    SimulatePart(Outlook),
    /// Notes the jobs, and simulates nothing.
    Note(Arc<Mutex<Vec<Job>>>),
}

impl SimulatorPool {
    /// A pool that simulates.
    pub fn new(
        worker: Command,
        workers: Option<NonZero<usize>>,
        cache: Option<Cache>,
        progress: bool,
    ) -> Self {
        Self { worker, workers, cache, progress, duty: Duty::Simulate }
    }

    /// A pool whose progress shows the remaining time of the whole plan.
    pub fn with_outlook(&self, outlook: Outlook) -> Self {
        Self { duty: Duty::SimulatePart(outlook), ..self.clone() }
    }

    /// A pool that notes the jobs, and the list of them for the caller.
    pub(crate) fn that_notes(&self) -> (Self, Arc<Mutex<Vec<Job>>>) {
        let noted = Arc::default();
        (Self { duty: Duty::Note(Arc::clone(&noted)), ..self.clone() }, noted)
    }

    /// How many simulate at a time.
    pub(crate) fn size(&self) -> usize {
        let wanted = self.workers.or_else(|| std::thread::available_parallelism().ok());
        wanted.map_or(1, NonZero::get)
    }

    /// Runs them all; the answers are in the order of the jobs.
    pub(crate) fn run(&self, jobs: &[Job]) -> Vec<Answer> {
        if let Duty::Note(noted) = &self.duty {
            noted.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(jobs);
            return jobs.iter().map(|_| Err("it was noted, not simulated".to_owned())).collect();
        }
        let answers: Vec<OnceLock<Answer>> = jobs.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let progress = Progress::steps(self.progress, jobs.len());
        let work = || {
            let mut worker = None;
            loop {
                // Relaxed: the counter deals out numbers and orders nothing.
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(index) else { return };
                progress.step(self.in_words(job));
                // No other thread has this index.
                _ = answers[index].set(self.answer(&mut worker, job));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.size().min(jobs.len()) {
                scope.spawn(work);
            }
        });
        let dealt_out = |answer: OnceLock<Answer>| answer.into_inner().expect("a worker had it");
        answers.into_iter().map(dealt_out).collect()
    }

    fn answer(&self, worker: &mut Option<Worker>, job: &Job) -> Answer {
        if let Some(finding) = self.cache.as_ref().and_then(|cache| cache.find(job)) {
            return Ok(finding);
        }
        let begin = Instant::now();
        let answer = self.simulate(worker, job);
        let took = begin.elapsed();
        if let (Some(cache), Ok(finding)) = (&self.cache, &answer) {
            cache.keep(job, finding, took);
        }
        if let Duty::SimulatePart(outlook) = &self.duty {
            outlook.done(job, took.as_secs_f64());
        }
        answer
    }

    /// The remaining time first, and then the present simulation: a narrow terminal cuts off the
    /// end.
    fn in_words(&self, job: &Job) -> String {
        let job = format!("{}, {} threads", job.mechanism, job.threads);
        match &self.duty {
            Duty::SimulatePart(outlook) => format!("{outlook}: {job}"),
            _ => job,
        }
    }

    fn simulate(&self, worker: &mut Option<Worker>, job: &Job) -> Answer {
        let mut at_work = match worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.worker).map_err(|error| {
                format!("cannot start '{}' to simulate: {error}", self.worker.program.display())
            })?,
        };
        match at_work.ask(job) {
            Ok(answer) => {
                *worker = Some(at_work);
                answer
            }
            Err(error) => Err(at_work.last_words(&error)),
        }
    }
}

/// A process that simulates. Dropped, it is ended.
struct Worker {
    child: Child,
    jobs: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Yields the last line of its standard error, once the worker has ended.
    complaint: Option<JoinHandle<Option<String>>>,
}

impl Worker {
    fn start(command: &Command) -> io::Result<Self> {
        let mut process = process::Command::new(&command.program);
        process.args(&command.arguments);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The simulator does not need the libraries that this process may run under, and would be
        // slower with them.
        process.env_remove("LD_PRELOAD");
        // Results are kept only for runs without a planted mistake.
        process.env_remove("MANYCORE_MUTATION");
        let mut child = process.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(jobs), Some(answers), Some(errors)) = pipes else {
            unreachable!("all three are pipes");
        };
        let last_line = || BufReader::new(errors).lines().map_while(Result::ok).last();
        let complaint = Some(std::thread::spawn(last_line));
        Ok(Self { child, jobs, answers: BufReader::new(answers), complaint })
    }

    fn ask(&mut self, job: &Job) -> io::Result<Answer> {
        let job = serde_json::to_string(job)?;
        writeln!(self.jobs, "{job}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// The reason why there is no answer: the worker's last message, if there was one.
    fn last_words(&mut self, error: &io::Error) -> String {
        // Fails if the worker has ended, which is what we want.
        drop(self.child.kill());
        let last = self.complaint.take().and_then(|thread| thread.join().ok()).flatten();
        let said = last.map_or_else(|| error.to_string(), |last| format!("it said: {last}"));
        format!("the process that simulated it has ended; {said}")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs simulations for the process at the other end of standard input and output, as long as it
/// sends jobs.
pub fn serve(simulators: &[Simulator]) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let answer = match serde_json::from_str::<Job>(&line?) {
            Ok(job) => program::run(&job, simulators),
            Err(error) => Err(format!("the worker got a job that it cannot read: {error}")),
        };
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::job::{Job, Program};
    use crate::slice::Pinning;
    use std::time::Duration;

    fn job() -> Job {
        Job {
            machine: manycore_sim::model::find("xeon-4x6").unwrap().to_toml(),
            cpus: None,
            mechanism: "futex".into(),
            threads: 2,
            program: Program::new("Sections", "{}"),
            measured: Duration::from_millis(1),
            pinning: Pinning::Auto,
            seed: 1,
            every_turn: false,
            patient: false,
        }
    }

    fn pool(program: &str) -> SimulatorPool {
        let worker = Command { program: program.into(), arguments: Vec::new() };
        SimulatorPool::new(worker, None, None, false)
    }

    #[test]
    fn a_worker_that_is_none_costs_its_jobs() {
        for (program, words) in [("/nonexistent", "cannot start '/nonexistent'"), ("true", "ended")]
        {
            let answers = pool(program).run(&[job(), job(), job()]);
            assert_eq!(answers.len(), 3);
            for answer in answers {
                let error = answer.unwrap_err();
                assert!(error.contains(words), "{error}");
            }
        }
    }
}
