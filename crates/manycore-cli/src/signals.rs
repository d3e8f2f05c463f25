//! Signals that ask the command to end while it runs programs of its own.
//!
//! They are collected, not acted upon. Whoever waits for a program sees the signal there, and either stops what it has
//! started and lets the command die of the signal, or hands it on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use crate::failure::{Failure, Result};

/// Signals that have come since it was opened.
#[derive(Debug)]
pub struct Inbox {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// Whether it came from the terminal: then the whole foreground has it, and not this process alone.
    pub from_terminal: bool,
}

impl Inbox {
    /// Starts to collect SIGINT, SIGTERM, SIGHUP and SIGQUIT, but for those that this process ignores: `nohup` means it.
    pub fn open() -> Result<Self> {
        Self::watch().map_err(|error| Failure::failed(format!("cannot catch signals: {error}")))
    }

    fn watch() -> io::Result<Self> {
        let watched =
            [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal));
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(
            read,
            write,
            WithOrigin::default(),
            watched.collect::<Vec<_>>(),
        )?;
        Ok(Self { delivery })
    }

    /// Becomes readable when a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// The next signal that has come, if any has.
    pub fn take(&mut self) -> Option<Arrived> {
        let origin = self.delivery.pending().next()?;
        Some(Arrived { signal: origin.signal, from_terminal: origin.cause == Cause::Kernel })
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zero is a valid value of the structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no new action is given, and the old one is written to a structure of ours.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } == 0;
    known && action.sa_sigaction == libc::SIG_IGN
}
