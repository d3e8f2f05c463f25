//! `manycore profile --kernel`: the kernel's locks where it permits to see them, and one clear line
//! where it does not.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::real::profiling;
use crate::support::watched::{MEANS, of_kind, profiled, sees_futexes, was_watched};
use crate::support::{bare_manycore, compile, directory, failure, skipped, stderr};
use serde_json::Value;

const STORM: &str = include_str!("fork_storm.c");
const OWN_FUTEX: &str = include_str!("programs/own_futex.c");
/// Nobody.
const NOBODY: u32 = 65534;

#[test]
fn a_commands_waits_add_up() {
    let directory = directory();
    let storm = compile(directory.path(), "storm", STORM, &["-O1"]);
    let (output, json) = profiled("--kernel", &[], &[storm.to_str().unwrap(), "4", "60"]);
    assert!(output.status.success(), "{}", stderr(&output));
    if !was_watched(&output, &json) {
        return;
    }
    assert_eq!(json["kernel"]["scope"], "command");
    let number = |value: &Value| value.as_u64().unwrap();
    let locks = json["kernel_locks"].as_array().unwrap();
    let waits: u64 = locks.iter().map(|lock| number(&lock["contended"])).sum();
    let (events, dropped) = (&json["kernel"]["events"], &json["kernel"]["dropped"]);
    assert_eq!(waits, number(events) - number(dropped), "{json}");
    for lock in locks {
        assert!(number(&lock["spin_ns"]) <= number(&lock["wait"]["total_ns"]), "{lock}");
        assert!(number(&lock["contended_shared"]) <= number(&lock["contended"]), "{lock}");
        assert!(lock["objects"].as_u64().unwrap() >= 1, "{lock}");
    }
    assert!(stderr(&output).contains("Locks of the kernel, most waited for first"));
}

/// The measurements of `own_futex` itself: the time waited, in nanoseconds, and the number of
/// waits.
fn measured(output: &[u8]) -> [f64; 2] {
    let text = String::from_utf8_lossy(output);
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Compares a lock's waits with what the program measured.
fn assert_waits(lock: &Value, [waited, sleeps]: [f64; 2]) {
    let total = lock["wait"]["total_ns"].as_f64().unwrap();
    assert!((total / waited - 1.0).abs() < 0.05, "{total} of {waited}: {lock}");
    let waits = lock["contended"].as_f64().unwrap();
    assert!((waits / sleeps - 1.0).abs() < 0.05, "{waits} of {sleeps}: {lock}");
    assert_eq!((&lock["acquired"], &lock["origin"]), (&0.into(), &"futex".into()), "{lock}");
    assert!(lock["name"].as_str().unwrap().starts_with("own_lock"), "{lock}");
}

#[test]
fn a_lock_of_the_programs_own_waits_as_long_as_it_says() {
    let directory = directory();
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &["-O1", "-pthread"]);
    for means in MEANS {
        let (output, json) = profiled(means, &[], &[program.to_str().unwrap(), "4", "50"]);
        assert!(output.status.success(), "{}", stderr(&output));
        if !sees_futexes(&output, &json) {
            continue;
        }
        if means == "--kernel=perf" {
            let limits = json["kernel"]["limits"].to_string();
            assert!(
                limits.contains("from the futex call to its return, by perf events"),
                "{limits}"
            );
            assert_eq!(json["kernel"]["source"], "perf");
        }
        let futexes = of_kind(&json, "futex");
        let [lock] = futexes[..] else {
            panic!("the library's own waits are in here: {futexes:?}")
        };
        assert_waits(lock, measured(&output.stdout));
        // The one that the library replaces is counted by it alone.
        let mutexes = of_kind(&json, "mutex");
        let [mutex] = mutexes[..] else { panic!("{mutexes:?}") };
        assert!(mutex["contended"].as_u64().unwrap() > 0, "it waits by futexes, too: {mutex}");
        let joins = json["conditions"].as_array().unwrap();
        let never = joins.iter().find(|one| one["short"] == "never").unwrap();
        assert_eq!((&never["waits"], &never["timeouts"]), (&4.into(), &4.into()), "{never}");
        // Joins of threads are waits, but no lock. Otherwise only the library itself waits.
        let others = joins.iter().filter(|one| one["short"] != "never");
        assert!(others.map(|one| one["waits"].as_u64().unwrap()).sum::<u64>() <= 4, "{joins:?}");
        assert!(joins.iter().any(|join| join["origin"] == "futex"), "{joins:?}");
        assert!(json["finding"].as_str().unwrap().contains("program's own"), "{}", json["finding"]);
    }
}

