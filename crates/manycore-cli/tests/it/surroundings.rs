//! Programs in surroundings unlike a shell's: limits, changing files, cleared environments, other
//! ways to start them.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{compile, directory, manycore, stderr, stdout};
use manycore_profile::profile::Profile;

/// Takes a lock from four threads.
const LOCKS: &str = r"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *body(void *unused) {
    for (int i = 0; i < 200; i++) { pthread_mutex_lock(&lock); usleep(10); pthread_mutex_unlock(&lock); }
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";

fn locks(directory: &Path) -> PathBuf {
    compile(directory, "locks", LOCKS, &["-O1", "-pthread"])
}

fn profile(arguments: &[&str]) -> Command {
    let mut command = manycore(&["profile", "--samples", "no"]);
    command.arg("--").args(arguments).stdin(Stdio::null());
    command
}

/// Runs this command on a terminal without a size, as a serial console is.
fn on_a_terminal_without_a_size(arguments: &str) -> String {
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_manycore"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").stdin(Stdio::null());
    stdout(&command.output().expect("Debian's base has script"))
}

#[test]
fn a_terminal_that_does_not_know_its_size_has_tables_that_can_be_read() {
    let locks = on_a_terminal_without_a_size("locks");
    assert!(locks.lines().any(|line| line.starts_with("adaptive ")), "{locks}");
    let top = on_a_terminal_without_a_size("top -- true");
    assert!(top.contains("stty rows 24 cols 80"), "{top}");
}

fn in_shell(script: &str) -> Command {
    profile(&["sh", "-c", script])
}

/// With a limit on its time: a failure here would wait for ever.
fn within(limit: Duration, command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("it does not end\n{}", stderr(&output));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

const LONG: Duration = Duration::from_secs(100);

#[test]
fn a_file_that_becomes_a_pipe_is_not_waited_for() {
    let directory = directory();
    let program = locks(directory.path());
    let script = format!(
        "cp {0} {0}.victim; {0}.victim & sleep 0.02; rm {0}.victim; mkfifo {0}.victim; wait",
        program.display()
    );
    let output = within(LONG, &mut in_shell(&script));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("Locks, most waited first"), "{}", stderr(&output));
    // The command checks the program that it is to run, too.
    let pipe = directory.path().join("locks.victim");
    let output = within(LONG, &mut profile(&[pipe.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

/// Statistics take address space only as they are used, so the program has as much as without them.
#[test]
fn a_limited_address_space_is_the_programs() {
    let directory = directory();
    let source = r"
        #include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        int main(int count, char **arguments) {
            if (count > 1 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
            char *memory = malloc(40 << 20);
            if (memory) memset(memory, 1, 40 << 20);
            return memory ? 3 : 4;
        }";
    let program = compile(directory.path(), "memory", source, &["-O0", "-pthread"]);
    let script = format!("ulimit -v 80000; exec {}", program.display());
    let output = in_shell(&script).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("lock") && said.contains("Locks, most waited first"), "{said}");
    let locked = profile(&[program.to_str().unwrap(), "locked"]).output().unwrap();
    assert!(matches!(locked.status.code(), Some(3 | 77)), "{}", stderr(&locked));
}

/// More of everything than the initial mapping has room for: nothing is lost.
#[test]
fn statistics_grow_with_their_use() {
    let directory = directory();
    let source = r"
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        #include <sys/wait.h>
        enum { LOCKS = 5000, THREADS = 60 };
        static pthread_mutex_t many[LOCKS];
        static pthread_barrier_t all;
        static void use(void) { for (int i = 0; i < LOCKS; i++) { pthread_mutex_lock(&many[i]); pthread_mutex_unlock(&many[i]); } }
        static void *body(void *unused) { use(); pthread_barrier_wait(&all); return unused; }
        int main(void) {
            pthread_t threads[THREADS];
            pthread_barrier_init(&all, 0, THREADS);
            for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, body, 0);
            for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
            pid_t child = fork();
            if (child == 0) { use(); exit(0); }
            int status;
            waitpid(child, &status, 0);
            return status != 0;
        }";
    let program = compile(directory.path(), "grows", source, &["-O1", "-pthread"]);
    let json = directory.path().join("p.json");
    let mut command = manycore(&["profile", "--samples", "no", "--json"]);
    let output = command.arg(&json).arg("--").arg(&program).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let profile: Profile = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let acquired: u64 = profile.locks.iter().map(|lock| lock.acquired).sum();
    assert_eq!(acquired, 5000 * 60 + 5000);
    let unrecorded: u64 = profile.processes.iter().map(|process| process.unrecorded).sum();
    assert_eq!(unrecorded, 0);
}

/// If something was not counted, the report says nothing about it.
#[test]
fn a_program_that_left_the_library_is_not_judged() {
    let directory = directory();
    let program = locks(directory.path());
    let program = program.to_str().unwrap();
    let judged = "used no pthread lock: other locks cannot help";
    let commands = [
        profile(&["env", "-i", program]),
        in_shell(&format!("env -i {program}")),
        in_shell(&format!("env -i {program}; true")),
        in_shell(&format!("(unset LD_PRELOAD; {program}) & wait; true")),
    ];
    for mut command in commands {
        let output = command.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {said}");
        assert!(!said.contains(judged), "{command:?}: {said}");
    }
    let output = profile(&["env", "-i", program]).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("locks: the library was not"), "named, with the reason: {said}");
    // One that was seen to its end is judged.
    let said = stderr(&profile(&["true"]).output().unwrap());
    assert!(said.contains(judged), "{said}");
}

/// A server that has changed its root directory forks children that cannot make their files.
#[test]
fn children_without_statistics_are_counted_as_such() {
    let directory = directory();
    let source = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        int main(int count, char **arguments) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
            if (chroot(arguments[1]) != 0 || chdir("/") != 0) return 77;
            for (int i = 0; i < 2; i++) {
                if (fork() == 0) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); exit(0); }
                wait(0);
            }
            return 0;
        }"#;
    let program = compile(directory.path(), "server", source, &["-O1", "-pthread"]);
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let output = profile(&[program.to_str().unwrap(), root.to_str().unwrap()]).output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!(
            "skipped: children_without_statistics_are_counted_as_such (chroot is not permitted)"
        );
        return;
    }
    let said = stderr(&output);
    assert!(said.contains("2 children that it forked could make no file for statistics"), "{said}");
    assert!(said.contains("of what was counted"), "{said}");
}

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

