//! Shared memory and semaphores of System V: what dbench starts with.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Arguments;
use super::errno::{Errno, Result};
use super::files::this;
use super::signals::ended_by_signal;
use super::time::read_duration;
use crate::arch::frame::Frame;
use crate::arch::tsc;
use crate::mm::area::{PAGE, Protection, Shared, Source};
use crate::mm::user;
use crate::sync::order::Rank;
use crate::sync::spin::Spin;
use crate::sync::wait::{Early, Patience, WaitQueue};

/// A key that names nothing: each call makes another.
const PRIVATE: u64 = 0;
const CREATE: u64 = 0o1000;
const EXCLUSIVE: u64 = 0o2000;
const REMOVE: u64 = 0;

/// Things with keys and numbers.
struct Register<T> {
    things: BTreeMap<u64, (u64, T)>,
    next: u64,
}

impl<T> Register<T> {
    const fn new() -> Self {
        Self { things: BTreeMap::new(), next: 1 }
    }

    /// The number of the thing with this key, or of a new one.
    fn get(&mut self, key: u64, how: u64, make: impl FnOnce() -> T) -> Result<u64> {
        let found = self.things.iter().find(|(_, (of, _))| key != PRIVATE && *of == key);
        match found {
            Some(_) if how & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE => Err(Errno::EXISTS),
            Some((&number, _)) => Ok(number),
            None if how & CREATE == 0 && key != PRIVATE => Err(Errno::NO_ENTRY),
            None => {
                let number = self.next;
                self.next += 1;
                self.things.insert(number, (key, make()));
                Ok(number)
            }
        }
    }
}

struct Memory {
    pages: Arc<Shared>,
    bytes: u64,
}

static MEMORIES: Spin<Register<Memory>> = Spin::new(Rank::Small, Register::new());
/// A set of semaphores.
struct Set {
    values: Vec<u16>,
    /// How many threads wait until each is 0.
    zero_waiters: Vec<u16>,
    /// Whether its number was removed. Threads that wait for it may still use it.
    is_removed: bool,
}

static SEMAPHORES: Spin<Register<Arc<Spin<Set>>>> = Spin::new(Rank::Small, Register::new());
static SEMAPHORES_CHANGED: WaitQueue = WaitQueue::new();

pub fn shmget(_: &mut Frame, [key, bytes, how, ..]: Arguments) -> Result<u64> {
    MEMORIES.lock().get(key as u32 as u64, how, || Memory { pages: Shared::new(), bytes })
}

pub fn shmat(_: &mut Frame, [number, wish, ..]: Arguments) -> Result<u64> {
    let memories = MEMORIES.lock();
    let (_, memory) = memories.things.get(&number).ok_or(Errno::INVALID)?;
    let (pages, bytes) = (memory.pages.clone(), memory.bytes);
    drop(memories);
    let protection = Protection(Protection::READ | Protection::WRITE);
    this()?.space().map(wish, bytes.max(PAGE), wish != 0, protection, Source::Shared(pages, 0))
}

pub fn shmdt(_: &mut Frame, [start, ..]: Arguments) -> Result<u64> {
    let space = this()?.space();
    let bytes = space.bytes_from(start).ok_or(Errno::INVALID)?;
    space.unmap(start, bytes).map(|()| 0)
}

pub fn shmctl(_: &mut Frame, [number, what, ..]: Arguments) -> Result<u64> {
    if what != REMOVE {
        return Err(Errno::INVALID);
    }
    // Mappings keep their pages.
    let removed = MEMORIES.lock().things.remove(&number);
    removed.map(|_| 0).ok_or(Errno::INVALID)
}

pub fn semget(_: &mut Frame, [key, count, how, ..]: Arguments) -> Result<u64> {
    if count > 250 {
        return Err(Errno::INVALID);
    }
    let zeros = || alloc::vec![0; count as usize];
    let set = Set { values: zeros(), zero_waiters: zeros(), is_removed: false };
    let make = || Arc::new(Spin::new(Rank::Small, set));
    SEMAPHORES.lock().get(key as u32 as u64, how, make)
}

