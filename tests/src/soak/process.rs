//! A program that runs at the same time as the test, with its output in files. It leaves nothing
//! behind.
//!
//! Each program leads a process group of its own. It is told to end, and killed, by its number,
//! which remains its own until we reap it. If the test itself is killed, the kernel kills the
//! processes that the test started.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group,
    set_parent_process_death_signal, waitid,
};

use super::{Failure, Result, hang};

/// The time between two checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);
/// Lines of a program's output that go into a failure.
const TAIL_LINES: usize = 12;

/// A program that was started.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts a program, which reads nothing and writes to `place/NAME.out` and `NAME.err`.
    pub fn start(name: &str, command: &mut Command, place: &Path) -> Result<Self> {
        let [stdout, stderr] = ["out", "err"].map(|end| place.join(format!("{name}.{end}")));
        let create = |path| File::create(path).map_err(Failure::because("a file for output"));
        command.stdin(Stdio::null()).stdout(create(&stdout)?).stderr(create(&stderr)?);
        let child = spawn(command)?;
        let pid = Pid::from_child(&child);
        Ok(Self { name: name.to_owned(), child, pid, stdout, stderr })
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> Result<bool> {
        // The program is not reaped yet. The processes that it started are killed by its group's
        // number, which has to remain its own until then.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), look);
        Ok(status.map_err(Failure::because("cannot look at a child"))?.is_some())
    }

    /// Waits for the program's end, for this long at most; returns whether it has ended.
    pub fn ends_within(&self, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + limit;
        while !self.has_ended()? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(LOOK);
        }
        Ok(true)
    }

    /// Tells the program to end by SIGTERM. A process that does not end within `grace` hangs: it is
    /// killed, and that is a failure.
    pub fn stop(self, grace: Duration) -> Result<ExitStatus> {
        if !self.has_ended()? {
            // The process is our child and not reaped: the number is its own, even if it ends at
            // this moment.
            kill_process(self.pid, Signal::TERM)
                .map_err(Failure::because("cannot send SIGTERM"))?;
        }
        self.finish(grace)
    }

    /// Waits for the program's end and returns its exit. A process that does not end within `limit`
    /// hangs, as in [`stop`](Self::stop).
    pub fn finish(mut self, limit: Duration) -> Result<ExitStatus> {
        if !self.ends_within(limit)? {
            return Err(self.hangs(&format!("has not ended within {} s", limit.as_secs())));
        }
        self.kill();
        self.child.wait().map_err(Failure::because("cannot wait for a child"))
    }

    /// A failure that describes the waits of the program's threads. The program is killed.
    pub fn hangs(&self, how: &str) -> Failure {
        let threads = hang::account(self.id());
        self.kill();
        Failure::new(format!("{} {how}", self.name)).with("its threads", &threads)
    }

    /// Kills it and what it has started.
    pub fn kill(&self) {
        // Fails only when nothing of the group is left.
        _ = kill_process_group(self.pid, Signal::KILL);
    }

    /// The whole output: standard output, then standard error.
    pub fn said(&self) -> String {
        self.stdout() + &self.stderr()
    }

    /// What it has written to standard output.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// What it has written to standard error.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// How many bytes it has written to standard output.
    pub fn written(&self) -> u64 {
        fs::metadata(&self.stdout).map_or(0, |data| data.len())
    }

    /// A failure with the last that the program said.
    pub fn blame(&self, failure: Failure) -> Failure {
        failure.with(&format!("{} said last", self.name), &tail(&self.said()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
            // The program is dead or dying, and an error cannot be reported.
            _ = self.child.wait();
        }
    }
}

/// Starts a program in a group of its own that does not outlive the thread that starts it.
pub fn spawn(command: &mut Command) -> Result<Child> {
    command.process_group(0);
    // SAFETY: the closure makes one system call and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let started = command.spawn();
    started.map_err(Failure::because(format!("cannot start {:?}", command.get_program())))
}

/// The last lines of a text.
pub fn tail(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn read(path: &Path) -> String {
    fs::read(path).map_or_else(|_| String::new(), |text| String::from_utf8_lossy(&text).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::place;

    fn shell(script: &str, place: &Path) -> Process {
        Process::start("sh", Command::new("sh").args(["-c", script]), place).unwrap()
    }

    #[test]
    fn ends_when_asked() {
        let place = place().unwrap();
        let process = shell(
            "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done",
            place.path(),
        );
        while process.written() == 0 {
            thread::sleep(LOOK);
        }
        let status = process.stop(Duration::from_secs(10)).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(read(&place.path().join("sh.out")), "up\nbye\n");
    }

    #[test]
    fn one_that_does_not_end_is_described_and_killed() {
        let place = place().unwrap();
        let process = shell("trap '' TERM; echo up; exec sleep 1000", place.path());
        while process.written() == 0 {
            thread::sleep(LOOK);
        }
        let pid = process.id();
        let failure = process.stop(Duration::from_millis(100)).unwrap_err().to_string();
        assert!(failure.contains("sh has not ended") && failure.contains(" sleep S "), "{failure}");
        assert!(!Path::new("/proc").join(pid.to_string()).exists());
    }

    #[test]
    fn nothing_stays_behind() {
        let place = place().unwrap();
        let process = shell("sleep 1000 & echo $!; wait", place.path());
        while process.written() == 0 {
            thread::sleep(LOOK);
        }
        let grandchild = Path::new("/proc").join(process.stdout().trim()).join("syscall");
        assert!(grandchild.exists());
        drop(process);
        let deadline = Instant::now() + Duration::from_secs(10);
        // A dead process whose parent has not reaped it is in no system call.
        while fs::read(&grandchild).is_ok_and(|call| !call.is_empty()) {
            assert!(Instant::now() < deadline, "the grandchild lives");
            thread::sleep(LOOK);
        }
    }
}
