//! memcached under clients that set, read, delete and count.
//!
//! A value contains its key, so that a value that was read half-written or under another key is
//! noticed ([`client`]). Two counts have to be right: that of the counters, which the clients
//! increment together, and that of the server's own statistics, which each of its threads keeps
//! under a lock.

pub mod client;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::drive::{Worker, drive};
use super::launch::{Launch, complaints};
use super::process::Process;
use super::{Crowd, Failure, Result, ensure, installed, place};
use client::{Client, Tally};

const GRACE: Duration = Duration::from_secs(30);
const THREADS: usize = 8;
const CLIENTS: usize = 16;

/// A server that runs.
#[derive(Debug)]
pub struct Cache {
    server: Process,
    port: u16,
    // Goes after the server.
    _place: TempDir,
}

impl Cache {
    /// Starts one with this many threads.
    pub fn start(launch: Launch, threads: usize) -> Result<Self> {
        let place = place()?;
        let ports = place.path().join("port");
        let mut command = launch.command(&installed("memcached", "memcached")?);
        // The server chooses a free port, and writes its number into a file.
        command.args(["-l", "127.0.0.1", "-p", "-1"]).env("MEMCACHED_PORT_FILENAME", &ports);
        command.args(["-m", "64", "-t"]).arg(threads.to_string());
        if geteuid().is_root() {
            // A server that root starts needs an option which says that this is intended.
            command.args(["-u", "root"]);
        }
        let server = Process::start("memcached", &mut command, place.path())?;
        let port = await_port(&server, &ports).map_err(|failure| server.blame(failure))?;
        Ok(Self { server, port, _place: place })
    }

    /// The loopback port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it in order.
    pub fn stop(self) -> Result<()> {
        // Its directory stays until it has ended.
        let Self { server, _place, .. } = self;
        let status = server.stop(GRACE)?;
        ensure(status.success(), || format!("memcached ends with {status}"))
    }
}

/// The port in a line such as `TCP INET: 40373`.
fn await_port(server: &Process, file: &Path) -> Result<u16> {
    let deadline = Instant::now() + GRACE;
    loop {
        let ports = fs::read_to_string(file).unwrap_or_default();
        let port = ports.lines().find_map(|line| line.strip_prefix("TCP INET: ")?.parse().ok());
        if let Some(port) = port {
            return Ok(port);
        }
        ensure(!server.has_ended()?, || "memcached ends at start".to_owned())?;
        if Instant::now() >= deadline {
            return Err(server.hangs("does not come up"));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Soaks a server under a lock; returns the number of requests that it has served.
pub fn soak(launch: Launch, crowd: Crowd, length: Duration) -> Result<String> {
    let cache = Cache::start(launch, crowd.threads(THREADS))?;
    let account = load(&cache, crowd.threads(CLIENTS), length)
        .map_err(|failure| cache.server.blame(failure))?;
    expect_silence(&cache.server.stderr())?;
    cache.stop()?;
    Ok(account)
}

/// Fails unless the server has printed nothing, except for the library's permitted messages.
fn expect_silence(said: &str) -> Result<()> {
    let others = said.lines().filter(|line| !line.starts_with("manycore: "));
    let complaint = others.chain(complaints(said)).next();
    complaint.map_or(Ok(()), |line| Err(Failure::new(format!("memcached complains: {line}"))))
}

fn load(cache: &Cache, clients: usize, length: Duration) -> Result<String> {
    client::prepare(cache.port)?;
    let tally = Tally::default();
    let worker = |number: usize| {
        let tally = &tally;
        Worker::new(format!("client {number}"), move |shift: &_| {
            client::work(cache.port, tally, shift)
        })
    };
    let account = drive(&cache.server, length, (0..clients).map(worker).collect())?;
    check(cache, &tally)?;
    account.course.expect_flat()?;
    let operations: u64 = account.done.iter().sum();
    // Relaxed: the clients have been joined.
    let increments: u64 = tally.increments.iter().map(|n| n.load(Ordering::Relaxed)).sum();
    Ok(format!("{operations} operations, {increments} increments; {}", account.course))
}

/// Fails unless the server has counted what the clients have counted.
fn check(cache: &Cache, tally: &Tally) -> Result<()> {
    let mut client = Client::connect(cache.port)?;
    // Relaxed throughout: the clients have been joined.
    let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
    for (number, acknowledged) in tally.increments.iter().enumerate() {
        let (counted, acknowledged) = (client.counter(number)?, value(acknowledged));
        ensure(counted == acknowledged, || {
            format!("lost updates: counter {number} is {counted} after {acknowledged} increments")
        })?;
    }
    ensure(client.statistic("evictions")? == 0, || "the cache is too small for the test".into())?;
    for (name, expected) in [
        ("cmd_set", value(&tally.sets) + client::prepared()),
        // The counters have just been read.
        ("cmd_get", value(&tally.gets) + tally.increments.len() as u64),
        ("incr_hits", tally.increments.iter().map(value).sum()),
    ] {
        let counted = client.statistic(name)?;
        ensure(counted == expected, || {
            format!("lost updates: the server counts {counted} {name}, the clients {expected}")
        })?;
    }
    Ok(())
}
