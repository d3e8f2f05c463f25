//! Real network programs, unchanged and with their system calls moved: they send the same bytes and
//! end in the same way.
//!
//! | module | what is in it |
//! |---|---|
//! | [`body`] | contents whose checksum is known, and their transfer over HTTP |
//! | [`web`] | servers of files: Apache prefork with mod_php, nginx, Python, Java |
//! | [`stores`] | Redis, memcached, PostgreSQL, each with its own tool as load |
//! | [`streams`] | iperf3 and nuttcp: both ends of a connection |
//! | [`trace`] | which thread makes a call, seen from outside by strace |
//!
//! Each program runs privately: on a loopback port that was free, or on a socket in a temporary
//! directory, which is removed at the end.

pub mod body;
pub mod stores;
pub mod streams;
pub mod trace;
pub mod web;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::child::{self, End};
use crate::soak::launch::Launch;
use crate::soak::process::Process;
use crate::soak::{Failure, Result, ensure};

/// The time that a server has to start, or to end.
pub const GRACE: Duration = Duration::from_secs(30);

/// A port of the loopback interface that is free at this moment. If another program takes it
/// meanwhile, the server fails to start.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    Ok(address.map_err(Failure::because("no free port"))?.port())
}

/// Waits until a server accepts connections.
pub fn await_port(server: &Process, port: u16) -> Result<()> {
    await_ready(server, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
}

/// Waits until a server is ready.
pub fn await_ready(server: &Process, is_ready: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + GRACE;
    while !is_ready() {
        if server.has_ended()? {
            return Err(server.blame(Failure::new("the server ends at start")));
        }
        if Instant::now() >= deadline {
            return Err(server.hangs("does not come up"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Runs a program to its end, which has to be a success; returns its output.
pub fn succeeds(launch: Launch, program: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = launch.command(program);
    let outcome = child::run(command.args(arguments), "", 2 * GRACE);
    let is_success = matches!(outcome.end, End::Exited(status) if status.success());
    ensure(is_success, || {
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        let last: Vec<_> = said.lines().rev().take(4).collect();
        format!("{} {arguments:?}: {}; it said last: {last:?}", program.display(), outcome.end)
    })?;
    Ok(outcome.stdout)
}

/// Runs a program without root's rights if the tests run as root: servers refuse to keep them.
pub fn as_nobody(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