#[test]
fn a_static_programs_futexes_are_seen() {
    let directory = directory();
    let flags = ["-O1", "-pthread", "-static"];
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &flags);
    for means in MEANS {
        let (output, json) = profiled(means, &[], &[program.to_str().unwrap(), "3", "40"]);
        assert!(output.status.success(), "{}", stderr(&output));
        if sees_futexes(&output, &json) {
            let futexes = of_kind(&json, "futex");
            let own =
                futexes.iter().find(|lock| lock["name"].as_str().unwrap().starts_with("own_lock"));
            assert_waits(own.unwrap_or_else(|| panic!("{futexes:?}")), measured(&output.stdout));
        }
    }
}

#[test]
fn a_process_that_runs_already_has_its_futexes_seen() {
    let directory = directory();
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &["-O1", "-pthread"]);
    for means in MEANS {
        // Longer than the watch lasts, however slow the machine is: it is killed.
        let mut child = Command::new(&program)
            .args(["4", "30000", "busy"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let watched = bare_manycore()
            .args(["profile", means, "--json", "-", "--duration", "400ms", "--pid", &pid])
            .output()
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if watched.status.code() == Some(2) {
            assert!(stderr(&watched).contains("cannot be watched"), "{}", stderr(&watched));
            skipped(stderr(&watched));
            continue;
        }
        assert!(watched.status.success(), "{}", stderr(&watched));
        let json: Value = serde_json::from_slice(&watched.stdout).unwrap();
        if sees_futexes(&watched, &json) {
            let futexes = of_kind(&json, "futex");
            let [lock] = futexes[..] else { panic!("{json}") };
            assert!(lock["name"].as_str().unwrap().starts_with("own_lock"), "{lock}");
            // Three of four threads wait at a time, for as long as the watch is.
            let share = lock["wait"]["total_ns"].as_f64().unwrap()
                / (json["kernel"]["seconds"].as_f64().unwrap() * 3e9);
            assert!((0.8..1.05).contains(&share), "{share}: {lock}");
            // And one thread computes.
            let computed = json["cpu"]["program"].as_f64().unwrap();
            let wall = json["wall"].as_f64().unwrap();
            // The main thread waits for the others all the time, and not longer than the watch.
            let joins = json["conditions"].as_array().unwrap().iter();
            let longest =
                joins.filter_map(|one| one["wait"]["max_ns"].as_f64()).fold(0.0, f64::max);
            assert!(longest / 1e9 < wall + 0.05, "{longest} in {wall}: {json}");
            assert!((0.05 * wall..1.1 * wall + 0.02).contains(&computed), "{}", json["cpu"]);
            let finding = json["finding"].as_str().unwrap();
            assert!(!finding.starts_with("Threads spend 100 %"), "{finding}");
            assert!(finding.contains("without --lock glibc (or --pid)"), "{finding}");
        }
    }
}

#[test]
fn rusts_own_locks_are_seen_where_they_are_wanted() {
    let directory = directory();
    let source = directory.path().join("std_locks.rs");
    std::fs::write(&source, include_str!("programs/std_locks.rs")).unwrap();
    let program = directory.path().join("std_locks");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(built.success());
    for means in MEANS {
        let (output, json) = profiled(means, &[], &[program.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        if !sees_futexes(&output, &json) {
            continue;
        }
        let futexes = of_kind(&json, "futex");
        let [mutex] = futexes[..] else { panic!("{futexes:?}") };
        assert!(mutex["name"].as_str().unwrap().contains("take_turns"), "{mutex}");
        // 120 sections of 2 ms, one after the other; most of the time three threads wait for them.
        let waited = mutex["wait"]["total_ns"].as_f64().unwrap() / 1e9;
        let wall = json["wall"].as_f64().unwrap();
        assert!((0.24..3.1 * wall).contains(&waited), "{waited} in {wall}");
        let idle = json["conditions"].as_array().unwrap().iter();
        let mut idle = idle.filter(|one| one["name"].as_str().unwrap().contains("await_work"));
        assert_eq!(idle.next().unwrap()["waits"], 1);
    }
}

#[test]
fn the_locks_of_gos_runtime_are_seen() {
    if Command::new("go").arg("version").output().is_err() {
        return skipped("there is no Go here (Debian: golang-go)");
    }
    let directory = directory();
    let source = directory.path().join("main.go");
    std::fs::write(&source, include_str!("programs/handoffs.go")).unwrap();
    let program = directory.path().join("handoffs");
    let built = Command::new("go")
        .args(["build", "-o"])
        .args([&program, &source])
        .env("GOCACHE", directory.path().join("cache"))
        .env("GO111MODULE", "off")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    for means in MEANS {
        let (output, json) = profiled(means, &[], &[program.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        if !sees_futexes(&output, &json) {
            continue;
        }
        // Waiting goroutines are parked; the kernel sees only that the runtime's threads then have
        // nothing to do.
        let idle = json["conditions"].as_array().unwrap();
        let by_runtime = |one: &&Value| one["name"].as_str().unwrap().contains("runtime.");
        let waits = idle.iter().filter(by_runtime).map(|one| one["waits"].as_u64().unwrap());
        assert!(waits.sum::<u64>() >= 100, "a thread sleeps in each of 100 pauses: {idle:#?}");
    }
}

#[test]
fn a_lock_with_priority_inheritance_is_no_event() {
    let directory = directory();
    let source = include_str!("programs/pi_mutex.c");
    let program = compile(directory.path(), "pi_mutex", source, &["-O1", "-pthread"]);
    for means in MEANS {
        let (output, json) = profiled(means, &["--lock", "glibc"], &[program.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        if !sees_futexes(&output, &json) {
            continue;
        }
        let futexes = of_kind(&json, "futex");
        let [mutex] = futexes[..] else { panic!("{json}") };
        assert!(mutex["contended"].as_u64().unwrap() >= 30, "{mutex}");
        // It is glibc's: nothing was put in its place, but something may be.
        let finding = json["finding"].as_str().unwrap();
        assert!(finding.contains("to see whether another lock can take its place."), "{finding}");
    }
}

#[test]
fn processes_beyond_those_that_are_remembered_are_counted() {
    let directory = directory();
    let source = include_str!("programs/many_sleepers.c");
    let program = compile(directory.path(), "many_sleepers", source, &["-O1"]);
    for means in MEANS {
        let sleepers = |processes: &str| {
            profiled(means, &["--lock", "glibc"], &[program.to_str().unwrap(), processes])
        };
        let (output, json) = sleepers("1100");
        assert!(output.status.success(), "{}", stderr(&output));
        if !sees_futexes(&output, &json) {
            continue;
        }
        let limits = json["kernel"]["limits"].as_array().unwrap().iter();
        let sleeps = limits.filter_map(|limit| {
            let (sleeps, rest) = limit.as_str()?.split_once(' ')?;
            let said = "sleeps for futexes were in processes beyond the first 1024";
            rest.starts_with(said).then(|| sleeps.parse::<u64>().unwrap())
        });
        // On a busy machine a millisecond can be over before the process that waits for it sleeps.
        let sleeps: Vec<u64> = sleeps.collect();
        assert!(matches!(sleeps[..], [60..=76]), "{}", json["kernel"]);
        let (_, json) = sleepers("5");
        assert!(!json["kernel"]["limits"].to_string().contains("beyond"), "{}", json["kernel"]);
    }
}

#[test]
fn a_static_program_has_its_kernels_side_alone() {
    let directory = directory();
    let storm = compile(directory.path(), "storm", STORM, &["-O1", "-static"]);
    let (output, json) =
        profiled("--kernel", &["--lock", "hybrid"], &[storm.to_str().unwrap(), "2", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    let why = said.split_once("only the kernel's side is profiled: ").expect(&said).1;
    assert!(why.contains("statically linked") && !said.contains("cannot run"), "{said}");
    assert_eq!((json["lock"].as_str(), &json["locks"]), (Some("glibc"), &Value::Array(vec![])));
    was_watched(&output, &json);
}

#[test]
fn what_does_not_run_at_all_has_no_kernels_side() {
    let directory = directory();
    let nothing = directory.path().join("nothing");
    let said = failure(2, &mut profiling(&["--kernel"], &[&nothing]));
    assert!(said.contains("there is no such file; check the path"), "{said}");
}

#[test]
fn the_system_is_watched_for_a_while() {
    let mut command = bare_manycore();
    command.args(["profile", "--kernel", "--duration", "50ms", "--json", "-"]);
    let output = command.output().unwrap();
    if output.status.code() == Some(2) {
        assert!(stderr(&output).contains("the kernel cannot be watched"), "{}", stderr(&output));
        skipped(stderr(&output));
        return;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["kernel"]["scope"], &json["command"]),
        (&"system".into(), &Value::Array(vec![]))
    );
}

#[test]
fn who_may_not_is_told_what_to_grant() {
    // As root, the test becomes the user nobody; another user has no rights to lose.
    let as_nobody = |command: &mut Command| {
        // SAFETY: a system call without side effects.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
    };
    let directory = directory();
    let place = directory.path().join("manycore");
    let built = Path::new(env!("CARGO_BIN_EXE_manycore"));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::copy(built, &place).unwrap();
    std::fs::set_permissions(directory.path(), open).unwrap();

    let mut alone = Command::new(&place);
    as_nobody(alone.args(["profile", "--kernel", "--duration", "10ms"]).current_dir("/"));
    let output = alone.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("the kernel cannot be watched") && said.contains("root"), "{said}");

    let mut beside = Command::new(&place);
    beside.args(["profile", "--kernel", "--lock", "glibc", "--", "true"]).current_dir("/");
    as_nobody(&mut beside);
    let output = beside.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the kernel is not watched"), "{}", stderr(&output));
}

/// With only these capabilities a user other than root may observe the kernel. A tool sets them,
/// since a test would have to give up its own.
#[test]
fn who_has_the_capabilities_needs_no_root() {
    // CAP_SYSLOG, CAP_PERFMON and CAP_BPF: no process in a container can grant a capability that
    // the container lacks.
    const NEEDED: u64 = 1 << 34 | 1 << 38 | 1 << 39;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let bound = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).unwrap();
    if u64::from_str_radix(bound.trim(), 16).unwrap() & NEEDED != NEEDED {
        return skipped(format!("the capabilities cannot be granted here, CapBnd:{bound}"));
    }
    let directory = directory();
    let place = directory.path().join("manycore");
    crate::support::copy(Path::new(env!("CARGO_BIN_EXE_manycore")), &place);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let watch = ["profile", "--kernel=bpf", "--duration", "20ms", "--json", "-"];
    let as_root = bare_manycore().args(watch).output().unwrap();
    if as_root.status.code() == Some(2) {
        return skipped(stderr(&as_root));
    }
    let with = |capabilities: &str| {
        let user = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        command.args(["--inh-caps", capabilities, "--ambient-caps", capabilities]);
        command.arg(&place).args(watch).current_dir("/").output().expect("setpriv runs")
    };
    let enough = with("+bpf,+perfmon,+syslog");
    assert!(enough.status.success(), "{}", stderr(&enough));
    let json: Value = serde_json::from_slice(&enough.stdout).unwrap();
    assert_eq!(json["kernel"]["source"], "bpf");
    assert!(!json["kernel"]["limits"].to_string().contains("no names"), "{json}");
    for too_few in ["+bpf,+syslog", "+perfmon,+syslog"] {
        let refused = with(too_few);
        let said = stderr(&refused);
        assert_eq!((refused.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("CAP_BPF, CAP_PERFMON and CAP_SYSLOG"), "{said}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (arguments, culprit) in [
        (&["profile"][..], "CMD"),
        (&["profile", "--system", "--", "true"], "--kernel"),
        (&["profile", "--kernel", "--pid", "1", "--", "true"], "--pid"),
        (&["profile", "--kernel", "--pid", "4000000000"], "4000000000"),
        (&["profile", "--kernel=ebpf", "--", "true"], "ebpf"),
    ] {
        let output = bare_manycore().args(arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(culprit), "{said}");
    }
}
