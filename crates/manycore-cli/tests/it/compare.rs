//! `manycore compare` on programs whose outcome is known.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    directory, empty_library, eventually, executable, failure, long_time, manycore, printed, runs,
    stderr, stdout,
};
use serde_json::Value;

/// Compares locks in a shell script, which knows its lock by `$MANYCORE_LOCK`.
fn compare(options: &[&str], script: &str) -> Command {
    let mut arguments = vec!["compare"];
    arguments.extend(options);
    arguments.extend(["--", "sh", "-c", script]);
    manycore(&arguments)
}

/// Prints 200 under futex:delay=2, 100 under futex:delay=1 and glibc, with errors of up to 4 % that
/// depend only on the number of the run.
const KNOWN: &str = r#"#!/bin/sh
    count=$(cat "$0.count" 2>/dev/null || echo 0)
    echo $((count + 1)) >"$0.count"
    noise=$((count * 7 % 5))
    case "$MANYCORE_LOCK" in
        futex:delay=2) echo "rate: $((200 + 2 * noise)).0 ops" ;;
        *) echo "rate: $((100 + noise)).0 ops" >&2 ;;
    esac
"#;

/// Compares locks in that program.
fn compare_known(options: &[&str]) -> Output {
    let directory = directory();
    let program = executable(directory.path(), "known", KNOWN);
    let metric = ["--metric", r"rate: ([0-9.]+) ops"];
    let program = ["--", program.to_str().unwrap()];
    let output =
        manycore(&[&["compare"], &metric[..], options, &program[..]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn json(options: &[&str], script: &str) -> Value {
    let options = [options, &["--json"]].concat();
    serde_json::from_str(&printed(&mut compare(&options, script))).unwrap()
}

#[test]
fn a_winner_is_found() {
    let text = stdout(&compare_known(&["--runs", "9", "--lock", "futex:delay=1,futex:delay=2"]));
    let sentence = text.lines().last().unwrap();
    assert!(sentence.starts_with("futex:delay=2 wins: "), "{text}");
    assert!(text.contains("more is better; 9 runs of each, seed 1"), "{text}");
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("---")).collect();
    let line = |lock: &str| rows.iter().find(|line| line.trim_start().starts_with(lock)).unwrap();
    assert!(line("futex:delay=2").contains("better"), "{text}");
    assert!(line("futex:delay=1").contains("no difference"), "{text}");
    assert!(line("glibc").contains("base line"), "{text}");
}

#[test]
fn less_can_be_better() {
    let text =
        stdout(&compare_known(&["--lower-is-better", "--runs", "6", "--lock", "futex:delay=2"]));
    assert!(text.ends_with("glibc wins: futex:delay=2 is worse.\n"), "{text}");
}

#[test]
fn without_a_difference_there_is_none() {
    let text = stdout(&compare_known(&["--runs", "9", "--lock", "futex"]));
    assert!(text.ends_with("\nNo difference.\n"), "{text}");
}

#[test]
fn wall_time_is_seen() {
    let script = r#"case "$MANYCORE_LOCK" in futex) sleep 0.01 ;; *) sleep 0.3 ;; esac"#;
    let result = json(&["--runs", "5", "--lock", "futex", "-q"], script);
    // Far apart, and no verdict: this machine may be busy with anything meanwhile.
    let glibc = result["measurements"][0]["value"].as_f64().unwrap() / 1e9;
    let ratio = result["measurements"][1]["metrics"]["ratio"]["value"].as_f64().unwrap();
    assert!(glibc >= 0.3 && ratio < 1.0, "{glibc} s, {ratio}");
}

#[test]
fn cpu_time_is_the_programs_and_its_childrens() {
    let script = "sh -c 'i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done'";
    let result = json(&["--runs", "2", "--lock", "futex"], script);
    let of = |place: &Value| place["value"].as_f64().unwrap();
    let measurement = &result["measurements"][0];
    let (cpu, wall) = (of(&measurement["metrics"]["cpu_time"]), of(measurement));
    assert!(cpu > 1e6 && cpu < 1.2 * wall, "{cpu} of {wall}");
}

#[test]
fn json_has_this_shape() {
    let output = compare_known(&["--runs", "6", "--lock", "futex:delay=2", "--json"]);
    let mut result: Value = serde_json::from_slice(&output.stdout).unwrap();
    for measurement in result["measurements"].as_array_mut().unwrap() {
        measurement["parameters"]["command"] = "[path]".into();
    }
    insta::assert_json_snapshot!(result, {
        ".host.*" => "[host]",
        ".measurements[].value" => "[value]",
        ".measurements[].low" => "[low]",
        ".measurements[].high" => "[high]",
        ".measurements[].metrics.*.value" => "[value]",
        ".measurements[].metrics.*.low" => "[low]",
        ".measurements[].metrics.*.high" => "[high]",
        ".comparison.candidates[].values" => "[values]",
        ".comparison.sentence" => "[sentence]",
    });
}

#[test]
fn the_order_is_mixed_and_the_seed_decides_it() {
    let directory = directory();
    let order = |seed: &str, name: &str| {
        let log = directory.path().join(name);
        let script = format!("echo \"${{MANYCORE_LOCK:-glibc}}\" >> {}", log.display());
        printed(&mut compare(&["--runs", "12", "--lock", "futex", "--seed", seed], &script));
        std::fs::read_to_string(log).unwrap()
    };
    let first = order("5", "a");
    assert_eq!(first, order("5", "b"));
    assert_ne!(first, order("6", "c"));
    let lines: Vec<&str> = first.lines().collect();
    // One warm-up and twelve runs of each, each round with both.
    assert_eq!(lines.len(), 26);
    assert!(lines.chunks(2).all(|round| round[0] != round[1]), "{first}");
    assert!(lines.chunks(2).any(|round| round[0] == "futex"), "{first}");
}

#[test]
fn a_budget_leaves_enough_runs_for_a_verdict() {
    let output =
        compare(&["--lock", "futex", "--budget", "1ms", "--json"], "true").output().unwrap();
    assert!(stderr(&output).contains("6 runs of each, the fewest for a verdict"));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["measurements"][1]["repetitions"], 6);
}

#[test]
fn too_few_runs_give_no_verdict() {
    let output = compare_known(&["--runs", "3", "--lock", "futex:delay=2"]);
    assert!(stderr(&output).contains("too few runs for a verdict: 3, and it takes 6"));
    assert!(stdout(&output).contains("\nUndecided: "));
}

#[test]
fn a_failed_run_ends_the_comparison() {
    let script = "test -z \"$MANYCORE_LOCK\" || { echo first; echo 'lock broke' >&2; exit 3; }";
    let said = failure(1, &mut compare(&["--lock", "futex"], script));
    assert_eq!(
        said,
        "manycore: futex (warm-up): the program failed: exit status 3\n    lock broke\n"
    );
    let said = failure(1, &mut compare(&["--lock", "futex"], "kill -SEGV $$"));
    assert!(
        said.starts_with("manycore: glibc (warm-up): the program failed: killed by SIGSEGV"),
        "{said}"
    );
}

#[test]
fn a_metric_that_is_not_printed_is_an_error() {
    let said = failure(1, &mut compare(&["--metric", "x=([0-9]+)", "--lock", "futex"], "echo y=1"));
    assert_eq!(
        said,
        "manycore: glibc (warm-up): no output matches the metric 'x=([0-9]+)'; it ends with\n    y=1\n"
    );
}

#[test]
fn a_hang_is_an_error_that_names_the_lock() {
    let started = Instant::now();
    // The child blocks a thread that waits for the end of the output; it has to be ended as well.
    let word = long_time();
    let script = format!("test -z \"$MANYCORE_LOCK\" || {{ echo stuck; sleep {word}; }}");
    let said = failure(1, &mut compare(&["--lock", "futex", "--timeout", "2s"], &script));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains("futex (warm-up): the program did not end within 2s"), "{said}");
    assert!(said.contains("--timeout") && said.ends_with("    stuck\n"), "{said}");
    eventually("the child is gone", || !runs(&word));
}