#[test]
fn the_dynamic_linker_as_a_command_runs_its_program() {
    let directory = directory();
    let program = locks(directory.path());
    let program = program.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = manycore(&["run", "--lock", "futex", "--stats", "--", LOADER]);
        command.args(arguments).output().unwrap()
    };
    for arguments in [&[program][..], &["--inhibit-cache", "--argv0", "x", program]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("800 acquisitions"), "{}", stderr(&output));
    }
    for arguments in [&["--list", program][..], &[]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("not told to run a program"), "{}", stderr(&output));
    }
    // The true reason, not that of the linker.
    let text = compile(directory.path(), "static", "int main(void) { return 0; }", &["-static"]);
    let output = run(&[text.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("static' (run by") || stderr(&output).contains("statically"));
}

/// As the book says: a program of musl's does not start with a library of glibc's in LD_PRELOAD, so
/// it runs without.
#[test]
fn a_musl_program_that_a_program_starts_needs_an_environment_without_the_library() {
    let directory = directory();
    let source = directory.path().join("musl.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 0; }")
        .unwrap();
    let program = directory.path().join("musl");
    let made = Command::new("musl-gcc").arg(&source).arg("-o").arg(&program).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!(
            "skipped: a_musl_program_that_a_program_starts (no musl-gcc: apt-get install musl-tools)"
        );
        return;
    }
    let run = |script: String| {
        let mut command = manycore(&["run", "--lock", "futex", "--", "sh", "-c", &script]);
        command.output().unwrap()
    };
    let refused = run(program.display().to_string());
    assert_eq!(refused.status.code(), Some(127), "{}", stderr(&refused));
    let output = run(format!("env -u LD_PRELOAD {}", program.display()));
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "ran\n"));
}

/// User time of a program, in seconds: it does not depend on other load.
#[allow(clippy::zombie_processes, reason = "wait4 reaps it, and says what it used")]
fn user_time(command: &mut Command) -> f64 {
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let child = command.spawn().unwrap();
    // SAFETY: all zero is a valid value; the call writes to variables of this frame, about a child
    // for which no other code waits.
    let (usage, status) = unsafe {
        let (mut usage, mut status) = (std::mem::zeroed::<libc::rusage>(), 0);
        assert!(libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) > 0);
        (usage, status)
    };
    assert_eq!(std::process::ExitStatus::from_raw(status).code(), Some(0));
    usage.ru_utime.tv_sec as f64 + usage.ru_utime.tv_usec as f64 / 1e6
}

/// A program that creates a lock for each object: a microsecond for each would be forty times its
/// own time.
#[test]
fn making_many_locks_is_cheap() {
    let directory = directory();
    let source = r"
        #include <pthread.h>
        #include <stdlib.h>
        static __attribute__((noinline)) pthread_mutex_t *make(void) {
            pthread_mutex_t *lock = malloc(sizeof *lock);
            pthread_mutex_init(lock, 0);
            return lock;
        }
        int main(void) {
            for (int i = 0; i < 1000000; i++) {
                pthread_mutex_t *lock = make();
                pthread_mutex_lock(lock);
                pthread_mutex_unlock(lock);
                pthread_mutex_destroy(lock);
                free(lock);
            }
            return 0;
        }";
    let program = compile(directory.path(), "makes", source, &["-O1", "-pthread"]);
    let place = tempfile::tempdir().unwrap();
    let least = |make: &dyn Fn() -> Command| {
        (0..3).map(|_| user_time(&mut make())).fold(f64::INFINITY, f64::min)
    };
    let alone = least(&|| Command::new(&program));
    let counted = least(&|| {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", crate::support::library()).env("MANYCORE_STATS", place.path());
        command
    });
    assert!(counted < 10.0 * alone.max(0.01), "{counted} s, alone {alone} s");
}
