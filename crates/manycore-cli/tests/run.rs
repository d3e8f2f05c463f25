//! `manycore run`: the program's own environment, input, output and end.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use support::{failure, library, manycore, printed};

/// Runs a shell script under the lock `futex`.
fn script(text: &str) -> std::process::Command {
    manycore(&["run", "--lock", "futex", "--", "sh", "-c", text])
}

#[test]
fn exit_status_is_the_programs() {
    for status in [0, 1, 2, 77, 255] {
        let done = script(&format!("exit {status}")).status().unwrap();
        assert_eq!(done.code(), Some(status));
    }
}

#[test]
fn death_by_a_signal_is_the_programs() {
    let done = script("kill -USR1 $$").status().unwrap();
    assert_eq!(done.signal(), Some(10));
}

#[test]
fn signals_reach_the_program_and_nothing_is_left() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let text = format!(
            "trap 'echo caught; exit 42' {signal}; echo ready; while :; do sleep 0.01; done"
        );
        let mut child = script(&text).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(lines.next().unwrap().unwrap(), "caught");
        assert_eq!(child.wait().unwrap().code(), Some(42));
        // The end of the output: no process that could write to it is left.
        assert!(lines.next().is_none());
    }
}

#[test]
fn the_library_comes_first_and_others_stay() {
    let library = library().to_str().unwrap();
    let text = "echo \"$MANYCORE_LOCK $LD_PRELOAD\"";
    assert_eq!(printed(&mut script(text)), format!("futex {library}\n"));

    let other = format!("/lib/libmanycore_preload.so {library}.other");
    let _copy = std::fs::copy(library, format!("{library}.other")).unwrap();
    let output = script(text).env("LD_PRELOAD", other).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown, format!("futex {library}:{library}.other\n"));
}

#[test]
fn glibc_leaves_the_program_as_it_is() {
    let text = "echo \"[$MANYCORE_LOCK] [$LD_PRELOAD]\"";
    let mut command = manycore(&["run", "--lock", "glibc", "--", "sh", "-c", text]);
    // Not even the library is needed.
    command.env("MANYCORE_PRELOAD", "/nonexistent").env("MANYCORE_LOCK", "futex");
    assert_eq!(printed(&mut command), "[] []\n");
}

#[test]
fn arguments_and_input_arrive_as_they_are() {
    let mut command = manycore(&["run", "printf", "%s|", "a b", "", "--lock", "-x"]);
    assert_eq!(printed(&mut command), "a b||--lock|-x|");
    let mut child = script("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through\n");
}

#[test]
fn verbose_says_what_is_run() {
    let output = manycore(&["run", "-v", "--lock", "futex", "--", "true"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("LD_PRELOAD=") && said.contains("MANYCORE_LOCK=\"futex\""), "{said}");
    assert_eq!(failure(0, &mut manycore(&["run", "true"])), "");
}
