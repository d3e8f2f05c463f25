//! Bad input: one line on stderr that names the culprit and the remedy, nothing on stdout, exit
//! status 2.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{compile, copy, directory, executable, failure, manycore};

const HELLO: &str = "int main(void) { return 0; }";

/// Runs a command that must be refused, with an error of one line that contains all of these words.
fn refused(command: &mut Command, words: &[&str]) {
    let said = failure(2, command);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("manycore: "), "{said}");
    for word in words {
        assert!(said.contains(word), "'{word}' is not in: {said}");
    }
}

fn run(program: &Path) -> Command {
    manycore(&["run", "--lock", "futex", "--", program.to_str().unwrap()])
}

#[test]
fn locks() {
    refused(
        &mut manycore(&["run", "--lock", "futx", "--", "true"]),
        &["futx", "did you mean 'futex'", "manycore locks"],
    );
    refused(&mut manycore(&["run", "--lock", "xyzzy", "--", "true"]), &["xyzzy", "manycore locks"]);
    refused(
        &mut manycore(&["run", "--lock", "futex:round=3", "--", "true"]),
        &["round=3", "rounds=NUMBER"],
    );
    refused(&mut manycore(&["compare", "--lock", "futex,mutx", "--", "true"]), &["mutx"]);
    refused(
        &mut manycore(&["compare", "--lock", "futex,futex", "--", "true"]),
        &["futex", "twice", "once"],
    );
    refused(
        &mut manycore(&["compare", "--lock", "glibc", "--", "true"]),
        &["base line", "manycore locks"],
    );
}

#[test]
fn system_calls() {
    let explain = |policy: &str| manycore(&["run", "--syscalls", policy, "--explain"]);
    refused(&mut explain("near"), &["'near'", "nic-llc", "auto"]);
    refused(&mut explain("nic-llc:turbo=yes"), &["turbo=yes", "mechanism="]);
    refused(&mut explain("nic-llc:mechanism=fast"), &["mechanism=fast", "uring"]);
    refused(&mut explain("auto:threshold=3"), &["auto", "threshold", "cross-node"]);
    refused(&mut explain("auto:device=nosuch0"), &["'nosuch0'", "lo"]);
    refused(&mut explain("auto:cpus=0,9999"), &["cpus=0,9999", "9999", "choose among"]);
    refused(&mut manycore(&["run", "--explain"]), &["--syscalls"]);
    refused(
        &mut manycore(&["run", "--syscalls", "auto", "--json", "true"]),
        &["--json", "--explain"],
    );
    // `auto` may find that there is nothing to move, and need no library.
    let mut missing = manycore(&["run", "--syscalls", "nic-llc", "true"]);
    missing.env("MANYCORE_SYSCALLS_PRELOAD", "/nonexistent.so");
    refused(&mut missing, &["/nonexistent.so", "`make build`", "MANYCORE_SYSCALLS_PRELOAD"]);
}

#[test]
fn usage() {
    refused(&mut manycore(&["run"]), &["CMD", "--help"]);
    refused(&mut manycore(&["run", "--lok", "futex", "true"]), &["--lok", "--lock"]);
    refused(&mut manycore(&["rum"]), &["rum", "run"]);
    refused(&mut manycore(&["run", "--json", "true"]), &["--json"]);
    let both = ["run", "--syscalls", "auto", "--explain", "--stats", "--json", "true"];
    refused(&mut manycore(&both), &["two documents", "--explain"]);
    refused(&mut manycore(&["compare", "--runs", "0", "true"]), &["--runs", "1..=1000"]);
    refused(&mut manycore(&["compare", "--budget", "soon", "true"]), &["--budget", "soon"]);
}

#[test]
fn what_compare_is_told() {
    refused(
        &mut manycore(&["compare", "--metric", "(", "true"]),
        &["regular expression '('", "backslash"],
    );
    refused(&mut manycore(&["compare", "--metric", "rate", "true"]), &["no group", "parentheses"]);
    refused(
        &mut manycore(&["compare", "--load", "true", "sleep", "9"]),
        &["ready", "--ready", "{port}"],
    );
    refused(&mut manycore(&["compare", "--ready", "true", "sleep", "9"]), &["--load"]);
    refused(
        &mut manycore(&["compare", "--load", "true", "--ready", "log:(", "sleep", "9"]),
        &["regular expression", "backslash"],
    );
    refused(manycore(&["compare", "true"]).env("TMPDIR", "/nonexistent"), &["directory", "TMPDIR"]);
}

#[test]
fn commands_that_are_not_there() {
    let directory = directory();
    let absent = directory.path().join("absent");
    refused(&mut run(&absent), &["absent", "no such file", "check the path"]);
    refused(&mut manycore(&["run", "no-such-command"]), &["no-such-command", "PATH", "install"]);
    refused(
        &mut manycore(&["compare", "no-such-command"]),
        &["no-such-command", "PATH", "install"],
    );
    refused(&mut run(directory.path()), &["is a directory", "program in it"]);
    let plain = executable(directory.path(), "plain", "echo no interpreter is named\n");
    refused(&mut run(&plain), &["plain", "'#!' line", "#!/bin/sh"]);
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    refused(&mut run(&plain), &["not executable", "chmod +x"]);
}

