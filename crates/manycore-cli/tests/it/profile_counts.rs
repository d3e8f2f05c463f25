//! `manycore profile` counts exactly, whatever end a program takes and however many processes it
//! is.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::real::{named, profile};
use crate::support::{compile, directory, library, skipped, skipped_in_part};
use serde_json::json;

const THREADS: u64 = 6;
const ROUNDS: u64 = 5_000;

/// Threads that take each of the locks this many times. The program's end is a parameter.
const THREADED: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { THREADS = 6, ROUNDS = 5000, LOCKS = 3 };
static pthread_mutex_t locks[LOCKS];
static pthread_mutex_t *on_heap;
static pthread_barrier_t done;
static long counted[LOCKS];
static void *work(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LOCKS; i++) {
            pthread_mutex_lock(&locks[i]);
            counted[i]++;
            pthread_mutex_unlock(&locks[i]);
        }
        if (pthread_mutex_trylock(on_heap) != 0) pthread_mutex_lock(on_heap);
        pthread_mutex_unlock(on_heap);
    }
    pthread_barrier_wait(&done);
    for (;;) pause();
}
int main(int argc, char **argv) {
    pthread_t thread;
    on_heap = malloc(sizeof *on_heap);
    pthread_mutex_init(on_heap, NULL);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&done);
    for (int i = 0; i < LOCKS; i++) if (counted[i] != THREADS * ROUNDS) return 99;
    const char *end = argv[1];
    if (!strcmp(end, "return")) return 0;
    if (!strcmp(end, "exit")) exit(3);
    if (!strcmp(end, "_exit")) _exit(4);
    if (!strcmp(end, "abort")) abort();
    if (!strcmp(end, "crash")) *(volatile int *)8 = 1;
    if (!strcmp(end, "kill")) kill(getpid(), SIGKILL);
    return 98;
}
"#;

fn compiled(source: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = directory();
    let program = compile(directory.path(), "subject", source, &["-pthread"]);
    (directory, program)
}

#[test]
fn every_acquisition_is_counted_whatever_the_end() {
    let (_directory, program) = compiled(THREADED);
    let program = program.to_str().unwrap();
    for (end, status, exit, how) in [
        ("return", (Some(0), None), json!({"status": 0}), "exited"),
        ("exit", (Some(3), None), json!({"status": 3}), "exited"),
        ("_exit", (Some(4), None), json!({"status": 4}), "cut-short"),
        ("abort", (None, Some(6)), json!({"signal": 6}), "cut-short"),
        ("crash", (None, Some(11)), json!({"signal": 11}), "cut-short"),
        ("kill", (None, Some(9)), json!({"signal": 9}), "cut-short"),
    ] {
        let profiled = profile(&[program, end]);
        let ended = profiled.output.status;
        assert_eq!((ended.code(), ended.signal()), status, "{end}");
        assert_eq!(profiled.json["exit"], exit, "{end}");
        assert_eq!(profiled.json["command"], json!([program, end]));
        for name in ["locks (", "locks+0x28 (", "locks+0x50 (", "main+"] {
            let lock = profiled.lock(name);
            assert_eq!(lock["acquired"], json!(THREADS * ROUNDS), "{end}: {lock:#}");
            assert_eq!(lock["exclusive"], lock["acquired"]);
            assert_eq!((&lock["kind"], &lock["shared"]), (&json!("mutex"), &json!(0)));
        }
        assert_eq!(profiled.names().len(), 4, "{:?}", profiled.names());
        let [process] = profiled.processes() else { panic!("{:#}", profiled.json) };
        assert_eq!((&process["end"], &process["threads"]), (&json!(how), &json!(THREADS)));
        assert_eq!(process["program"], "subject");
    }
}

