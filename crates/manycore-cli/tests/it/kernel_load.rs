//! `manycore bench forks` and `bench faults`: small loads on the kernel, with its locks where they
//! may be seen.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use crate::support::{
    bare_manycore, copy, directory, eventually, failure, printed, runs, skipped, skipped_in_part,
};
use serde_json::Value;

const SHORT: [&str; 5] = ["--time", "30ms", "--rounds", "2", "-q"];
/// Nobody, and a user who has no other processes.
const NOBODY: u32 = 65534;
const LONELY: u32 = 65_432;

fn bench(arguments: &[&str]) -> Command {
    let mut command = bare_manycore();
    command.arg("bench").args(arguments);
    command
}

fn records(text: &str) -> Vec<Value> {
    let results: Value = serde_json::from_str(text).unwrap();
    assert_eq!(results["schema"], 1);
    results["measurements"].as_array().unwrap().clone()
}

/// Whether the kernel's locks were observed. If not, the record has the reason, and so has the
/// test's log.
fn was_watched(record: &Value) -> bool {
    let parameters = &record["parameters"];
    if parameters["kernel_source"].is_string() {
        return true;
    }
    let why = parameters["kernel_refused"].as_str().expect("watched, or a reason why not");
    skipped_in_part(why);
    false
}

/// Shares of the locks add up to the whole: in a single run that was watched, medians are the
/// values.
fn the_shares_add_up(record: &Value) {
    let metrics = record["metrics"].as_object().unwrap();
    let value = |metric: &Value| metric["value"].as_f64().unwrap();
    let locks = metrics.iter().filter(|(name, _)| name.starts_with("kernel_wait:"));
    let sum: f64 = locks.map(|(_, metric)| value(metric)).sum();
    let whole = value(&metrics["kernel_wait"]);
    assert!((sum - whole).abs() <= 1e-6 * whole.max(1.0), "{sum} of {whole}");
    assert!((0.0..=100.0).contains(&whole), "{whole}");
    assert!(value(&metrics["watched"]) > 0.0);
    assert!(
        record["parameters"]["kernel_waits"].as_f64()
            >= record["parameters"]["kernel_dropped"].as_f64()
    );
}

#[test]
fn processes_do_jobs() {
    let place = directory();
    let inside = place.path().to_str().unwrap();
    let what = ["forks", "--processes", "3,1", "--profiles", "1", "--directory", inside, "--json"];
    let records = records(&printed(&mut bench(&[&what[..], &SHORT].concat())));
    let numbers: Vec<_> =
        records.iter().map(|record| record["threads"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3]);
    for record in &records {
        assert_eq!((&record["workload"], &record["sync"]), (&"forks".into(), &"kernel".into()));
        assert!(record["value"].as_f64().unwrap() > 0.0, "{record}");
        assert_eq!((&record["repetitions"], &record["seed"]), (&2.into(), &1.into()));
        assert!(record["parameters"]["mix"].as_str().unwrap().contains("fork:15"));
        if was_watched(record) {
            the_shares_add_up(record);
        }
    }
    assert!(records[0]["metrics"].get("ratio").is_none(), "the base line");
    assert!(records[1]["metrics"]["of_linear"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(fs::read_dir(inside).unwrap().count(), 0, "nothing is left behind");
}

/// Each kind of job alone: one that fails would fail the run.
#[test]
fn every_kind_of_job_is_done() {
    for kind in ["files", "memory", "fork", "exec", "pipes", "arithmetic"] {
        let mix = format!("{kind}:1");
        let what = ["forks", "--mix", &mix, "--processes", "2", "--profiles", "0", "--json"];
        let records = records(&printed(&mut bench(&[&what[..], &SHORT].concat())));
        assert!(records[0]["value"].as_f64().unwrap() > 0.0, "{kind}");
        assert_eq!(records[0]["parameters"]["mix"], mix);
        assert!(records[0]["parameters"].get("kernel_source").is_none(), "not asked for");
    }
}

#[test]
fn threads_fault_while_others_map() {
    let place = directory();
    let page = place.path().join("faults.html");
    let what = ["faults", "--threads", "1,4", "--update", "0,100", "--profiles", "1"];
    let drawn = ["--plot", page.to_str().unwrap()];
    // Long enough that they meet on any machine.
    let length = ["--time", "300ms", "--rounds", "2", "-q"];
    let text = printed(&mut bench(&[&what[..], &length, &drawn].concat()));
    for words in
        ["0 % of the operations map", "100 % of the operations map", "of linear", "base line"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        text.contains("Seen by ") || text.contains("The kernel's locks are not shown: "),
        "{text}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("Throughput: 100 %"), "{page}");
    assert!(page.contains("of linear"), "the table is there, too: {page}");

    let records = records(&printed(&mut bench(&[&what[..], &length, &["--json"]].concat())));
    assert_eq!(records.len(), 4);
    let shares: Vec<_> = records.iter().map(|record| record["update"].as_f64().unwrap()).collect();
    assert_eq!(shares, [0.0, 0.0, 100.0, 100.0]);
    if !was_watched(&records[3]) {
        return;
    }
    records.iter().for_each(the_shares_add_up);
    if available_parallelism().unwrap().get() < 2 {
        skipped_in_part("on one CPU threads rarely meet");
        return;
    }
    // Four threads that do nothing but map wait for each other.
    let mmap_lock = records[3]["metrics"].get("kernel_wait:rwsem:mm->mmap_lock");
    assert!(mmap_lock.is_some(), "{}", records[3]);
}

/// Either signal ends the command in the middle of a long run, and leaves no process and no file.
#[test]
fn a_signal_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let place = directory();
        let inside = place.path().to_str().unwrap();
        let picture = place.path().join("a.svg");
        let what = ["forks", "--processes", "8", "--time", "1h", "--directory", inside, "-q"];
        let what = [&what[..], &["--plot", picture.to_str().unwrap()]].concat();
        let mut child = bench(&what).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let files = || tree(place.path());
        eventually("files are made", || files().iter().any(|name| name.starts_with("made-")));
        let order = order_of(child.id()).expect("the load runs");
        // SAFETY: a child of ours that has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        assert_eq!(files(), [""; 0]);
        eventually("its processes end", || !runs(&order));
    }
}

/// If the command is killed, it cannot clean up. Its processes end nevertheless.
#[test]
fn the_processes_end_with_the_command() {
    let place = directory();
    let inside = place.path().to_str().unwrap();
    let what = ["forks", "--processes", "4", "--time", "1h", "--directory", inside, "-q"];
    let mut child = bench(&what).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("files are made", || {
        tree(place.path()).iter().any(|name| name.starts_with("made-"))
    });
    let order = order_of(child.id()).expect("the load runs");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its processes end", || !runs(&order));
}

/// The order that the load of this command has received: an argument that no other process has.
fn order_of(command: u32) -> Option<String> {
    let children = fs::read_to_string(format!("/proc/{command}/task/{command}/children")).ok()?;
    let load = children.split_whitespace().next()?;
    let words = fs::read_to_string(format!("/proc/{load}/cmdline")).ok()?;
    words.split('\0').find(|word| word.starts_with('{')).map(str::to_owned)
}

/// Names of all files below a directory.
fn tree(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        [vec![name], tree(&entry.path())].concat()
    });
    below.collect()
}

