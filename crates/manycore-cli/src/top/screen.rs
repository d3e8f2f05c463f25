//! The terminal: taken for as long as the pictures are shown, and given back whatever happens.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use crate::failure::{Failure, Result};
use crate::signals::Inbox;
use crate::top::draw::draw;
use crate::top::source::Source;
use crate::top::state::{Action, State};

/// How often keys, signals and the kernel are looked after.
pub const TURN: Duration = Duration::from_millis(100);

/// The terminal in its other screen, with each key as it comes.
struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal. If this command panics, it is given back before the message.
    fn open() -> Result<Self> {
        let terminal = ratatui::try_init().map_err(|error| {
            Failure::bad_input(
                format!("the terminal cannot be used: {error}"),
                "print the pictures instead: --iterations N",
            )
        })?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Says on stderr if it cannot.
        ratatui::restore();
    }
}

/// Whether there is a terminal to draw on.
pub fn check() -> Result<()> {
    if io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::bad_input("stdout is no terminal", "print the pictures instead: --iterations N"))
}

/// Shows the program until somebody quits.
pub fn show(source: &mut Source, state: &mut State, inbox: &mut Inbox) -> Result<()> {
    let mut screen = Screen::open()?;
    let mut next = Instant::now();
    let mut is_changed = true;
    loop {
        let now = Instant::now();
        let is_looking = !state.is_paused && state.ended.is_none();
        if is_looking && (now >= next || source.has_ended(inbox)?) {
            let rest = source.look(state, inbox)?;
            next = now + state.interval.max(rest);
            is_changed = true;
        }
        if std::mem::take(&mut is_changed) {
            screen.terminal.draw(|frame| draw(frame, state)).map_err(gone)?;
        }
        let wait = TURN.min(next.saturating_duration_since(Instant::now()));
        let wait = if state.is_paused || state.ended.is_some() { TURN } else { wait };
        if event::poll(wait).map_err(gone)? {
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
            return Err(Failure::Interrupted(arrived.signal));
        }
        source.look_after();
    }
}

fn gone(error: io::Error) -> Failure {
    Failure::failed(format!("the terminal is gone: {error}"))
}
