//! A program under observation: started with statistics on, watched while it runs, read when it has
//! ended.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use manycore_launch::child::{Ended, Running};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;
use manycore_measure::Host;
use rustix::process::{Pid, getpid, set_child_subreaper};

use super::cache_misses::CacheMissCounters;
use super::directory::{Directory, Left};
use super::entry::Subject;
use super::kernel_side::Beside;
use super::mapped_files;
use super::poll::Poller;
use super::process_tree::{self, Child, ProcessTree};
use super::uncounted::{Leader, uncounted};
use crate::analyze::assemble::{Run, Watched, assemble};
use crate::analyze::groups::overflow_processes::Others;
use crate::analyze::offloaded_calls::Tally;
use crate::analyze::process::ProcessStats;
use crate::clock::Clock;
use crate::profile::{Exit, Profile};

/// How often the processes are polled.
const POLL: Duration = Duration::from_millis(100);
/// How long to wait for children that end together with the program.
const LAST: Duration = Duration::from_millis(200);

/// Runs a program in this command's place and gives its profile, and how it ended.
///
/// `adjust` can make last changes to the program's start. Signals that come to the inbox are passed
/// on, so a server that is stopped gets its profile as well. When the program has ended, the inbox
/// makes the command end by the same signals.
///
/// # Errors
///
/// [`Failure`], if it cannot be started, or there is no room for statistics.
pub fn observe(
    command: &[OsString],
    interposition: &Interposition,
    adjust: impl FnOnce(&mut Command),
    (mut beside, misses): (Beside, Option<CacheMissCounters>),
    inbox: &mut Inbox,
    terminal: &Terminal,
) -> Result<(Profile, ExitStatus)> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut directory = Directory::new()?;
    adopt_orphans(terminal);
    let mut program = to_start(command, inbox, adjust);
    interposition.with_statistics(directory.path()).apply(&mut program);
    terminal.say(format_args!("running {program:?}"));
    mapped_files::watch(directory.path());
    let clock = Clock::start();
    let mut running = start(program)?;
    let tree = ProcessTree::new(interposition.any_library());
    let mut processes = Processes { leader: running.pid(), tree, cpu: (0.0, 0.0) };
    let mut poller = Poller::new(clock, POLL);
    let asked_to_end = running.wait_handing_on(inbox, POLL, || {
        let children = processes.reap_orphans();
        let files = directory.files(Subject::Locks);
        poller.sample(&files, processes.cpu_until_now(&children));
        directory.fold(&files, &mut poller);
        poller.look_beside(&mut beside);
    })?;
    let (leader, ended) = reaped(running, &words[0])?;
    let rate = clock.rate();
    let running = processes.leave_alone();
    let cache_misses = misses.map(CacheMissCounters::finish);
    let wall = ended.wall.as_secs_f64();
    let user = ended.user.as_secs_f64() + processes.cpu.0;
    let kernel = ended.kernel.as_secs_f64() + processes.cpu.1;
    let seen = beside.finish(&clock, interposition.library());
    let left = directory.read_all(&mut poller);
    let silent = left.silent(&[&running[..], &[leader.pid]].concat());
    let Left { locks: stats, others, calls, lost, .. } = left;
    // All data for the report has been read, and the directory of statistics is removed. Looking up
    // names may take its time.
    inbox.end_by_default();
    tell_lost(&lost, terminal);
    let left_by = |pid: u32, program: &Path| has_left(pid, program, (&stats, &others, &calls));
    let not_interposed = uncounted(&stats, &leader, processes.tree.outsiders(left_by));
    let seen = poller.end(wall, (user, kernel), &stats, seen);
    let run = Run {
        command: words,
        host: Host::describe(),
        exit: exit(ended.status),
        lock: interposition.lock().to_string(),
        is_interposed: !interposition.lock().is_glibc(),
        wall,
        user,
        kernel,
        rate,
        is_server: asked_to_end,
        running,
        not_interposed,
        silent,
        watched: Watched {
            others,
            cache_misses,
            system_calls: interposition.moves_calls().then(|| calls.finish(&rate)),
            ..seen
        },
    };
    Ok((assemble(run, &stats), ended.status))
}

fn tell_lost(lost: &[String], terminal: &Terminal) {
    for lost in lost {
        terminal.note(format_args!("statistics of a process are lost: {lost}"));
    }
}

