//! `manycore compare` with a server and a load.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{directory, eventually, executable, failure, manycore, printed, runs, stderr};

/// Answers each connection to a port or a socket while it holds its lock. `$BEHAVIOUR` chooses its
/// other actions.
const SERVER: &str = r#"
import os, signal, socket, sys, time
where, behaviour = sys.argv[1], os.environ.get("BEHAVIOUR", "")
if behaviour == "dies early":
    sys.exit("cannot bind")
if behaviour == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif behaviour == "crashes at the end":
    signal.signal(signal.SIGTERM, lambda *_: os.abort())
else:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if where.isdigit():
    listener = socket.create_server(("127.0.0.1", int(where)))
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen()
print("now serving", flush=True)
while True:
    connection, _ = listener.accept()
    request = connection.recv(100)
    if request and behaviour == "dies under load":
        sys.exit("out of luck")
    if request:
        connection.sendall(os.environ.get("MANYCORE_LOCK", "glibc").encode())
    connection.close()
"#;

/// Asks the server for its lock; prints a rate that depends on it.
const LOAD: &str = r#"
import socket, sys
where = sys.argv[1]
if where.isdigit():
    connection = socket.create_connection(("127.0.0.1", int(where)), 10)
else:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(where)
connection.sendall(b"which?")
answer = connection.recv(100).decode()
if not answer:
    sys.exit("no answer")
print("rate:", {"glibc": 100, "futex": 150}[answer])
"#;

/// A Python that starts fast: the first one of that name may be a script that searches for one.
fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}

/// Compares under a load; `place` is the argument of both programs: `{port}` or a path.
fn compare(directory: &Path, place: &str, options: &[&str]) -> Command {
    let server = executable(directory, "server.py", SERVER);
    let load = executable(directory, "load.py", LOAD);
    let load = format!("{} {} {place}", python(), load.display());
    let mut arguments =
        vec!["compare", "--lock", "futex", "--metric", "rate: (.*)", "--load", &load];
    arguments.extend(options);
    let server = server.to_str().unwrap();
    arguments.extend(["--", python(), server, place]);
    manycore(&arguments)
}

#[test]
fn the_load_measures_the_server_under_its_lock() {
    let directory = directory();
    let text = printed(&mut compare(directory.path(), "{port}", &["--runs", "6"]));
    assert!(text.ends_with("futex wins: its value is 1.50x of glibc's [1.50, 1.50].\n"), "{text}");
    assert!(text.contains("\nunder load by: "), "{text}");
    let server = directory.path().join("server.py");
    eventually("the server is gone", || !runs(server.to_str().unwrap()));
}

#[test]
fn ways_to_be_ready() {
    let directory = directory();
    for (place, ready) in [
        ("{port}", "tcp:localhost:{port}"),
        ("{port}", "log:now .*ing"),
        ("{dir}/socket", "unix:{dir}/socket"),
        ("{dir}/socket", "test -S {dir}/socket"),
    ] {
        let options = ["--runs", "1", "-q", "--ready", ready];
        printed(&mut compare(directory.path(), place, &options));
    }
}

#[test]
fn a_server_that_is_never_ready_is_an_error() {
    let directory = directory();
    let started = Instant::now();
    let options = ["--ready", "false", "--ready-timeout", "2s"];
    let said = failure(1, &mut compare(directory.path(), "{port}", &options));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(said.contains("glibc (warm-up): the server was not ready within 2s"), "{said}");
    assert!(said.contains("--ready-timeout") && said.ends_with("    now serving\n"), "{said}");
    let server = directory.path().join("server.py");
    eventually("the server is gone", || !runs(server.to_str().unwrap()));
}

#[test]
fn a_server_that_ends_is_an_error() {
    let directory = directory();
    let with = |behaviour| {
        let mut command = compare(directory.path(), "{port}", &[]);
        failure(1, command.env("BEHAVIOUR", behaviour))
    };
    let said = with("dies early");
    assert!(said.contains("the server ended before it was ready"), "{said}");
    assert!(said.ends_with("    cannot bind\n"), "{said}");
    let said = with("dies under load");
    assert!(
        said.contains("the server ended under load: exit status 1\n    out of luck\n"),
        "{said}"
    );
    let said = with("crashes at the end");
    assert!(
        said.contains("the server crashed when it was asked to end: killed by SIGABRT"),
        "{said}"
    );
}

#[test]
fn a_server_that_does_not_end_is_killed_and_that_is_said() {
    let directory = directory();
    let options = ["--runs", "1", "--grace", "100ms"];
    let mut command = compare(directory.path(), "{port}", &options);
    let output = command.env("BEHAVIOUR", "stubborn").output().unwrap();
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains("futex: in 1 of 1 runs the server did not end within 100ms of SIGTERM"),
        "{said}"
    );
    let server = directory.path().join("server.py");
    eventually("the server is gone", || !runs(server.to_str().unwrap()));
}

#[test]
fn a_load_that_fails_is_an_error() {
    let directory = directory();
    let server = executable(directory.path(), "server.py", SERVER);
    let options = ["compare", "--lock", "futex", "--load", "echo refused >&2; exit 4", "--"];
    let server = [python(), server.to_str().unwrap(), "{port}"];
    let said = failure(1, &mut manycore(&[&options[..], &server[..]].concat()));
    assert_eq!(said, "manycore: glibc (warm-up): the load failed: exit status 4\n    refused\n");
}
