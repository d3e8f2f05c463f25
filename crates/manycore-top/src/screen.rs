//! The terminal, which is in another mode while the pictures are shown, and is restored whatever
//! happens.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::fcntl_dupfd_cloexec;

use crate::draw::draw;
use crate::source::Source;
use crate::state::{Action, State};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::signals::Inbox;

/// How often keys, signals and the kernel are looked after.
pub const TURN: Duration = Duration::from_millis(100);

/// The terminal in its other screen, with each key as it comes.
struct Screen {
    terminal: DefaultTerminal,
    keyboard: OwnedFd,
}

impl Screen {
    /// Takes the terminal. If this command panics, it is given back before the message.
    fn open() -> Result<Self> {
        let unusable = |error: io::Error| {
            Failure::bad_input(
                format!("the terminal cannot be used: {error}"),
                "print the pictures instead: --iterations N",
            )
        };
        let keyboard = keyboard().map_err(unusable)?;
        Ok(Self { terminal: ratatui::try_init().map_err(unusable)?, keyboard })
    }

    /// Waits this long for a key or a signal; returns whether crossterm has an event. It would
    /// otherwise read a closed terminal over and over again, and not return.
    fn wait(&self, time: Duration, inbox: &Inbox) -> io::Result<bool> {
        let signals = inbox.fd();
        // It may have read several keys at once; the descriptor does not show these any more.
        for time in [Duration::ZERO, time] {
            let mut fds =
                [PollFd::new(&self.keyboard, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            match poll(&mut fds, Some(&Timespec::try_from(time).unwrap_or_default())) {
                // Another size is a signal, and an event.
                Err(rustix::io::Errno::INTR) => {}
                polled => {
                    polled?;
                    if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
            if event::poll(Duration::ZERO)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where crossterm reads keys.
fn keyboard() -> io::Result<OwnedFd> {
    if io::stdin().is_terminal() {
        return Ok(fcntl_dupfd_cloexec(io::stdin(), 0)?);
    }
    Ok(File::open("/dev/tty")?.into())
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Says on stderr if it cannot.
        ratatui::restore();
    }
}

/// Whether there is a terminal to draw on.
pub fn check() -> Result<()> {
    if !io::stdout().is_terminal() {
        let instead = "print the pictures instead: --iterations N";
        return Err(Failure::bad_input("stdout is no terminal", instead));
    }
    // As serial consoles do not.
    if let Ok((0, _) | (_, 0)) = terminal::size() {
        return Err(Failure::bad_input(
            "the terminal does not know how large it is",
            "tell it (stty rows 24 cols 80), or print the pictures instead: --iterations N",
        ));
    }
    Ok(())
}

/// Shows the program until the user quits.
pub fn show(source: &mut Source, state: &mut State, inbox: &mut Inbox) -> Result<()> {
    let mut screen = Screen::open()?;
    let mut next = Instant::now();
    let mut is_changed = true;
    loop {
        let now = Instant::now();
        let is_looking = !state.is_paused && state.ended.is_none();
        if is_looking && (now >= next || source.has_ended(inbox)?) {
            let rest = source.sample(state, inbox)?;
            next = now + state.interval.max(rest);
            is_changed = true;
        }
        if std::mem::take(&mut is_changed) {
            screen.terminal.draw(|frame| draw(frame, state)).map_err(gone)?;
        }
        let wait = TURN.min(next.saturating_duration_since(Instant::now()));
        let wait = if state.is_paused || state.ended.is_some() { TURN } else { wait };
        if screen.wait(wait, inbox).map_err(gone)? {
            is_changed = true;
            let before = state.interval;
            match event::read().map_err(gone)? {
                Event::Key(key) if state.key(key) == Action::Quit => return Ok(()),
                _ => {}
            }
            if state.interval < before {
                next = next.min(Instant::now() + state.interval);
            }
        }
        if let Some(arrived) = inbox.take() {
            return Err(Failure::Interrupted(arrived.signal()));
        }
        source.look_after();
    }
}

fn gone(error: io::Error) -> Failure {
    Failure::failed(format!("the terminal is gone: {error}"))
}