fn set_of(number: u64) -> Result<Arc<Spin<Set>>> {
    let semaphores = SEMAPHORES.lock();
    semaphores.things.get(&number).map(|(_, set)| set.clone()).ok_or(Errno::INVALID)
}

/// An operation: which semaphore, what is added, flags.
type Operation = (u16, i16, u16);

impl Set {
    /// Does all operations, or none because one has to wait.
    fn try_all(&mut self, operations: &[Operation]) -> Option<Result<u64>> {
        let mut new = self.values.clone();
        let may_go_on = operations.iter().all(|&(place, add, _)| {
            let value = &mut new[usize::from(place)];
            match value.checked_add_signed(add) {
                Some(sum) if add != 0 || *value == 0 => {
                    *value = sum;
                    true
                }
                _ => false,
            }
        });
        if may_go_on {
            self.values = new;
            return Some(Ok(0));
        }
        self.is_removed.then_some(Err(Errno::REMOVED))
    }

    /// Counts one waiter more or less at the number for which the operations wait to become 0.
    fn count_waiter(&mut self, operations: &[Operation], more: i16) {
        for &(place, ..) in operations.iter().filter(|operation| operation.1 == 0) {
            let count = &mut self.zero_waiters[usize::from(place)];
            *count = count.wrapping_add_signed(more);
        }
    }
}

pub fn semop(frame: &mut Frame, [number, list, count, ..]: Arguments) -> Result<u64> {
    semtimedop(frame, [number, list, count, 0, 0, 0])
}

pub fn semtimedop(_: &mut Frame, [number, list, count, timeout, ..]: Arguments) -> Result<u64> {
    const NO_WAIT: u16 = 0o4000;
    if count > 32 {
        return Err(Errno::TOO_BIG);
    }
    let words: Vec<u16> = user::read_list(list, 3 * count as usize)?;
    let operations: Vec<Operation> =
        words.chunks_exact(3).map(|word| (word[0], word[1].cast_signed(), word[2])).collect();
    let deadline = if timeout == 0 { None } else { Some(tsc::now() + read_duration(timeout)?) };
    let set = set_of(number)?;
    let places = set.lock().values.len();
    if operations.iter().any(|operation| usize::from(operation.0) >= places) {
        return Err(Errno::TOO_LARGE);
    }
    let result = if operations.iter().any(|operation| operation.2 & NO_WAIT != 0) {
        set.lock().try_all(&operations).unwrap_or(Err(Errno::AGAIN))
    } else {
        let patience = Patience { signals: true, deadline };
        set.lock().count_waiter(&operations, 1);
        let waited = SEMAPHORES_CHANGED.wait(patience, || set.lock().try_all(&operations));
        set.lock().count_waiter(&operations, -1);
        match waited {
            Err(Early::Deadline) => Err(Errno::AGAIN),
            Err(early) => Err(ended_by_signal(early.into())),
            Ok(result) => result,
        }
    };
    SEMAPHORES_CHANGED.wake_all();
    result
}

pub fn semctl(_: &mut Frame, [number, place, what, argument, ..]: Arguments) -> Result<u64> {
    const GET_VALUE: u64 = 12;
    const GET_ZERO_WAITERS: u64 = 15;
    const SET_VALUE: u64 = 16;
    let set = set_of(number)?;
    let mut set = set.lock();
    let place = place as usize;
    if what != REMOVE && place >= set.values.len() {
        return Err(Errno::INVALID);
    }
    let result = match what {
        REMOVE => {
            set.is_removed = true;
            Ok(0)
        }
        GET_VALUE => Ok(u64::from(set.values[place])),
        GET_ZERO_WAITERS => Ok(u64::from(set.zero_waiters[place])),
        SET_VALUE => {
            set.values[place] = argument as u16;
            Ok(0)
        }
        _ => Err(Errno::INVALID),
    };
    drop(set);
    if what == REMOVE {
        SEMAPHORES.lock().things.remove(&number);
    }
    SEMAPHORES_CHANGED.wake_all();
    result
}
