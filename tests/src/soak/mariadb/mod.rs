//! MariaDB under sysbench, and at the same time transfers with checked sums.
//!
//! The server gets two kinds of load at once: sysbench, which makes it busy and checks nothing, and
//! clients of our own, which check everything ([`transfers`]). It uses a small buffer pool that
//! fills while it warms up, and, where its files are in memory, never waits for a disk.

pub mod sysbench;
pub mod transfers;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::drive::{Worker, drive};
use super::launch::{Launch, complaints};
use super::process::Process;
use super::{Failure, Result, ensure, installed, place};
use transfers::Transfers;

/// The time that the server has to start and to shut down, on a busy machine under a slow lock.
const GRACE: Duration = Duration::from_secs(60);
/// The number of clients that make transfers, and of threads in each of the two sysbenches.
const CLIENTS: usize = 4;
const THREADS: usize = 8;

/// What the server's log must not have in it.
const COMPLAINTS: &[&str] =
    &["[ERROR]", "Assertion", "assertion", "got signal", "semaphore wait", "corrupt"];

/// The data directory, in the place of a database.
const DATA: &str = "data";
/// The settings that are the same at installation and later. Few files are forced to disk: only the
/// log and the doublewrite buffer.
const STORAGE: &[&str] = &[
    "--no-defaults",
    "--innodb-log-file-size=16M",
    "--innodb-flush-method=nosync",
    "--debug-no-sync",
];

const SERVER: &[&str] = &[
    "--skip-networking",
    "--max-connections=64",
    "--open-files-limit=1024",
    "--table-open-cache=128",
    "--innodb-buffer-pool-size=16M",
    "--innodb-flush-log-at-trx-commit=0",
    // The server uses its own threads in place of io_uring, which not every machine has, and which
    // takes no locks.
    "--innodb-use-native-aio=OFF",
];

/// A data directory with all tables, from which databases start: an archive in a file without a
/// name, which disappears with the process, however the process ends.
#[derive(Debug)]
pub struct Template(File);

/// A server that runs.
#[derive(Debug)]
pub struct Database {
    server: Process,
    // Goes after the server.
    place: TempDir,
}

impl Template {
    /// Installs one, and fills its tables.
    pub fn make() -> Result<Self> {
        let place = place()?;
        let install = installed("mariadb-install-db", "mariadb-server")?;
        let mut install = Command::new(install);
        install.args(STORAGE).arg(option("datadir", &data(place.path()))).args(as_root());
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        complete(Process::start("install", &mut install, place.path())?)?;
        let database = Database::start_in(place, Launch::Plain)?;
        database.query("", "CREATE DATABASE soak")?;
        sysbench::prepare(&database)?;
        transfers::prepare(&database)?;
        let place = database.stop()?;
        let archive = tempfile::tempfile().map_err(Failure::because("a file for the template"))?;
        let to = archive.try_clone().map_err(Failure::because("a descriptor"))?;
        tar(place.path(), Command::new("tar").args(["-c", DATA]).stdout(to))?;
        Ok(Self(archive))
    }

    /// Copies the data directory into a place.
    fn unpack(&self, place: &Path) -> Result<()> {
        // The file is opened again, to have a position of its own, since several threads may read
        // at once.
        let archive = File::open(format!("/proc/self/fd/{}", self.0.as_raw_fd()));
        let archive = archive.map_err(Failure::because("the template"))?;
        tar(place, Command::new("tar").args(["-x"]).stdin(archive))
    }
}

impl Database {
    /// Starts a server on a copy of a template.
    pub fn start(template: &Template, launch: Launch) -> Result<Self> {
        let place = place()?;
        template.unpack(place.path())?;
        Self::start_in(place, launch)
    }

