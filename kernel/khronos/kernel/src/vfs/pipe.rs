//! Pipes.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use khronos_fs::{Kind, Stat};

use super::dev::{PIPE, stat_of};
use super::file::{File, Object, flags};
use super::poll;
use crate::call::errno::{Errno, Result};
use crate::sync::order::Rank;
use crate::sync::spin::Spin;
use crate::sync::wait::{Patience, WaitQueue};
use crate::task::signal;

/// Bytes that a pipe holds.
const CAPACITY: usize = 64 << 10;
/// How many bytes are written in one piece.
const ATOMIC: usize = 4096;

struct State {
    bytes: VecDeque<u8>,
    readers: u32,
    writers: u32,
}

struct Pipe {
    state: Spin<State>,
    changed: WaitQueue,
}

struct Reader(Arc<Pipe>);
struct Writer(Arc<Pipe>);

/// Makes a pipe; returns its end for reading and its end for writing.
pub fn make(more_flags: u32) -> (Arc<File>, Arc<File>) {
    let state = State { bytes: VecDeque::new(), readers: 1, writers: 1 };
    let pipe = Arc::new(Pipe { state: Spin::new(Rank::Pipe, state), changed: WaitQueue::new() });
    (
        File::new(Arc::new(Reader(pipe.clone())), more_flags),
        File::new(Arc::new(Writer(pipe)), more_flags | flags::WRITE_ONLY),
    )
}

impl Pipe {
    fn has_changed(&self) {
        self.changed.wake_all();
        poll::something_is_ready();
    }

    fn wait<R>(&self, wait: bool, mut get: impl FnMut() -> Option<Result<R>>) -> Result<R> {
        if !wait {
            return get().unwrap_or(Err(Errno::AGAIN));
        }
        self.changed.wait(Patience::SIGNALS, get)?
    }
}

impl Object for Reader {
    fn read(&self, _offset: u64, into: &mut [u8], wait: bool) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let bytes = self.0.wait(wait, || {
            let mut state = self.0.state.lock();
            if state.bytes.is_empty() {
                return (state.writers == 0).then_some(Ok(0));
            }
            let count = into.len().min(state.bytes.len());
            let (front, back) = state.bytes.as_slices();
            let from_front = count.min(front.len());
            into[..from_front].copy_from_slice(&front[..from_front]);
            into[from_front..count].copy_from_slice(&back[..count - from_front]);
            state.bytes.drain(..count);
            Some(Ok(count))
        })?;
        self.0.has_changed();
        Ok(bytes)
    }

    fn readiness(&self) -> u32 {
        let state = self.0.state.lock();
        let hung_up = if state.writers == 0 { poll::HUNG_UP } else { 0 };
        if state.bytes.is_empty() { hung_up } else { hung_up | poll::READABLE }
    }

    fn stat(&self) -> Stat {
        stat_of(Kind::Special, PIPE | 0o600, 0)
    }
}

impl Object for Writer {
    fn write(&self, _offset: Option<u64>, from: &[u8], wait: bool) -> Result<(u64, usize)> {
        let mut done = 0;
        while done < from.len() {
            let left = &from[done..];
            let least = if left.len() <= ATOMIC { left.len() } else { 1 };
            let written = self.0.wait(wait, || {
                let mut state = self.0.state.lock();
                if state.readers == 0 {
                    return Some(Err(Errno::PIPE));
                }
                let room = CAPACITY - state.bytes.len();
                let count = left.len().min(room);
                (room >= least).then(|| {
                    state.bytes.extend(&left[..count]);
                    Ok(count)
                })
            });
            match written {
                Ok(count) => done += count,
                Err(Errno::PIPE) => {
                    signal::raise(signal::SIGPIPE);
                    return Err(Errno::PIPE);
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
            self.0.has_changed();
        }
        Ok((0, done))
    }

    fn readiness(&self) -> u32 {
        let state = self.0.state.lock();
        if state.readers == 0 {
            poll::ERROR | poll::WRITABLE
        } else if CAPACITY - state.bytes.len() >= ATOMIC {
            poll::WRITABLE
        } else {
            0
        }
    }

    fn stat(&self) -> Stat {
        stat_of(Kind::Special, PIPE | 0o600, 0)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.state.lock().readers -= 1;
        self.0.has_changed();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.state.lock().writers -= 1;
        self.0.has_changed();
    }
}
