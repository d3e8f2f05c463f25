//! A program under observation: started with statistics on, watched while it runs, read when it has ended.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use manycore_kernel_trace::{Sampler, Seen, Watch};
use manycore_measure::Host;
use manycore_profile::analyze::assemble::{self, Run, assemble};
use manycore_profile::analyze::groups::overflow_processes::Others;
use manycore_profile::analyze::offloaded_calls::Tally;
use manycore_profile::analyze::process::ProcessStats;
use manycore_profile::clock::Clock;
use manycore_profile::profile::{Exit, Profile};
use rustix::process::{Pid, getpid, set_child_subreaper};

use crate::profile::directory::{Directory, Left, Subject};
use crate::profile::looks::Looks;
use crate::profile::mapped;
use crate::profile::samples;
use crate::profile::tree::{self, Child, Tree};
use crate::profile::uncounted::{Leader, uncounted};
use manycore_launch::child::{Ended, Running};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;

/// How often the processes are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long children that end with the program may take to do so.
const LAST: Duration = Duration::from_millis(200);

/// Runs a program in this command's place and gives its profile, and how it ended.
///
/// `adjust` has the last word on how it is started. Signals that come to the inbox are handed on, so that a server that is stopped
/// has its profile, too; when the program has ended, the inbox has the command end by them.
pub fn observe(
    command: &[OsString],
    interposition: &Interposition,
    adjust: impl FnOnce(&mut Command),
    inbox: &mut Inbox,
    terminal: &Terminal,
) -> Result<(Profile, ExitStatus)> {
    let (profile, _, status) =
        observe_watched(command, interposition, adjust, (None, None), inbox, terminal)?;
    Ok((profile, status))
}

/// The same, while the kernel is watched and CPU time is sampled, too: what they see of the program's own side is in the profile, the
/// rest beside it.
pub fn observe_watched(
    command: &[OsString],
    interposition: &Interposition,
    adjust: impl FnOnce(&mut Command),
    (mut watch, mut sampler): (Option<Watch>, Option<std::result::Result<Sampler, String>>),
    inbox: &mut Inbox,
    terminal: &Terminal,
) -> Result<(Profile, Option<Seen>, ExitStatus)> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut directory = Directory::new()?;
    adopt_orphans()?;
    let mut program = to_start(command, inbox, adjust);
    interposition.with_statistics(directory.path()).apply(&mut program);
    terminal.say(format_args!("running {program:?}"));
    mapped::watch(directory.path());
    let clock = Clock::start();
    let mut running = start(program)?;
    let tree = Tree::new(interposition.any_library());
    let mut tree = Watched { leader: running.pid(), tree, cpu: (0.0, 0.0) };
    let mut looks = Looks::new(clock, LOOK);
    let asked_to_end = running.wait_handing_on(inbox, LOOK, || {
        let children = tree.reap_orphans();
        let files = directory.files(Subject::Locks);
        looks.look(&files, tree.cpu_until_now(&children));
        directory.fold(&files, &mut looks);
        watch.iter_mut().for_each(|watch| looks.look_at_futexes(watch));
        sampler.iter_mut().flatten().for_each(Sampler::look);
    })?;
    let (leader, ended) = reaped(running, &words[0])?;
    let rate = clock.rate();
    let running = tree.leave_alone();
    let samples = samples::finish(sampler, clock.elapsed(), interposition.library());
    let mut futexes = watch.as_mut().map(Watch::futexes).unwrap_or_default();
    // Before names are looked for, which takes long: the watch lasts as long as the program.
    let seen = watch.map(Watch::finish);
    futexes.library = interposition.library().map(Into::into);
    let left = directory.read_all(&mut looks);
    let silent = left.silent(&[&running[..], &[leader.pid]].concat());
    let Left { locks: stats, others, calls, lost, .. } = left;
    // All is there that the report needs, and the place of statistics is gone: who does not want to wait for names need not.
    inbox.end_by_default();
    tell_lost(&lost, terminal);
    let wall = ended.wall.as_secs_f64();
    let (user, kernel) =
        (ended.user.as_secs_f64() + tree.cpu.0, ended.kernel.as_secs_f64() + tree.cpu.1);
    let left_by = |pid: u32, program: &Path| has_left(pid, program, (&stats, &others, &calls));
    let run = Run {
        command: words,
        host: Host::describe(),
        exit: exit(ended.status),
        lock: interposition.lock().to_string(),
        wall,
        user,
        kernel,
        rate,
        is_server: asked_to_end,
        running,
        not_interposed: uncounted(&stats, &leader, tree.tree.outsiders(left_by)),
        silent,
        watched: assemble::Watched {
            others,
            samples,
            ..looks.end(wall, (user, kernel), &stats, futexes)
        },
    };
    let mut profile = assemble(run, &stats);
    profile.system_calls = interposition.moves_calls().then(|| calls.finish(&rate));
    Ok((profile, seen, ended.status))
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

/// Orphans of the program become our children: so their time is known, and when they end.
fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid()))
        .map_err(|error| Failure::failed(format!("cannot adopt orphans: {error}")))
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
struct Watched {
    /// The program itself, which another waits for.
    leader: Pid,
    tree: Tree,
    /// CPU time, in seconds, of adopted processes: in user space and in the kernel.
    cpu: (f64, f64),
}

impl Watched {
    /// Looks at the tree, and takes leave of adopted processes that have ended; gives the processes that it saw.
    fn reap_orphans(&mut self) -> Vec<Child> {
        let own = getpid().as_raw_nonzero().get() as u32;
        let children = self.tree.look();
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
        let times = children.iter().filter_map(|child| tree::cpu_time(child.pid));
        times.fold(self.cpu, |sum, time| (sum.0 + time.0, sum.1 + time.1))
    }

    /// What still runs when the program has ended; its CPU time counts until now.
    fn leave_alone(&mut self) -> Vec<u32> {
        let deadline = Instant::now() + LAST;
        loop {
            self.reap_orphans();
            let running: Vec<_> =
                self.tree.look().into_iter().filter(|child| !tree::is_zombie(child.pid)).collect();
            if running.is_empty() || Instant::now() >= deadline {
                for (user, kernel) in running.iter().filter_map(|child| tree::cpu_time(child.pid)) {
                    self.cpu = (self.cpu.0 + user, self.cpu.1 + kernel);
                }
                return running.into_iter().map(|child| child.pid).collect();
            }
            sleep(LAST / 10);
        }
    }

    /// Reaps a child if it has ended, and adds its CPU time and that of the children it waited for.
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