/// Each process takes the lock as many times as its argument says; `f` and `e` fork and execute the
/// next argument, `s` says so and sleeps.
const TREE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(int argc, char **argv) {
    for (int at = 1; at < argc; at++) {
        if (*argv[at] == 'f') {
            if (fork() == 0) continue;
            int status;
            wait(&status);
            return WEXITSTATUS(status);
        }
        if (*argv[at] == 's') sleep(puts("sleeps") < 0 || fflush(stdout) ? 0 : 10);
        if (*argv[at] == 'e') {
            argv[at] = argv[0];
            execv(argv[0], argv + at);
        }
        for (int i = atoi(argv[at]); i > 0; i--) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
    }
    _exit(7);
}
"#;

#[test]
fn a_tree_of_processes_has_a_profile_each_and_the_sum() {
    let (_directory, program) = compiled(TREE);
    let program = program.to_str().unwrap();
    let profiled = profile(&[program, "1000", "f", "200", "e", "30", "f", "f", "4"]);
    assert_eq!(profiled.output.status.code(), Some(7));
    assert_eq!(profiled.lock("lock (")["acquired"], 1234);

    let counts: Vec<_> =
        profiled.processes().iter().map(|p| named(p, "lock (")["acquired"].clone()).collect();
    assert_eq!(counts, [1000, 200, 30, 4]);
    let field =
        |name: &str| profiled.processes().iter().map(|p| p[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("end"), ["exited", "replaced", "exited", "cut-short"]);
    let (pid, parent) = (field("pid"), field("parent"));
    assert_eq!(parent[1], pid[0]);
    assert_eq!(pid[2], pid[1]);
    assert_eq!(parent[3], pid[2], "the one between used no lock");
    assert_eq!(profiled.json["not_interposed"], json!([]));
}

#[test]
fn a_forked_process_that_locks_nothing_leaves_an_empty_file() {
    let (_directory, program) = compiled(TREE);
    let statistics = directory();
    let mut command = Command::new(program);
    command.args(["5", "f", "f", "3", "f"]).env("LD_PRELOAD", library());
    let status = command.env("MANYCORE_STATS", statistics.path()).status().unwrap();
    assert_eq!(status.code(), Some(7));
    let files = std::fs::read_dir(statistics.path()).unwrap().flatten();
    let written = files.map(|file| file.metadata().unwrap().blocks() > 0);
    let (used, empty): (Vec<_>, Vec<_>) = written.partition(|is_written| *is_written);
    assert_eq!((used.len(), empty.len()), (2, 2));
}

/// A child that cannot open any files when it first takes a lock: the kernel kills it for that, or
/// its root is another one.
const LOCKED_UP: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int forbid(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
int main(int argc, char **argv) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    if (fork() == 0) {
        if (argc > 1 ? chroot(argv[1]) : forbid()) _exit(9);
        for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
        _exit(0);
    }
    int status;
    wait(&status);
    return status == 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 8;
}
"#;

#[test]
fn a_child_that_may_open_no_file_is_counted() {
    let (directory, program) = compiled(LOCKED_UP);
    let (program, root) = (program.to_str().unwrap(), directory.path().to_str().unwrap());
    for command in [&[program][..], &[program, root]] {
        let profiled = profile(command);
        match profiled.output.status.code() {
            Some(0) => {}
            Some(9) => {
                skipped_in_part("it may not be tried here");
                continue;
            }
            other => panic!("{command:?}: {other:?}"),
        }
        assert_eq!(profiled.lock("lock (")["acquired"], 1001, "{command:?}");
        assert_eq!(profiled.processes().len(), 2);
    }
}

/// One thread holds the lock for 200 ms and longer while another one waits, in a process that may
/// not read the time-stamp counter. It prints the nanoseconds for which the other thread measured
/// its wait.
const WITHOUT_COUNTER: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int comes;
static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}
static void *waits(void *unused) {
    comes = 1;
    long long begin = now();
    pthread_mutex_lock(&lock);
    printf("%lld\n", now() - begin);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t thread;
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV)) return 9;
    pthread_mutex_lock(&lock);
    if (pthread_create(&thread, NULL, waits, NULL)) return 8;
    while (!comes) usleep(1000);
    usleep(200000);
    pthread_mutex_unlock(&lock);
    return pthread_join(thread, NULL);
}
"#;