/// A job that cannot be done ends the load with the reason.
#[test]
fn a_load_that_fails_says_why() {
    let place = directory();
    let picture = place.path().join("a.svg");
    let what = ["forks", "--processes", "4", "--mix", "files:1", "--time", "50ms", "-q"];
    let mut few = bench(&[&what[..], &["--plot", picture.to_str().unwrap()]].concat());
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe {
        few.pre_exec(|| {
            let none = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const none);
            // The limit is then an error, and no signal.
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            Ok(())
        });
    }
    let said = failure(1, &mut few);
    assert!(said.contains("the load failed") && said.contains("Files: File too large"), "{said}");
    assert_eq!(tree(place.path()), [""; 0], "there is nothing to draw");
}

/// Runs the command as another user. It may have been built where that user cannot read, so the
/// directory has a copy of it.
fn as_user(user: u32, arguments: &[&str], place: &Path) -> Command {
    let here = place.join("manycore");
    copy(Path::new(env!("CARGO_BIN_EXE_manycore")), &here);
    Command::new("chmod").arg("755").arg(place).status().unwrap();
    let mut command = Command::new(here);
    command.arg("bench").args(arguments).current_dir("/").uid(user).gid(user);
    command
}

fn is_root() -> bool {
    // SAFETY: the call takes no arguments, and changes nothing in memory.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        skipped("only root can become somebody else");
    }
    is_root
}

/// It ends, and names the limit.
#[test]
fn a_load_that_may_not_be_so_large_says_so() {
    if !is_root() {
        return;
    }
    let place = directory();
    for (what, number, which) in
        [("faults", "--threads", "make thread "), ("forks", "--processes", "make process ")]
    {
        let mut command =
            as_user(LONELY, &[&[what, number, "64"][..], &SHORT].concat(), place.path());
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe {
            command.pre_exec(|| {
                let few = libc::rlimit { rlim_cur: 16, rlim_max: 16 };
                libc::setrlimit(libc::RLIMIT_NPROC, &raw const few);
                Ok(())
            });
        }
        let said = failure(1, &mut command);
        assert!(said.contains(which) && said.contains(" of 64: "), "{said}");
        assert!(said.contains("ulimit -u") && said.contains("pids.max"), "{said}");
    }
}

#[test]
fn without_rights_there_is_the_throughput() {
    if !is_root() {
        return;
    }
    let place = directory();
    let what = ["faults", "--threads", "1,2", "--update", "50"];
    let text = printed(&mut as_user(NOBODY, &[&what[..], &SHORT].concat(), place.path()));
    assert!(text.contains("of linear"), "{text}");
    let is_refused = text.contains("The kernel's locks are not shown: ") && text.contains("root");
    // Where kernel.perf_event_paranoid lets everybody.
    assert!(is_refused || text.contains("Seen by "), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, words) in [
        (&["forks", "--processes", "0"][..], ["0 at a time", "4095"]),
        (&["forks", "--mix", "forks:1"], ["forks:1", "fork, exec"]),
        (&["forks", "--mix", "fork:0"], ["no jobs", "weight"]),
        (&["forks", "--directory", "/nonexistent"], ["/nonexistent", "--directory"]),
        (&["forks", "--time", "1ms"], ["1ms", "10ms to 1h"]),
        (&["forks", "--plot", "a.png"], ["a.png", ".svg"]),
        (&["faults", "--threads", "5000"], ["5000 at a time", "4095"]),
        (&["faults", "--update", "101"], ["101", "100 %"]),
        (&["faults", "--kernel=ebpf"], ["ebpf", "bpf"]),
        (&["mariadb", "--plot", "/nonexistent/a.svg"], ["/nonexistent/a.svg", "--plot"]),
    ] {
        let said = failure(2, &mut bench(&[arguments, &["-q"]].concat()));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
