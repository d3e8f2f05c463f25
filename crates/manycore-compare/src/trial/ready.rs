//! When a server can be put under load.

use std::ffi::{OsStr, OsString};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use regex_lite::Regex;

use super::shell;
use super::trial_dir::{Log, TrialDir};
use manycore_launch::child::{Running, Wait};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::pattern::regex;
use manycore_launch::signals::Inbox;

/// How long one attempt to connect may take: the address is a near one.
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// What shows that a server is ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// A shell command succeeds.
    Command(OsString),
    /// The address accepts a connection.
    Tcp(OsString),
    /// The socket accepts a connection.
    Unix(OsString),
    /// The server has written a line that matches.
    Log(Regex),
}

impl FromStr for Ready {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text.split_once(':') {
            Some(("tcp", port)) if !port.contains(':') => {
                Self::Tcp(format!("127.0.0.1:{port}").into())
            }
            Some(("tcp", address)) => Self::Tcp(address.into()),
            Some(("unix", path)) => Self::Unix(path.into()),
            Some(("log", pattern)) => Self::Log(regex(pattern)?),
            _ => Self::Command(text.into()),
        })
    }
}

impl Ready {
    /// Whether the server, which writes to `log`, is ready now. Takes no longer than until
    /// `deadline`.
    pub fn probe(
        &self,
        dir: &TrialDir,
        log: &Log,
        deadline: Instant,
        inbox: &mut Inbox,
    ) -> Result<bool> {
        Ok(match self {
            Self::Command(text) => {
                let (stdout, stderr) = dir.log("ready").open()?;
                let mut probe =
                    Running::spawn(shell(&dir.fill(text)), stdout, stderr).map_err(|error| {
                        Failure::failed(format!("cannot run the readiness probe: {error}"))
                    })?;
                if probe.wait_until(deadline, inbox)? == Wait::TimedOut {
                    return Ok(false);
                }
                let ended = probe.reap().map_err(|error| Failure::failed(error.to_string()))?;
                ended.status.success()
            }
            Self::Tcp(address) => connects(&dir.fill(address))?,
            Self::Unix(path) => UnixStream::connect(PathBuf::from(dir.fill(path))).is_ok(),
            Self::Log(pattern) => pattern.is_match(&log.read()?),
        })
    }
}

fn connects(address: &OsStr) -> Result<bool> {
    let address = address.to_string_lossy();
    let mut candidates = address.to_socket_addrs().map_err(|error| {
        Failure::bad_input(
            format!("cannot connect to '{address}': {error}"),
            "write --ready tcp:HOST:PORT, tcp:PORT or tcp:{port}",
        )
    })?;
    Ok(candidates.any(|candidate| TcpStream::connect_timeout(&candidate, CONNECT_MAX).is_ok()))
}
