//! The command under test, and programs for it to run.

pub mod real;
pub mod watched;

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A directory for a test's files.
pub fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The command, with the preload library of the same build.
pub fn manycore(arguments: &[&str]) -> Command {
    let mut command = bare_manycore();
    command.args(arguments).env("MANYCORE_PRELOAD", library());
    command
}

/// The command. Signals end it, however the tests were started: under `nohup`, or in a background
/// job of a shell, it would ignore some of them, and so would the programs that it runs.
pub fn bare_manycore() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.env_remove("LD_PRELOAD");
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

/// The preload library of the same build as the command. Cargo does not build it for these tests,
/// because this crate does not link it.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("manycore-preload", "libmanycore_preload.so"))
}

/// The library for system calls, built at the first use.
pub fn calls_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("manycore-syscalls", "libmanycore_syscalls.so"))
}

fn build(package: &str, product: &str) -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_manycore")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let profile =
        if beside.ends_with("debug") { "dev".as_ref() } else { beside.file_name().unwrap() };
    cargo.args(["build", "--quiet", "--locked", "-p", package, "--target-dir"]);
    cargo.arg(beside.parent().unwrap()).arg("--profile").arg(profile);
    assert!(cargo.status().expect("cargo runs").success(), "{package} does not build");
    beside.join(product)
}

/// A library that loads and does nothing.
pub fn empty_library(directory: &Path) -> PathBuf {
    compile(directory, "libmanycore_preload.so", "", &["-shared", "-fPIC"])
}

/// Compiles a C program.
pub fn compile(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let input = directory.join(format!("{name}.c"));
    fs::write(&input, source).unwrap();
    let output = directory.join(name);
    let done =
        Command::new("cc").args(flags).arg("-o").args([&output, &input]).output().expect("cc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    output
}

/// Writes an executable file.
pub fn executable(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let (input, output) = (directory.join(format!("{name}.in")), directory.join(name));
    fs::write(&input, content).unwrap();
    copy(&input, &output);
    fs::remove_file(input).unwrap();
    output
}

/// Copies a file to an executable one, in another process. If this process had the file open for
/// writing, a child that another test starts meanwhile would also have it open, and then the file
/// could not be executed.
pub fn copy(from: &Path, to: &Path) {
    let done = Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap();
    assert!(done.success());
}

/// What a command printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Says in the log of the tests that a test cannot be run here.
pub fn skipped(why: impl Display) {
    say("skipped", why);
}

/// Says so of a part of a test.
pub fn skipped_in_part(why: impl Display) {
    say("skipped in part", why);
}

fn say(what: &str, why: impl Display) {
    let line = format!("{what}: {}\n", why.to_string().trim_end());
    // Past the test harness, which keeps what passing tests print.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// What a command said.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command that has to succeed; what it printed.
pub fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{:?}\n{}", output.status, stderr(&output));
    stdout(&output)
}

/// Runs a command that has to fail with this status; returns its output.
pub fn failure(status: i32, command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(stdout(&output), "");
    stderr(&output)
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A unique number of seconds for `sleep`, by which [`runs`] finds that process: it is not the
/// process of another test, nor an earlier one of the same test, nor any other on the machine.
pub fn long_time() -> String {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let number = TAKEN.fetch_add(1, Ordering::Relaxed); // Relaxed: only distinct
    format!("{}.{:07}", 900 + number, std::process::id())
}

/// Whether a process with this word among its arguments runs.
pub fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.map(|process| process.path().join("cmdline")).any(|path| {
        let words = fs::read(path).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}