#[test]
fn times_come_from_another_clock_where_the_counter_may_not_be_read() {
    let (_directory, program) = compiled(WITHOUT_COUNTER);
    let profiled = profile(&[program.to_str().unwrap()]);
    assert_eq!(profiled.output.status.code(), Some(0));
    let counted = profiled.lock("lock (")["wait"]["total_ns"].as_u64().unwrap();
    let printed = String::from_utf8_lossy(&profiled.output.stdout);
    let known: u64 = printed.trim().parse().unwrap();
    // Between its own readings the thread may have lost its CPU; a step of the clock is 10 ms at
    // most.
    assert!(counted <= known + 20_000_000, "{counted} of {known}");
    assert!(counted + known / 2 >= known, "{counted} of {known}");
    let why = profiled.json["not_interposed"][0]["why"].as_str().unwrap();
    assert!(why.contains("time stamp counter"), "{why}");
}

/// Locks, limits its files to the size in its first argument, and locks in a child; or executes the
/// next arguments.
const SMALL_FILES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void use(int times) {
    for (int i = 0; i < times; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
}
int main(int argc, char **argv) {
    use(10);
    struct rlimit limit = {atoi(argv[1]), atoi(argv[1])};
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 9;
    if (argc > 2) { execv(argv[2], argv + 2); return 9; }
    if (fork() == 0) { use(1000); _exit(0); }
    int status;
    wait(&status);
    return status == 0 ? 0 : WIFSIGNALED(status) ? 100 + WTERMSIG(status) : 8;
}
"#;

#[test]
fn a_limit_on_the_size_of_files_ends_no_program() {
    let (directory, program) = compiled(SMALL_FILES);
    let program = program.to_str().unwrap();
    for limit in ["0", "1048576"] {
        let forked = profile(&[program, limit]);
        assert_eq!(forked.output.status.code(), Some(0), "{limit}");
        assert_eq!(forked.lock("lock (")["acquired"], 10, "the child has no statistics");
        assert_eq!(
            crate::support::stderr(&forked.output).matches("lost").count(),
            0,
            "nor half a file"
        );

        let executed = profile(&[program, limit, program, limit]);
        let said = crate::support::stderr(&executed.output);
        assert_eq!(executed.output.status.code(), Some(0), "{limit}: {said}");
        assert!(
            said.contains("no statistics of this process") && said.contains("ulimit -f"),
            "{said}"
        );

        // To say so may be too much, too.
        let log = directory.path().join("log");
        let script = format!("exec {program} {limit} {program} {limit} 2>{}", log.display());
        assert_eq!(profile(&["sh", "-c", &script]).output.status.code(), Some(0), "{limit}");
    }
}

/// Forks while the parent's threads take and create locks. Then all of the child's threads take
/// theirs at the same time.
const CROWDED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { THREADS = 8, ROUNDS = 100, CHILDREN = 40 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;
static volatile int stop;
static void *busy(void *unused) {
    while (!stop) {
        pthread_mutex_t *another = malloc(sizeof *another);
        pthread_mutex_init(another, NULL);
        pthread_mutex_lock(another);
        pthread_mutex_unlock(another);
        pthread_mutex_destroy(another);
        free(another);
    }
    return NULL;
}
static void *work(void *unused) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(void) {
    pthread_t busies[2], threads[THREADS];
    for (int i = 0; i < 2; i++) pthread_create(&busies[i], NULL, busy, NULL);
    for (int child = 0; child < CHILDREN; child++) {
        if (fork() == 0) {
            pthread_barrier_init(&together, NULL, THREADS);
            for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
            for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
            exit(0);
        }
        int status;
        wait(&status);
        if (status != 0) return 1;
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(busies[i], NULL);
    return 0;
}
"#;

#[test]
fn threads_of_a_forked_process_make_one_file_between_them() {
    let (_directory, program) = compiled(CROWDED);
    let profiled = profile(&[&program]);
    assert_eq!(profiled.output.status.code(), Some(0));
    assert_eq!(profiled.lock("lock (")["acquired"], 40 * 8 * 100);
    let children = &profiled.processes()[1..];
    assert_eq!(children.len(), 40);
    for child in children {
        assert_eq!(child["end"], "exited", "{child:#}");
        assert_eq!(named(child, "lock (")["acquired"], 8 * 100);
        let locks = child["locks"].as_array().unwrap();
        assert_eq!(locks.len(), 1, "the parent's other locks are not the child's: {locks:#?}");
    }
}

#[test]
fn many_processes_are_summed_up_while_they_come_and_go() {
    let (directory, program) = compiled(TREE);
    let script = directory.path().join("many");
    let text = format!("i=0; while [ $i -lt 300 ]; do {} 10; i=$((i+1)); done", program.display());
    std::fs::write(&script, text).unwrap();
    let profiled = profile(&["sh".as_ref(), script.as_os_str()]);
    assert_eq!(profiled.lock("lock (")["acquired"], 3000);
    assert_eq!(profiled.processes().len(), 300);
}

/// Makes children, ten at a time. Each waits for a lock that another of its threads has, and takes
/// one of its own.
const FERTILE: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_it(void *unused) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return NULL;
}
int main(int argc, char **argv) {
    int children = atoi(argv[1]), failed = 0, status;
    for (int at = 0; at < children; at++) {
        if (fork() == 0) {
            pthread_t thread;
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
            pthread_mutex_lock(&held);
            pthread_create(&thread, NULL, wait_for_it, NULL);
            usleep(2000);
            pthread_mutex_unlock(&held);
            pthread_join(thread, NULL);
            exit(0);
        }
        if (at >= 9) { wait(&status); failed |= status != 0; }
    }
    while (wait(&status) > 0) failed |= status != 0;
    return failed;
}
"#;

#[test]
fn processes_beyond_a_thousand_are_kept_as_one() {
    const CHILDREN: u64 = 1_500;
    let (_directory, program) = compiled(FERTILE);
    let profiled = profile(&[program.to_str().unwrap(), &CHILDREN.to_string()]);
    assert_eq!(profiled.output.status.code(), Some(0));
    assert_eq!(profiled.lock("lock (")["acquired"], CHILDREN);
    assert_eq!(profiled.lock("held (")["acquired"], 2 * CHILDREN);
    let processes = profiled.processes();
    let (many, kept): (Vec<_>, Vec<_>) = processes.iter().partition(|one| one["pid"] == 0);
    let [many] = &many[..] else { panic!("{} rows", processes.len()) };
    let more = CHILDREN - kept.len() as u64;
    // The parent, which uses no lock, may be one of the thousand.
    assert!((999..=1_000).contains(&kept.len()), "{}", kept.len());
    assert_eq!(many["program"], json!(format!("({more} more processes)")));
    assert_eq!(named(many, "lock (")["acquired"], more);

    // Their waits are in the timeline, too.
    let sum = |what: &dyn Fn(&serde_json::Value) -> u64| {
        let intervals = profiled.json["timeline"]["intervals"].as_array().unwrap();
        intervals.iter().flat_map(|one| one["waits"].as_array().unwrap()).map(what).sum::<u64>()
    };
    let contended = profiled.json["locks"].as_array().unwrap().iter();
    let contended: u64 = contended.map(|lock| lock["contended"].as_u64().unwrap()).sum();
    assert!(contended > 0 && named(many, "held (")["contended"].as_u64().unwrap() > 0);
    assert_eq!(sum(&|wait| wait["contended"].as_u64().unwrap()), contended);
}

/// In a PID namespace of its own, whose process numbers mean nothing outside: makes many children,
/// and then takes the lock again.
const ENCLOSED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void use(int times) {
    for (int i = 0; i < times; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
}
int main(int argc, char **argv) {
    if (getpid() != atoi(argv[1])) return 9;
    use(10);
    for (int i = 0; i < 200; i++) {
        if (fork() == 0) { use(1); _exit(0); }
        wait(NULL);
    }
    /* The command looks at all that there is ten times a second. */
    usleep(700000);
    use(1000);
    return 0;
}
"#;

#[test]
fn a_process_of_another_namespace_is_counted_to_its_end() {
    let (_directory, program) = compiled(ENCLOSED);
    let most: u32 =
        std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap().trim().parse().unwrap();
    let pid = (most / 2..most).find(|pid| !Path::new(&format!("/proc/{pid}")).exists()).unwrap();
    let script = format!(
        "echo {} > /proc/sys/kernel/ns_last_pid || exit 9; {} {pid}; exit $?",
        pid - 1,
        program.display()
    );
    let profiled = profile(&["unshare", "-rpf", "--mount-proc", "sh", "-c", &script]);
    if profiled.output.status.code() != Some(0) {
        let said = crate::support::stderr(&profiled.output);
        skipped(format!("no such namespace here: {said}"));
        assert!(said.contains("unshare:") || profiled.output.status.code() == Some(9), "{said}");
        return;
    }
    assert_eq!(profiled.lock("lock (")["acquired"], 10 + 200 + 1000);
}

#[test]
fn what_is_left_running_counts_until_then() {
    let (directory, program) = compiled(TREE);
    let (program, said) = (program.display(), directory.path().join("said"));
    let said = said.display();
    let script = format!("{program} 25 s >{said} 2>&1 & until [ -s {said} ]; do sleep 0.05; done");
    let profiled = profile(&["sh", "-c", &script]);
    assert_eq!(profiled.lock("lock (")["acquired"], 25);
    assert_eq!(profiled.processes()[0]["end"], "running");
}

const OBJECTS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static volatile int ready, holding;
static struct timespec after(long ms) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
static void *other(void *unused) {
    pthread_mutex_lock(&mutex);
    holding = 1;
    usleep(200000);
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
int main(void) {
    pthread_t thread;
    struct timespec until = after(200);
    pthread_mutex_lock(&mutex);
    if (pthread_cond_timedwait(&cond, &mutex, &until) != ETIMEDOUT) return 1;
    pthread_mutex_unlock(&mutex);
    pthread_create(&thread, NULL, other, NULL);
    while (!holding) usleep(1000);
    until = after(20);
    if (pthread_mutex_timedlock(&mutex, &until) != ETIMEDOUT) return 2;
    pthread_mutex_lock(&mutex);
    while (!ready) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 3; i++) pthread_mutex_lock(&recursive);
    for (int i = 0; i < 3; i++) pthread_mutex_unlock(&recursive);
    pthread_spin_init(&spin, 0);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    return 0;
}
"#;

#[test]
fn waits_timeouts_and_conditions_are_told_apart() {
    let (_directory, program) = compiled(OBJECTS);
    let profiled = profile(&[Path::new(&program)]);
    assert_eq!(profiled.output.status.code(), Some(0));

    let mutex = profiled.lock("mutex (");
    assert_eq!((&mutex["contended"], &mutex["timeouts"]), (&json!(2), &json!(1)), "{mutex:#}");
    let longest = mutex["wait"]["max_ns"].as_u64().unwrap();
    let wall = profiled.json["wall"].as_f64().unwrap();
    assert!((100_000_000..(wall * 1e9) as u64).contains(&longest), "{longest}");
    assert!(mutex["hold"]["max_ns"].as_u64().unwrap() >= 200_000_000, "{mutex:#}");
    let cpu = &profiled.json["cpu"];
    assert!(cpu["lock_wait"].as_f64().unwrap() > 0.1, "{cpu}");
    assert!(cpu["lock_spin"].as_f64().unwrap() < 0.1, "{cpu}");

    let condition = &profiled.json["conditions"][0];
    assert!(condition["name"].as_str().unwrap().starts_with("cond ("), "{condition:#}");
    assert_eq!((&condition["waits"], &condition["timeouts"]), (&json!(1), &json!(1)));
    assert!(condition["wait"]["total_ns"].as_u64().unwrap() >= 20_000_000, "{condition:#}");

    let recursive = profiled.lock("recursive (");
    assert_eq!((&recursive["kind"], &recursive["acquired"]), (&json!("recursive"), &json!(1)));
    assert_eq!(profiled.lock("spin (")["kind"], "spinlock");
}