    fn start_in(place: TempDir, launch: Launch) -> Result<Self> {
        let mut command = launch.command(&installed("mariadbd", "mariadb-server")?);
        command.args(STORAGE).args(SERVER).args(as_root());
        command.arg(option("datadir", &data(place.path())));
        command.arg(option("socket", &socket(place.path())));
        let server = Process::start("mariadbd", &mut command, place.path())?;
        let database = Self { server, place };
        database.wait_until_ready().map_err(|failure| database.server.blame(failure))?;
        Ok(database)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + GRACE;
        while self.query("", "SELECT 1").is_err() {
            ensure(!self.server.has_ended()?, || "mariadbd ends at start".to_owned())?;
            if Instant::now() >= deadline {
                return Err(self.server.hangs("does not come up"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The command line client, in a schema.
    pub fn client(&self, schema: &str) -> Result<Command> {
        let mut client = Command::new(installed("mariadb", "mariadb-client")?);
        client.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"]);
        client.arg(option("socket", &self.socket()));
        client.arg(format!("--database={schema}"));
        Ok(client)
    }

    /// What some SQL prints.
    pub fn query(&self, schema: &str, sql: &str) -> Result<String> {
        let output = self.client(schema)?.args(["--execute", sql]).output();
        let output = output.map_err(Failure::because("cannot start mariadb"))?;
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        ensure(output.status.success(), || format!("{sql}: {}", text(&output.stderr)))?;
        Ok(text(&output.stdout))
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        socket(self.place.path())
    }

    /// Where files for this database may be put.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// The server.
    pub fn server(&self) -> &Process {
        &self.server
    }

    /// Shuts the server down in order. Returns its directory.
    pub fn stop(self) -> Result<TempDir> {
        let Self { server, place } = self;
        let status = server.stop(GRACE)?;
        ensure(status.success(), || format!("mariadbd ends with {status}"))?;
        Ok(place)
    }

    /// Fails with what its log complains of.
    fn expect_quiet_log(&self) -> Result<()> {
        let log = self.server.said();
        let own = log.lines().filter(|line| COMPLAINTS.iter().any(|word| line.contains(word)));
        let complaint = own.chain(complaints(&log)).next();
        complaint.map_or(Ok(()), |line| Err(Failure::new(format!("mariadbd complains: {line}"))))
    }
}

/// Soaks a server under a lock; returns the number of served requests. CPUs are always
/// oversubscribed: the server has some twenty threads of its own.
pub fn soak(template: &Template, launch: Launch, length: Duration) -> Result<String> {
    let database = Database::start(template, launch)?;
    let account = load(&database, length).map_err(|failure| database.server.blame(failure))?;
    let log = database.server.said();
    database.stop().map_err(|failure| failure.with("its log", &super::process::tail(&log)))?;
    Ok(account)
}

fn load(database: &Database, length: Duration) -> Result<String> {
    let transfers = Transfers::new(database);
    let mut workers: Vec<_> = (0..CLIENTS)
        .map(|client| Worker::new(format!("client {client}"), |shift: &_| transfers.make(shift)))
        .collect();
    workers.push(Worker::new("audit", |shift: &_| transfers.audit(shift)));
    for test in ["oltp_update_non_index", "oltp_read_write"] {
        workers.push(Worker::new(test, move |shift: &_| {
            sysbench::run(database, test, THREADS, length, shift)
        }));
    }
    let account = drive(&database.server, length, workers)?;
    let made: u64 = account.done[..CLIENTS].iter().sum();
    transfers.check(made)?;
    sysbench::check(database)?;
    database.expect_quiet_log()?;
    account.course.expect_flat()?;
    let [.., audits, updates, mixed] = account.done[..] else { unreachable!("the workers above") };
    Ok(format!(
        "{made} transfers, {audits} audits, {updates} updates, {mixed} mixed; {}",
        account.course
    ))
}

/// Packs or unpacks.
fn tar(place: &Path, tar: &mut Command) -> Result<()> {
    let done = tar.current_dir(place).stderr(Stdio::piped()).spawn();
    let done = done.and_then(|child| child.wait_with_output()).map_err(Failure::because("tar"))?;
    ensure(done.status.success(), || {
        format!("tar: {}: {}", done.status, String::from_utf8_lossy(&done.stderr))
    })
}

fn data(place: &Path) -> PathBuf {
    place.join(DATA)
}

fn socket(place: &Path) -> PathBuf {
    place.join("socket")
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(format!("--{name}="));
    option.push(path);
    option
}

/// A server that root starts needs an option which says that this is intended.
fn as_root() -> Option<&'static str> {
    geteuid().is_root().then_some("--user=root")
}

/// Waits for a command that has to succeed.
fn complete(process: Process) -> Result<()> {
    let ended = process.ends_within(GRACE)?;
    let said = process.said();
    ensure(ended && process.finish(GRACE)?.success(), || "a preparation fails".to_owned())
        .map_err(|failure| failure.with("it said", &super::process::tail(&said)))
}