#[test]
fn programs_without_a_dynamic_linker() {
    let directory = directory();
    for flag in ["-static", "-static-pie"] {
        let program = compile(directory.path(), &flag[1..], HELLO, &[flag]);
        refused(&mut run(&program), &[&flag[1..], "statically linked", "without -static"]);
    }
}

#[test]
fn programs_for_other_machines() {
    let directory = directory();
    let program = fs::read(compile(directory.path(), "hello", HELLO, &[])).unwrap();
    let altered = |name: &str, at: usize, byte: u8| {
        let mut copy = program.clone();
        copy[at] = byte;
        executable(directory.path(), name, copy)
    };
    const CLASS: usize = 4;
    const MACHINE: usize = 18;
    refused(&mut run(&altered("small", CLASS, 1)), &["small", "32-bit", "64 bits"]);
    refused(&mut run(&altered("arm", MACHINE, 183)), &["arm", "64-bit Arm", "x86-64", "build it"]);
    refused(
        &mut run(&executable(directory.path(), "cut", &program[..32])),
        &["cut", "neither an ELF"],
    );
}

#[test]
fn programs_of_other_c_libraries() {
    let directory = directory();
    let with_loader = |name: &str, loader: &str| {
        compile(directory.path(), name, HELLO, &[&format!("-Wl,--dynamic-linker={loader}")])
    };
    refused(&mut run(&with_loader("m", "/lib/ld-musl-x86_64.so.1")), &["musl", "against glibc"]);
    refused(&mut run(&with_loader("a", "/lib/linker64")), &["linker64", "not glibc's"]);
    refused(
        &mut run(&with_loader("x", "/lib/absent/ld-linux.so.9")),
        &["ld-linux.so.9", "not installed"],
    );
}

#[test]
fn programs_with_privileges() {
    let directory = directory();
    let program = compile(directory.path(), "hello", HELLO, &[]);
    for (mode, word) in [(0o4755, "setuid"), (0o2755, "setgid")] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        refused(&mut run(&program), &[word, "LD_PRELOAD", "copy"]);
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // Version 2, effective, cap_net_raw permitted: what `setcap cap_net_raw+ep` stores.
    let mut capabilities = [0_u8; 20];
    capabilities[..8].copy_from_slice(&[1, 0, 0, 2, 0, 0x20, 0, 0]);
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&program, "security.capability", &capabilities, flags) {
        Ok(()) => refused(&mut run(&program), &["file capabilities", "LD_PRELOAD", "copy"]),
        // Only a privileged account can give capabilities to a file, and some file systems have
        // none.
        Err(error) => assert!(matches!(error, rustix::io::Errno::PERM | rustix::io::Errno::NOTSUP)),
    }
}

#[test]
fn scripts_are_judged_by_their_interpreters() {
    let directory = directory();
    let fixed = compile(directory.path(), "fixed", HELLO, &["-static"]);
    let fixed = fixed.to_str().unwrap();
    let script = |name: &str, line: &str| executable(directory.path(), name, format!("#!{line}\n"));
    refused(&mut run(&script("a", fixed)), &["/a'", "run by", "fixed", "statically linked"]);
    refused(
        &mut run(&script("b", &format!("/usr/bin/env {fixed}"))),
        &["/b'", "statically linked"],
    );
    refused(
        &mut run(&script("c", &format!("/usr/bin/env -S A=1 {fixed} -x"))),
        &["/c'", "statically linked"],
    );
    refused(
        &mut run(&script("d", "/nonexistent/perl -w")),
        &["/d'", "/nonexistent/perl", "no such file"],
    );
    refused(&mut run(&script("e", directory.path().join("e").to_str().unwrap())), &["circle"]);
    refused(&mut manycore(&["run", "--", "env", "A=1", fixed]), &["'env'", "statically linked"]);
}

#[test]
fn the_preload_library() {
    let directory = directory();
    let named = |path: &str| {
        let mut command = manycore(&["run", "--lock", "futex", "true"]);
        command.env("MANYCORE_PRELOAD", path);
        command
    };
    refused(
        &mut named("/nonexistent.so"),
        &["/nonexistent.so", "`make build`", "MANYCORE_PRELOAD"],
    );
    let text = executable(directory.path(), "text.so", "nothing");
    refused(
        &mut named(text.to_str().unwrap()),
        &["text.so", "not an x86-64 shared library", "`make build`"],
    );
    let blank = compile(directory.path(), "a b.so", "", &["-shared", "-fPIC"]);
    refused(&mut named(blank.to_str().unwrap()), &["a b.so", "copy", "MANYCORE_PRELOAD"]);

    // Without the variable, the library is searched for beside the command and in ../lib/manycore.
    let installed = directory.path().join("manycore");
    copy(Path::new(env!("CARGO_BIN_EXE_manycore")), &installed);
    let mut alone = Command::new(installed);
    alone.args(["run", "--lock", "futex", "true"]).env_remove("MANYCORE_PRELOAD");
    refused(
        &mut alone,
        &["libmanycore_preload.so", "lib/manycore", "`make build`", "MANYCORE_PRELOAD"],
    );
}

#[test]
fn output_that_cannot_be_written() {
    for command in [&["locks"][..], &["man"], &["completions", "bash"], &["locks", "--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        refused(manycore(command).stdout(full), &["stdout", "No space left", "redirect"]);
    }
}

#[test]
fn manual_pages_that_cannot_be_written() {
    refused(&mut manycore(&["man", "--out", "/dev/null/man"]), &["/dev/null/man", "may write"]);
}
