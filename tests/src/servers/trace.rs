//! Which thread makes a call, as strace sees it.
//!
//! A process of Apache prefork has one thread of its own, the first, whose number is the process's.
//! If that thread no longer makes certain calls, other threads make them, since the pages still
//! arrive. No tool shows the kernel's own thread of an io_uring.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::GRACE;
use crate::child::{self, End};
use crate::soak::process::Process;
use crate::soak::{Failure, Result, ensure, hang, installed};

/// The calls on sockets that Apache prefork makes for a request.
pub const CALLS: &str = "accept4,read,writev,shutdown,poll,close,fcntl";

/// How often the first thread of a process made calls, and how often others did.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// By name of the call: the number by the first thread, and the number by others.
    pub calls: BTreeMap<String, (u64, u64)>,
}

impl Seen {
    /// How many calls other threads have made.
    pub fn others(&self) -> u64 {
        self.calls.values().map(|counts| counts.1).sum()
    }

    /// How many calls the first threads have made.
    pub fn own(&self) -> u64 {
        self.calls.values().map(|counts| counts.0).sum()
    }
}

/// The calls on sockets that send and receive data.
const ALL_CALLS: &str = "accept,accept4,read,readv,preadv2,recvfrom,recvmsg,recvmmsg,write,writev,pwritev2,sendto,sendmsg,sendmmsg,setsockopt,getsockname,connect,bind,listen,shutdown,close";

/// Runs a program of one process under strace.
pub fn run(program: &Command) -> Result<Seen> {
    let place = tempfile::tempdir().map_err(Failure::because("a temporary directory"))?;
    let output = place.path().join("trace");
    let mut command = Command::new(installed("strace", "strace")?);
    command.args(["-f", "-yy", "-qq", "-e", &format!("trace={ALL_CALLS}")]).arg("-o").arg(&output);
    // What is for the program is not for strace.
    for (name, value) in program.get_envs() {
        let mut setting = name.to_owned();
        if let Some(value) = value {
            setting.push("=");
            setting.push(value);
        }
        command.arg("-E").arg(setting).env_remove(name);
    }
    command.arg("--").arg(program.get_program()).args(program.get_args());
    let outcome = child::run(&mut command, "", 2 * GRACE);
    let is_success = matches!(outcome.end, End::Exited(status) if status.success());
    ensure(is_success, || format!("strace: {}: {}", outcome.end, outcome.stderr))?;
    let text = fs::read_to_string(&output).map_err(Failure::because("what strace saw"))?;
    // Its first thread makes the first call, to load its libraries.
    let first = text.split_whitespace().next().unwrap_or_default();
    Ok(count(&text, &[first]))
}

/// Lets strace watch the children of a process while `load` runs, including the children that the
/// process creates meanwhile.
pub fn watch(server: u32, place: &Path, load: impl FnOnce() -> Result<()>) -> Result<Seen> {
    let strace = installed("strace", "strace")?;
    let mut processes = children(server)?;
    // strace follows the process that creates the children, and so it follows them. The process
    // itself makes no calls on sockets.
    processes.push(server.to_string());
    let output = place.join("trace");
    let mut command = Command::new(strace);
    // -yy: sockets are told from files.
    command.args(["-f", "-yy", "-qq", "-e", &format!("trace={CALLS}")]).arg("-o").arg(&output);
    for process in &processes {
        command.args(["-p", process]);
    }
    let tracer = Process::start("strace", &mut command, place)?;
    let blame = |failure| tracer.blame(failure);
    await_tracer(&processes).map_err(blame)?;
    let loaded = load();
    processes.extend(children(server)?);
    // strace detaches from the children when it is told to end.
    _ = tracer.stop(Duration::from_secs(20))?;
    loaded?;
    let text = fs::read_to_string(&output).map_err(Failure::because("what strace saw"))?;
    let processes: Vec<&str> = processes.iter().map(String::as_str).collect();
    Ok(count(&text, &processes))
}

/// Waits until all threads of some processes are traced.
fn await_tracer(processes: &[String]) -> Result<()> {
    let deadline = Instant::now() + GRACE;
    let is_traced = |thread: PathBuf| {
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    };
    let all_are = |process: &String| {
        let threads = fs::read_dir(Path::new("/proc").join(process).join("task"));
        threads.is_ok_and(|mut threads| threads.all(|t| t.is_ok_and(|t| is_traced(t.path()))))
    };
    while !processes.iter().all(all_are) {
        ensure(Instant::now() < deadline, || "strace does not attach".to_owned())?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The children of a process, of which there has to be at least one.
pub fn children(process: u32) -> Result<Vec<String>> {
    let list = hang::children(process);
    ensure(!list.is_empty(), || "the server has no children".to_owned())?;
    Ok(list.iter().map(u32::to_string).collect())
}

/// Counts lines such as `123 read(9<TCP:[127.0.0.1:80->127.0.0.1:4242]>, ...`.
fn count(text: &str, children: &[&str]) -> Seen {
    let mut seen = Seen::default();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        // The end of a call that began on another line.
        if call.starts_with('<') {
            continue;
        }
        let Some((name, arguments)) = call.split_once('(') else { continue };
        if !arguments.contains("<TCP") && !arguments.contains("<socket:") {
            continue;
        }
        let counts = seen.calls.entry(name.to_owned()).or_default();
        match children.contains(&thread) {
            true => counts.0 += 1,
            false => counts.1 += 1,
        }
    }
    seen
}

#[test]
fn calls_on_sockets_are_counted_by_thread() {
    let text = "\
17 read(9<TCP:[127.0.0.1:80->127.0.0.1:4242]>, \"GET\", 8000) = 3
19 writev(9<TCP:[127.0.0.1:80->127.0.0.1:4242]>, [...], 2) = 300
17 read(5</etc/passwd>, \"\", 10) = 0
19 <... poll resumed>) = 1
";
    let seen = count(text, &["17"]);
    assert_eq!(seen.calls["read"], (1, 0));
    assert_eq!(seen.calls["writev"], (0, 1));
    assert_eq!(seen.own(), 1);
}
