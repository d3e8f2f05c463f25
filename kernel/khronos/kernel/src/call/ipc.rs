//! Shared memory and semaphores of System V: what dbench starts with.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Arguments;
use super::errno::{Errno, Result};
use super::files::this;
use crate::arch::frame::Frame;
use crate::mm::area::{PAGE, Protection, Shared, Source};
use crate::mm::user;
use crate::sync::order::Rank;
use crate::sync::spin::Spin;
use crate::sync::wait::{Patience, WaitQueue};

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
static SEMAPHORES: Spin<Register<Vec<u16>>> = Spin::new(Rank::Small, Register::new());
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
    let make = || alloc::vec![0; count as usize];
    SEMAPHORES.lock().get(key as u32 as u64, how, make)
}

/// An operation: which semaphore, what is added, flags.
type Operation = (u16, i16, u16);

fn try_all(number: u64, operations: &[Operation]) -> Option<Result<u64>> {
    let mut semaphores = SEMAPHORES.lock();
    let Some((_, values)) = semaphores.things.get_mut(&number) else {
        return Some(Err(Errno::INVALID));
    };
    let mut new = values.clone();
    for &(place, add, _) in operations {
        let Some(value) = new.get_mut(usize::from(place)) else {
            return Some(Err(Errno(27))); // EFBIG, as Linux has it
        };
        if add == 0 && *value != 0 {
            return None;
        }
        *value = value.checked_add_signed(add)?;
    }
    *values = new;
    Some(Ok(0))
}

pub fn semop(_: &mut Frame, [number, list, count, ..]: Arguments) -> Result<u64> {
    const NO_WAIT: u16 = 0o4000;
    if count > 32 {
        return Err(Errno::TOO_BIG);
    }
    let words: Vec<u16> = user::read_list(list, 3 * count as usize)?;
    let operations: Vec<Operation> =
        words.chunks_exact(3).map(|word| (word[0], word[1].cast_signed(), word[2])).collect();
    let result = if operations.iter().any(|operation| operation.2 & NO_WAIT != 0) {
        try_all(number, &operations).unwrap_or(Err(Errno::AGAIN))
    } else {
        SEMAPHORES_CHANGED.wait(Patience::SIGNALS, || try_all(number, &operations))?
    };
    SEMAPHORES_CHANGED.wake_all();
    result
}

pub fn semctl(_: &mut Frame, [number, place, what, argument, ..]: Arguments) -> Result<u64> {
    const GET_VALUE: u64 = 12;
    const SET_VALUE: u64 = 16;
    let mut semaphores = SEMAPHORES.lock();
    if what == REMOVE {
        let removed = semaphores.things.remove(&number);
        drop(semaphores);
        SEMAPHORES_CHANGED.wake_all();
        return removed.map(|_| 0).ok_or(Errno::INVALID);
    }
    let (_, values) = semaphores.things.get_mut(&number).ok_or(Errno::INVALID)?;
    let value = values.get_mut(place as usize).ok_or(Errno::INVALID)?;
    let result = match what {
        GET_VALUE => Ok(u64::from(*value)),
        SET_VALUE => {
            *value = argument as u16;
            Ok(0)
        }
        _ => Err(Errno::INVALID),
    };
    drop(semaphores);
    SEMAPHORES_CHANGED.wake_all();
    result
}