/// The program, which has ended, and what it used.
fn reaped(running: Running, name: &str) -> Result<(Leader, Ended)> {
    let leader = Leader::of(&running);
    let cannot_wait = |error| Failure::failed(format!("cannot wait for '{name}': {error}"));
    Ok((leader, running.reap().map_err(cannot_wait)?))
}

/// The program as it is to be started.
fn to_start(command: &[OsString], inbox: &Inbox, adjust: impl FnOnce(&mut Command)) -> Command {
    let mut program = Command::new(&command[0]);
    adjust(program.args(&command[1..]));
    inbox.start_like_us(&mut program);
    program
}

/// Makes orphans of the program our children, so that their CPU time and their end become known. A
/// sandbox or an emulator may refuse that.
fn adopt_orphans(terminal: &Terminal) {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        terminal.note(format_args!(
            "processes that outlive their parent are left out of the CPU time: {error}"
        ));
    }
}

/// Whether a process has left statistics when it was that program.
fn has_left(
    pid: u32,
    program: &Path,
    (stats, others, calls): (&[ProcessStats], &Others, &Tally),
) -> bool {
    let of_locks = |one: &ProcessStats| one.pid == pid && one.is_program(program);
    stats.iter().any(of_locks) || others.has(pid, program) || calls.has(pid, program)
}

/// Starts the program in this command's place.
fn start(program: Command) -> Result<Running> {
    let name = program.get_program().to_string_lossy().into_owned();
    Running::foreground(program).map_err(|error| {
        Failure::bad_input(
            format!("cannot run '{name}': {error}"),
            "check that it runs without `manycore`",
        )
    })
}

/// How the program ended.
fn exit(status: ExitStatus) -> Exit {
    match status.signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Status(status.code().unwrap_or_default()),
    }
}

/// The processes below this command.
struct Processes {
    /// The program itself, which another waits for.
    leader: Pid,
    tree: ProcessTree,
    /// CPU time of adopted processes, in seconds: in user space and in the kernel.
    cpu: (f64, f64),
}

impl Processes {
    /// Polls the tree, and reaps adopted processes that have ended; returns the processes that it
    /// saw.
    fn reap_orphans(&mut self) -> Vec<Child> {
        let own = getpid().as_raw_nonzero().get() as u32;
        let children = self.tree.sample();
        for child in &children {
            let pid = Pid::from_raw(child.pid as i32).filter(|pid| *pid != self.leader);
            if child.parent == own
                && let Some(pid) = pid
            {
                self.reap(pid);
            }
        }
        children
    }

    /// CPU time of these processes and of those that have ended: in user space and in the kernel.
    fn cpu_until_now(&self, children: &[Child]) -> (f64, f64) {
        let times = children.iter().filter_map(|child| process_tree::cpu_time(child.pid));
        times.fold(self.cpu, |sum, time| (sum.0 + time.0, sum.1 + time.1))
    }

    /// Processes that still run when the program has ended. Their CPU time counts until now.
    fn leave_alone(&mut self) -> Vec<u32> {
        let deadline = Instant::now() + LAST;
        loop {
            self.reap_orphans();
            let running: Vec<_> = self
                .tree
                .sample()
                .into_iter()
                .filter(|child| !process_tree::is_zombie(child.pid))
                .collect();
            if running.is_empty() || Instant::now() >= deadline {
                for (user, kernel) in
                    running.iter().filter_map(|child| process_tree::cpu_time(child.pid))
                {
                    self.cpu = (self.cpu.0 + user, self.cpu.1 + kernel);
                }
                return running.into_iter().map(|child| child.pid).collect();
            }
            sleep(LAST / 10);
        }
    }

    /// Reaps a child if it has ended, and adds its CPU time and the CPU time of the children for
    /// which it waited.
    fn reap(&mut self, pid: Pid) {
        // SAFETY: all zero is a valid value of the structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let (raw, status) = (pid.as_raw_nonzero().get(), std::ptr::null_mut());
        // SAFETY: the status is not asked for, and the usage is written to a variable of ours.
        if unsafe { libc::wait4(raw, status, libc::WNOHANG, &raw mut usage) } == raw {
            self.cpu.0 += seconds(usage.ru_utime);
            self.cpu.1 += seconds(usage.ru_stime);
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
