//! The database: its tables, made once and copied for every run; the server and its load.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use crate::cpus;
use rustix::process::geteuid;
use tempfile::TempDir;

use super::Point;
use manycore_compare::metric::Metric;
use manycore_compare::trial::{Load, Plan, Ready};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;

const TRANSACTIONS: &str = include_str!("transactions.lua");

/// How long the server may take to start, and to shut down.
const GRACE: Duration = Duration::from_secs(120);
/// How long it may take to make the tables.
const MAKING: Duration = Duration::from_secs(1_800);

/// Programs and the Debian packages that they are in.
const PROGRAMS: [(&str, &str); 5] = [
    ("mariadbd", "mariadb-server"),
    ("mariadb-install-db", "mariadb-server"),
    ("mariadb", "mariadb-client"),
    ("sysbench", "sysbench"),
    ("taskset", "util-linux"),
];

/// The server's options. Everything fits into memory and no thread waits for a disk, so only the
/// locks remain.
const SERVER: &str = "--no-defaults --skip-networking --max-connections=1100 --innodb-buffer-pool-size=512M \
     --innodb-log-file-size=64M --innodb-flush-method=nosync --debug-no-sync --innodb-flush-log-at-trx-commit=0 \
     --innodb-use-native-aio=OFF";

/// Read-only and updating transactions, in parts of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    read_only: u32,
    updating: u32,
}

impl Mix {
    /// The share of transactions that update, in percent.
    pub fn updating_percent(self) -> u32 {
        let whole = self.read_only + self.updating;
        (100 * self.updating + whole / 2) / whole
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.read_only, self.updating)
    }
}

impl FromStr for Mix {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        let parts =
            text.split_once(':').and_then(|(r, u)| Some((r.parse().ok()?, u.parse().ok()?)));
        match parts {
            Some((read_only, updating)) if (1..=1_000_000).contains(&(read_only | updating)) => {
                Ok(Self { read_only, updating })
            }
            _ => Err(Failure::bad_input(
                format!("'{text}' is no mix of transactions"),
                "write it as read-only:updating, such as 75:25",
            )),
        }
    }
}

/// How long InnoDB's own latches spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    pub rounds: u32,
    pub delay: u32,
}

impl fmt::Display for Spin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rounds, self.delay)
    }
}

impl FromStr for Spin {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        let parts =
            text.split_once('/').and_then(|(r, d)| Some((r.parse().ok()?, d.parse().ok()?)));
        let Some((rounds, delay @ 0..=6000)) = parts else {
            return Err(Failure::bad_input(
                format!("'{text}' does not say how InnoDB spins"),
                "write it as rounds/delay, such as 30/4; the delay is at most 6000",
            ));
        };
        Ok(Self { rounds, delay })
    }
}

/// A data directory with the tables, and the transactions.
#[derive(Debug)]
pub struct Database {
    place: TempDir,
    rows: u32,
}

