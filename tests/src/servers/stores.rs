//! Stores under the load of their own tools: Redis, memcached, PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::{GRACE, as_nobody, await_port, await_ready, free_port, succeeds};
use crate::soak::launch::Launch;
use crate::soak::process::Process;
use crate::soak::{Failure, Result, ensure, installed, memcached, place};

/// Runs a private Redis under redis-benchmark, both launched in this way. Then it stores values,
/// which have to be read unchanged.
pub fn redis(launch: Launch) -> Result<()> {
    let place = place()?;
    let port = free_port()?.to_string();
    let mut command = launch.command(&installed("redis-server", "redis-server")?);
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(place.path()).args(["--unixsocket", "s"]);
    let server = Process::start("redis", &mut command, place.path())?;
    let check = || {
        await_port(&server, port.parse().map_err(Failure::because("a port"))?)?;
        let benchmark = installed("redis-benchmark", "redis-tools")?;
        let size = ["-p", &port, "-n", "3000", "-c", "20", "-q", "-t", "ping,set,get,lrange_100"];
        let said = succeeds(launch, &benchmark, &size)?;
        ensure(said.contains("GET") && !said.contains("rror"), || format!("it says: {said}"))?;
        let client = installed("redis-cli", "redis-tools")?;
        let value: String = (0..20_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
        let ask = |more: &[&str]| succeeds(launch, &client, &[&["-p", &port][..], more].concat());
        let stored = ask(&["SET", "key", &value])?;
        ensure(stored.trim() == "OK", || format!("SET: {stored}"))?;
        let got = ask(&["GET", "key"])?;
        ensure(got.trim_end() == value, || "another value comes back".to_owned())
    };
    check().map_err(|failure| server.blame(failure))?;
    let status = server.stop(GRACE)?;
    ensure(status.success(), || format!("Redis ends with {status}"))
}

/// Runs memcached for this long. Its clients check every value and every count.
pub fn memcached(launch: Launch, length: Duration) -> Result<()> {
    memcached::soak(launch, crate::soak::Crowd::Large, length).map(drop)
}

/// The directory of PostgreSQL's programs: Debian keeps them by version, outside of the search
/// path.
fn postgresql(program: &str) -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin").join(program));
    let found = newest.filter(|file| file.is_file()).max();
    found.map_or_else(|| installed(program, "postgresql"), Ok)
}

/// A private PostgreSQL, on a port of its own.
pub struct Postgres {
    server: Process,
    port: String,
    /// The directory, which is removed with its files when this is dropped.
    _place: TempDir,
}

impl Postgres {
    /// Starts one.
    pub fn start(launch: Launch) -> Result<Self> {
        let place = place()?;
        let here = place.path();
        // It refuses to run as root.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(here, open).map_err(Failure::because("a directory for nobody"))?;
        let data = here.join("data");
        let mut init = Launch::Plain.command(&postgresql("initdb")?);
        init.args(["--auth=trust", "--no-sync", "--username=test", "-D"]).arg(&data);
        let made = as_nobody(init.current_dir(here)).output();
        let made = made.map_err(Failure::because("initdb"))?;
        ensure(made.status.success(), || String::from_utf8_lossy(&made.stderr).into_owned())?;
        let port = free_port()?;
        let mut command = launch.command(&postgresql("postgres")?);
        command.arg("-D").arg(&data).arg("-k").arg(here).current_dir(here);
        let options = ["fsync=off", "shared_buffers=32MB", "listen_addresses=127.0.0.1"];
        command.arg("-p").arg(port.to_string()).args(options.iter().flat_map(|o| ["-c", o]));
        let server = Process::start("postgres", as_nobody(&mut command), here)?;
        let postgres = Self { server, port: port.to_string(), _place: place };
        let ready = await_port(&postgres.server, port).and_then(|()| postgres.await_database());
        ready.map_err(|failure| postgres.server.blame(failure))?;
        Ok(postgres)
    }

    /// The server, of which the others are children.
    pub fn process(&self) -> &Process {
        &self.server
    }

    /// Runs a program with some connections to it; returns the program's output.
    fn run(&self, launch: Launch, program: &Path, more: &[&str]) -> Result<String> {
        let there = ["-h", "127.0.0.1", "-p", &self.port, "-U", "test"];
        succeeds(launch, program, &[&there[..], more].concat())
    }

    /// It listens before it can be asked.
    fn await_database(&self) -> Result<()> {
        let asked = installed("pg_isready", "postgresql-client")?;
        await_ready(&self.server, || self.run(Launch::Plain, &asked, &[]).is_ok())
    }

    /// Queries some thousand bytes over a connection of its own, which a child serves.
    pub fn query(&self) -> Result<()> {
        let query = ["-At", "-c", "SELECT repeat('abcdefgh', 1000)", "postgres"];
        let said = self.run(Launch::Plain, &installed("psql", "postgresql-client")?, &query)?;
        ensure(said.trim_end() == "abcdefgh".repeat(1000), || format!("other bytes come: {said}"))
    }

    /// Runs pgbench, which counts transactions; then compares the sums that have to be equal.
    fn bench(&self, launch: Launch) -> Result<()> {
        let bench = postgresql("pgbench")?;
        self.run(launch, &bench, &["-i", "-q", "-s", "1", "postgres"])?;
        let said = self.run(launch, &bench, &["-c", "4", "-j", "2", "-t", "100", "postgres"])?;
        let all = "number of transactions actually processed: 400/400";
        ensure(said.contains(all), || format!("pgbench says: {said}"))?;
        let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history), \
                    (SELECT count(*) FROM pgbench_history)";
        let query = ["-At", "-c", sums, "postgres"];
        let said = self.run(launch, &installed("psql", "postgresql-client")?, &query)?;
        ensure(said.trim() == "t|400", || format!("the sums differ: {said}"))
    }

    /// Ends PostgreSQL. It waits for clients, and there are none any more.
    pub fn stop(self) -> Result<()> {
        let status = self.server.stop(GRACE)?;
        ensure(status.success(), || format!("PostgreSQL ends with {status}"))
    }
}

/// A PostgreSQL of its own under pgbench.
pub fn postgres(launch: Launch) -> Result<()> {
    let postgres = Postgres::start(launch)?;
    postgres.bench(launch).map_err(|failure| postgres.server.blame(failure))?;
    postgres.stop()
}
