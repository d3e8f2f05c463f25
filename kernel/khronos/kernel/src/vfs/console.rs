//! The console: lines from the serial port, with echo and the keys that end, erase and interrupt.

use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicU32, Ordering};

use khronos_fs::Stat;

use super::file::Object;
use super::poll;
use crate::call::errno::{Errno, Result};
use crate::drive::uart;
use crate::mm::user;
use crate::sync::order::Rank;
use crate::sync::spin::IrqSpin;
use crate::sync::wait::{Patience, WaitQueue};
use crate::task::signal;

const CONTROL_C: u8 = 3;
const CONTROL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CONTROL_U: u8 = 21;
const DELETE: u8 = 127;

/// Settings of terminals: `termios`, 36 bytes for Linux' calls.
const SETTINGS_BYTES: usize = 36;
const CR_TO_NL: u32 = 0o400; // of input
const POST_PROCESS: u32 = 1; // of output
const SIGNALS: u32 = 1; // the rest: local
const CANONICAL: u32 = 2;
const ECHO: u32 = 8;

struct State {
    input: u32,
    output: u32,
    local: u32,
    rest: [u8; SETTINGS_BYTES],
    /// The line that is being typed.
    line: VecDeque<u8>,
    /// What can be read.
    ready: VecDeque<u8>,
    /// Ends of input that can be read: how many bytes are before the first.
    ends: VecDeque<usize>,
}

static STATE: IrqSpin<State> = IrqSpin::new(
    Rank::Console,
    State {
        input: CR_TO_NL,
        output: POST_PROCESS | 4,
        local: SIGNALS | CANONICAL | ECHO | 0o60 | 0o100_000,
        rest: [0; SETTINGS_BYTES],
        line: VecDeque::new(),
        ready: VecDeque::new(),
        ends: VecDeque::new(),
    },
);
static CHANGED: WaitQueue = WaitQueue::new();
/// The process group that ^C interrupts.
static FOREGROUND: AtomicU32 = AtomicU32::new(0);

/// A byte has come. Called by an interrupt.
pub fn receive(byte: u8) {
    let mut state = STATE.lock();
    let byte = if byte == b'\r' && state.input & CR_TO_NL != 0 { b'\n' } else { byte };
    if byte == CONTROL_C && state.local & SIGNALS != 0 {
        state.line.clear();
        echo(&state, b"^C\n");
        drop(state);
        let group = FOREGROUND.load(Ordering::Relaxed); // Relaxed: a setting
        signal::send_to_group(group, signal::SIGINT);
        return;
    }
    if state.local & CANONICAL == 0 {
        echo(&state, &[byte]);
        state.ready.push_back(byte);
    } else {
        state.type_in(byte);
    }
    drop(state);
    CHANGED.wake_all();
    poll::something_is_ready();
}

impl State {
    fn type_in(&mut self, byte: u8) {
        match byte {
            BACKSPACE | DELETE => {
                if self.line.pop_back().is_some() {
                    echo(self, b"\x08 \x08");
                }
            }
            CONTROL_U => {
                while self.line.pop_back().is_some() {
                    echo(self, b"\x08 \x08");
                }
            }
            CONTROL_D => self.end_line(true),
            b'\n' => {
                echo(self, b"\n");
                self.line.push_back(byte);
                self.end_line(false);
            }
            _ => {
                echo(self, &[byte]);
                self.line.push_back(byte);
            }
        }
    }

    fn end_line(&mut self, by_control_d: bool) {
        let is_end = by_control_d && self.line.is_empty();
        self.ready.append(&mut self.line);
        if is_end {
            self.ends.push_back(self.ready.len());
        }
    }

    fn take(&mut self, into: &mut [u8]) -> Option<usize> {
        let room = match self.ends.front() {
            Some(0) => {
                self.ends.pop_front();
                return Some(0);
            }
            Some(&before) => before.min(into.len()),
            None => into.len(),
        };
        let mut count = 0;
        while count < room {
            let Some(byte) = self.ready.pop_front() else { break };
            into[count] = byte;
            count += 1;
            // A read ends with the line.
            if byte == b'\n' && self.local & CANONICAL != 0 {
                break;
            }
        }
        self.ends.iter_mut().for_each(|end| *end -= count);
        (count > 0).then_some(count)
    }
}

fn echo(state: &State, bytes: &[u8]) {
    if state.local & ECHO != 0 {
        put(state.output & POST_PROCESS != 0, bytes);
    }
}

fn put(process: bool, bytes: &[u8]) {
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(text) if process => {
                uart::write(text);
                uart::write(b"\r\n");
            }
            _ => uart::write(line),
        }
    }
}

/// The console, opened.
pub struct Console(pub Stat);

impl Object for Console {
    fn read(&self, _offset: u64, into: &mut [u8], wait: bool) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let mut take = || STATE.lock().take(into);
        if !wait {
            return take().ok_or(Errno::AGAIN);
        }
        Ok(CHANGED.wait(Patience::SIGNALS, take)?)
    }

    fn write(&self, _offset: Option<u64>, from: &[u8], _wait: bool) -> Result<(u64, usize)> {
        let process = STATE.lock().output & POST_PROCESS != 0;
        put(process, from);
        Ok((0, from.len()))
    }

    fn readiness(&self) -> u32 {
        let state = STATE.lock();
        let has_input = !state.ready.is_empty() || !state.ends.is_empty();
        if has_input { poll::READABLE | poll::WRITABLE } else { poll::WRITABLE }
    }

    fn stat(&self) -> Stat {
        self.0
    }

    fn control(&self, request: u64, argument: u64) -> Result<u64> {
        const GET_SETTINGS: u64 = 0x5401;
        const SET_SETTINGS: core::ops::RangeInclusive<u64> = 0x5402..=0x5404;
        match request {
            GET_SETTINGS => user::write_bytes(argument, &settings())?,
            request if SET_SETTINGS.contains(&request) => {
                let mut bytes = [0; SETTINGS_BYTES];
                user::read_bytes(argument, &mut bytes)?;
                set(&bytes);
            }
            0x540e => {} // TIOCSCTTY
            0x540f => user::write(argument, &FOREGROUND.load(Ordering::Relaxed))?, // TIOCGPGRP
            0x5410 => FOREGROUND.store(user::read(argument)?, Ordering::Relaxed), // TIOCSPGRP
            0x5413 => user::write(argument, &[24u16, 80, 0, 0])?, // TIOCGWINSZ
            _ => return Err(Errno::NOT_TERMINAL),
        }
        Ok(0)
    }
}

fn settings() -> [u8; SETTINGS_BYTES] {
    let state = STATE.lock();
    let mut bytes = state.rest;
    bytes[0..4].copy_from_slice(&state.input.to_le_bytes());
    bytes[4..8].copy_from_slice(&state.output.to_le_bytes());
    bytes[12..16].copy_from_slice(&state.local.to_le_bytes());
    bytes
}

fn set(bytes: &[u8; SETTINGS_BYTES]) {
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut state = STATE.lock();
    state.input = word(0);
    state.output = word(4);
    state.local = word(12);
    state.rest = *bytes;
}

/// ^C goes to this process group.
pub fn set_foreground(group: u32) {
    FOREGROUND.store(group, Ordering::Relaxed); // Relaxed: a setting
}