impl Database {
    /// Makes one.
    pub fn make(
        rows: u32,
        glibc: &Interposition,
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> Result<Self> {
        installed()?;
        let place = tempfile::Builder::new().prefix("mc-db-").tempdir();
        let place = place.map_err(|error| {
            Failure::bad_input(
                format!("cannot make a directory for the database: {error}"),
                "TMPDIR names a directory that you may write to",
            )
        })?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
        if !place.path().as_os_str().as_encoded_bytes().iter().all(plain) {
            return Err(Failure::bad_input(
                format!("'{}' would have to be quoted for a shell", place.path().display()),
                "let TMPDIR name a directory of letters, digits and /._-+ only",
            ));
        }
        let database = Self { place, rows };
        fs::write(database.path("transactions.lua"), TRANSACTIONS).map_err(|error| {
            Failure::failed(format!("cannot write the transactions for sysbench: {error}"))
        })?;
        terminal.note(format_args!("making three tables of {rows} rows"));
        let data = database.path("data");
        let install = format!(
            "mariadb-install-db --no-defaults --innodb-log-file-size=64M --datadir={data} {} \
             --auth-root-authentication-method=normal --skip-test-db",
            as_root()
        );
        let plan = Plan {
            command: words(&format!(
                "{} --datadir={data}",
                server("", Spin { rounds: 30, delay: 4 })
            )),
            prepare: Some(install.into()),
            load: Some(Load {
                command: database.sysbench("--threads=1 prepare").into(),
                ready: Ready::Unix("{dir}/s".into()),
                ready_timeout: GRACE,
                grace: GRACE,
            }),
            timeout: MAKING,
            ..Plan::default()
        };
        plan.run(glibc, inbox).map_err(|failure| failure.during("making the database"))?;
        Ok(database)
    }

    /// A run at a point: of this length.
    pub fn plan(&self, point: &Point, time: Duration) -> Plan {
        let first: Vec<String> =
            cpus::allowed().iter().take(point.cpus).map(usize::to_string).collect();
        let pinned = format!("taskset -c {} ", first.join(","));
        let load = format!(
            "--threads={} --time={} --updating={} --percentile=99 run",
            point.terminals,
            time.as_secs(),
            point.mix.updating_percent()
        );
        Plan {
            command: words(&format!("{} --datadir={{dir}}/data", server(&pinned, point.spin))),
            prepare: Some(format!("cp -a {} {{dir}}/data", self.path("data")).into()),
            load: Some(Load {
                command: self.sysbench(&load).into(),
                ready: Ready::Unix("{dir}/s".into()),
                ready_timeout: GRACE,
                grace: GRACE,
            }),
            timeout: time + GRACE,
            ..Plan::default()
        }
    }

    fn sysbench(&self, what: &str) -> String {
        let making = if what.ends_with("prepare") {
            "mariadb --no-defaults --user=root --socket={dir}/s --execute='CREATE DATABASE bench' && "
        } else {
            ""
        };
        format!(
            "{making}sysbench {} --mysql-socket={{dir}}/s --mysql-user=root --mysql-db=bench --rows={} {what}",
            self.path("transactions.lua"),
            self.rows
        )
    }

    /// A path without characters that have a special meaning in a shell: see `make`.
    fn path(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }
}

/// What sysbench prints, in transactions a second.
pub fn metric() -> Metric {
    r"transactions: +[0-9]+ +\(([0-9.]+) per sec".parse().expect("a pattern with a group")
}

fn server(pinned: &str, spin: Spin) -> String {
    format!(
        "{pinned}mariadbd {SERVER} --innodb-sync-spin-loops={} --innodb-spin-wait-delay={} --socket={{dir}}/s {}",
        spin.rounds,
        spin.delay,
        as_root()
    )
}

/// The option for root: without it, MariaDB refuses to run as root.
fn as_root() -> &'static str {
    if geteuid().is_root() { "--user=root" } else { "" }
}

fn words(command: &str) -> Vec<OsString> {
    command.split_whitespace().map(OsString::from).collect()
}

fn installed() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has =
        |program: &str| std::env::split_paths(&path).any(|place| place.join(program).is_file());
    match PROGRAMS.iter().find(|(program, _)| !has(program)) {
        None => Ok(()),
        // Debian's PATH of a user leaves out the place of servers.
        Some((program, _)) if Path::new("/usr/sbin").join(program).is_file() => {
            Err(Failure::bad_input(
                format!("{program} is not in the PATH"),
                "put /usr/sbin into it: PATH=$PATH:/usr/sbin",
            ))
        }
        Some((program, package)) => Err(Failure::bad_input(
            format!("{program} is not installed"),
            format!("on Debian, `apt-get install {package}`"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_and_spins_are_read() {
        assert_eq!("75:25".parse::<Mix>().unwrap().updating_percent(), 25);
        assert_eq!("2:1".parse::<Mix>().unwrap().updating_percent(), 33);
        assert_eq!("0:5".parse::<Mix>().unwrap().updating_percent(), 100);
        assert_eq!("30/6".parse::<Spin>().unwrap(), Spin { rounds: 30, delay: 6 });
        for bad in ["", "75", "0:0", "-1:2", "a:b"] {
            assert!(bad.parse::<Mix>().is_err(), "{bad}");
        }
        for bad in ["", "30", "30/", "30/6001", "30:4"] {
            assert!(bad.parse::<Spin>().is_err(), "{bad}");
        }
    }
}