#[test]
fn what_a_program_leaves_behind_is_killed() {
    let word = long_time();
    let script = format!("sleep {word} & exit 0");
    printed(&mut compare(&["--runs", "1", "--lock", "futex"], &script));
    eventually("the child is gone", || !runs(&word));
}

#[test]
fn a_signal_ends_all_and_the_command_dies_of_it() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let (directory, word) = (directory(), long_time());
        let mut command = compare(&["--lock", "futex"], &format!("sleep {word}"));
        command.env("TMPDIR", directory.path()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        eventually("the program runs", || runs(&word));
        let pid = rustix::process::Pid::from_child(&child);
        let signal = rustix::process::Signal::from_named_raw(number).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        // It has been killed; the kernel may take a moment to remove it.
        eventually("the program is gone", || !runs(&word));
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            0,
            "its directory is left"
        );
    }
}

#[test]
fn killed_outright_it_takes_the_program_along() {
    let word = long_time();
    let mut command = compare(&["--lock", "futex"], &format!("exec sleep {word}"));
    let mut child = command.spawn().unwrap();
    eventually("the program runs", || runs(&word));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the program is gone", || !runs(&word));
}

#[test]
fn programs_start_with_no_signal_blocked_and_a_broken_pipe_deadly() {
    let script = "grep -E 'SigBlk|SigIgn' /proc/self/status >&2; exit 1";
    let said = failure(1, &mut compare(&["--lock", "futex"], script));
    let mask = |name: &str| {
        let line = said.lines().find(|line| line.contains(name)).unwrap();
        u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap()
    };
    const SIGPIPE: u32 = 13;
    assert_eq!(mask("SigBlk"), 0, "{said}");
    assert_eq!(mask("SigIgn") & (1 << (SIGPIPE - 1)), 0, "{said}");
}

