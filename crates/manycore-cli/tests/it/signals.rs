//! Signals to the command while it waits for a program: all that can be are handed on, and the
//! report comes.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{compile, directory, eventually, executable, manycore, stderr};

/// The signals for which a process can have a handler: not KILL and STOP, nor the C library's two.
fn every_signal() -> impl Iterator<Item = i32> {
    (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP, 32, 33].contains(signal))
}

/// The ways in which the command waits for a program, and reports on it.
const WAYS: [&[&str]; 2] =
    [&["profile", "--samples", "no"], &["run", "--lock", "futex", "--stats"]];

fn all_signals(directory: &Path) -> PathBuf {
    compile(directory, "all_signals", include_str!("programs/all_signals.c"), &["-pthread", "-O1"])
}

fn under(way: &[&str], program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = manycore(way);
    command.arg("--").arg(program.as_ref());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a command, and waits until its program reports that it is ready. If the test fails, the
/// command is ended.
fn ready(command: &mut Command) -> (Child, Lines<BufReader<ChildStdout>>) {
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    (child, lines)
}

fn send(to: &Child, signal: i32) {
    // SAFETY: a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(to.id() as i32, signal) }, 0, "{signal}");
}

#[test]
fn every_signal_is_handed_on_and_the_report_comes() {
    let directory = directory();
    let program = all_signals(directory.path());
    for way in WAYS {
        let (mut child, mut lines) = ready(&mut under(way, &program));
        for signal in every_signal() {
            send(&child, signal);
            assert_eq!(lines.next().unwrap().unwrap(), format!("{signal} 0"), "{way:?}");
        }
        for (signal, number) in [(libc::SIGUSR1, 5), (libc::SIGRTMIN() + 3, -6)] {
            let value = libc::sigval { sival_ptr: number as usize as *mut _ };
            // SAFETY: the process is a child of this test that was not waited for, so that its
            // number is its own.
            assert_eq!(unsafe { libc::sigqueue(child.id() as i32, signal, value) }, 0);
            assert_eq!(lines.next().unwrap().unwrap(), format!("{signal} {number}"), "{way:?}");
        }
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(7), "{way:?}: {said}");
        assert!(said.contains("1 acquisition") || said.contains("all_signals"), "{said}");
        assert_eq!(lines.count(), 0, "{way:?}: a signal came twice");
    }
}

/// A program dies of each signal that kills, and so does the command, after its report.
#[test]
fn a_program_that_dies_of_a_signal_has_its_report() {
    let script = "echo ready; exec sleep 100";
    for signal in [libc::SIGUSR1, libc::SIGALRM, libc::SIGPIPE, libc::SIGSEGV, 40] {
        let mut command = under(WAYS[1], "sh");
        let (child, _lines) = ready(command.args(["-c", script]));
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{}", stderr(&output));
        assert!(stderr(&output).contains("futex: "), "no report: {}", stderr(&output));
    }
}

fn mask(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says so");
    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
}

/// With the command, a program has the same dispositions as `nohup` and careless parents leave to
/// it; and signals are passed on nevertheless.
#[test]
fn signals_ignored_and_blocked_are_the_programs_own() {
    let directory = directory();
    let show = executable(directory.path(), "show", "#!/bin/sh\nexec cat /proc/self/status\n");
    let run: &[&str] = &["run", "--lock", "futex"];
    let masks = |mut command: Command| {
        // SAFETY: system calls, in the child, on a variable of its own.
        unsafe {
            command.pre_exec(|| {
                // As `manycore()` does, however the tests were started.
                for usual in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
                    libc::signal(usual, libc::SIG_DFL);
                }
                for ignored in [libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR1] {
                    libc::signal(ignored, libc::SIG_IGN);
                }
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, libc::SIGUSR2);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
                Ok(())
            });
        }
        let output = command.output().unwrap();
        let status = String::from_utf8_lossy(&output.stdout);
        (mask(&status, "SigIgn"), mask(&status, "SigBlk"))
    };
    let alone = masks(Command::new(&show));
    for signal in [libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR1] {
        assert_ne!(alone.0 & 1 << (signal - 1), 0, "{signal}");
    }
    for way in [WAYS[0], WAYS[1], run] {
        assert_eq!(masks(under(way, &show)), alone, "{way:?}");
    }
}

fn state(process: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

/// A shell sees a job stop when the job's program does.
#[test]
fn the_command_stops_and_goes_on_with_its_program() {
    for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        let mut command = under(WAYS[1], "sh");
        command.args(["-c", "echo ready; while :; do sleep 0.01; done"]);
        // Like a shell's job: a process in no job of a session is not stopped by these signals.
        command.process_group(0);
        let (child, _lines) = ready(&mut command);
        let list = format!("/proc/{0}/task/{0}/children", child.id());
        let program: u32 = fs::read_to_string(list).unwrap().trim().parse().unwrap();
        send(&child, signal);
        eventually("both stop", || (state(program), state(child.id())) == ('T', 'T'));
        send(&child, libc::SIGCONT);
        eventually("both go on", || state(program) != 'T' && state(child.id()) != 'T');
        send(&child, libc::SIGTERM);
        assert_eq!(child.wait_with_output().unwrap().status.signal(), Some(libc::SIGTERM));
    }
}

/// A signal that is not for a program ends the command itself in an orderly way, and leaves none of
/// its processes.
#[test]
fn compare_ends_in_order_by_each_signal_that_ends() {
    for signal in [libc::SIGUSR1, libc::SIGALRM, libc::SIGTERM, 50] {
        let word = crate::support::long_time();
        let script = format!("exec sleep {word}");
        let arguments = ["compare", "-q", "--lock", "futex", "--", "sh", "-c", &script];
        let mut command = manycore(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the program runs", || crate::support::runs(&word));
        send(&child, signal);
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        assert!(!crate::support::runs(&word), "{signal}: the program is left behind");
    }
}