#[test]
fn prepare_and_the_directory_are_fresh_for_each_run() {
    let script = "test $(ls {dir} | wc -l) = 1 && mv {dir}/ready {dir}/used";
    let options = ["--runs", "2", "--lock", "futex", "--prepare", "touch {dir}/ready"];
    printed(&mut compare(&options, script));
    let said =
        failure(1, &mut compare(&["--prepare", "echo no >&2; false", "--lock", "futex"], "true"));
    assert!(said.contains("the command of --prepare failed: exit status 1\n    no"), "{said}");
}

#[test]
fn a_program_without_locks_is_named() {
    let output = compare(&["--runs", "1", "--lock", "futex"], "true").output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("futex: the program took no pthread lock"), "{said}");
}

#[test]
fn a_program_that_the_library_does_not_reach_is_refused() {
    let directory = directory();
    let library = empty_library(directory.path());
    let mut command = compare(&["-q", "--lock", "futex"], "true");
    let said = failure(2, command.env("MANYCORE_PRELOAD", library));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("futex (warm-up): the preload library was in none of"), "{said}");
    assert!(said.contains("LD_PRELOAD"), "{said}");
}

#[test]
fn a_gate_fails_when_a_lock_is_worse() {
    let directory = directory();
    let program = executable(directory.path(), "known", KNOWN);
    let program = program.to_str().unwrap();
    let gate = |lower: &[&str], lock: &str| {
        let options = ["compare", "--json", "--fail-if-slower", "--runs", "6", "--lock", lock];
        let metric = ["--metric", r"rate: ([0-9.]+) ops", "--", program];
        manycore(&[&options[..], lower, &metric].concat()).output().unwrap()
    };
    let worse = gate(&["--lower-is-better"], "futex:delay=2");
    assert_eq!(worse.status.code(), Some(1));
    assert_eq!(stderr(&worse).lines().last(), Some("manycore: futex:delay=2 is worse than glibc"));
    let result: Value = serde_json::from_str(&stdout(&worse)).unwrap();
    assert_eq!(result["comparison"]["candidates"][1]["verdict"], "worse");
    assert_eq!(gate(&[], "futex:delay=2").status.code(), Some(0), "it is better");
}

#[test]
fn more_can_be_shown() {
    let wide = stdout(&compare_known(&["--wide", "--runs", "6", "--lock", "futex:delay=2"]));
    let heading = wide.lines().find(|line| line.starts_with("lock ")).unwrap();
    assert_eq!(heading.matches("95 %").count(), 3, "{wide}");
    assert!(wide.contains(" to 104.0"), "{wide}");
}

#[test]
fn other_statuses_can_be_success() {
    let script = "echo n: 1; exit 3";
    let options = ["--runs", "2", "--lock", "futex", "--metric", "n: ([0-9])"];
    let said = failure(1, &mut compare(&options, script));
    assert!(said.contains("exit status 3"), "{said}");
    let allowed = [&options[..], &["--ok-status", "3,4"]].concat();
    assert!(printed(&mut compare(&allowed, script)).contains("glibc"));
}

/// Counts until it receives a signal, and then prints the count.
const COUNTS: &str =
    "n=0; trap 'echo count: $n; exit 0' TERM INT; while :; do n=$((n+1)); sleep 0.01; done";

#[test]
fn a_server_runs_for_as_long_as_is_said() {
    let options = ["--runs", "2", "--lock", "futex", "--duration", "300ms"];
    let said = failure(2, &mut compare(&options, COUNTS));
    assert!(said.contains("--metric"), "{said}");
    let metric = [&options[..], &["--metric", "count: ([0-9]+)"]].concat();
    let result = json(&metric, COUNTS);
    let values = result["comparison"]["candidates"][0]["values"].as_array().unwrap();
    assert!(values.iter().all(|value| value.as_f64().unwrap() >= 1.0), "{result:#}");
    let late = [&metric[..], &["--timeout", "200ms"]].concat();
    let said = failure(2, &mut compare(&late, COUNTS));
    assert!(said.contains("let --timeout be longer"), "{said}");
}

#[test]
fn a_load_is_ended_like_a_person_would() {
    let load = format!("{COUNTS}; exit 1");
    let options = ["--runs", "2", "--lock", "futex", "--duration", "300ms", "--load", &load];
    let metric = ["--metric", "count: ([0-9]+)", "--ready", "log:up"];
    let server = "echo up; while :; do sleep 0.02; done";
    let result = json(&[&options[..], &metric].concat(), server);
    assert_eq!(result["comparison"]["candidates"].as_array().unwrap().len(), 2);
}
