//! Calls on processes and threads.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::errno::{Errno, Result};
use super::files::{path_at, this};
use super::{Arguments, time};
use crate::arch::frame::Frame;
use crate::arch::{cpu, exit as machine, tsc};
use crate::mm::user as memory;
use crate::println;
use crate::sync::futex as futexes;
use crate::sync::wait::{Early, Patience};
use crate::task::fork::{self as forks, Begin, flags};
use crate::task::process::{self, Process, Status};
use crate::task::thread::{self, Thread};
use crate::task::user::User;
use crate::task::{exec, exit as ends, sched, user};

/// Programs run as the superuser. Calls that would change that succeed, and change nothing.
pub fn zero(_: &mut Frame, _: Arguments) -> Result<u64> {
    Ok(0)
}

fn user_part() -> Result<&'static User> {
    user::current().ok_or(Errno::NO_PROCESS)
}

pub fn getpid(_: &mut Frame, _: Arguments) -> Result<u64> {
    Ok(u64::from(this()?.number))
}

pub fn gettid(_: &mut Frame, _: Arguments) -> Result<u64> {
    Ok(u64::from(thread::current().number))
}

pub fn getppid(_: &mut Frame, _: Arguments) -> Result<u64> {
    let parent = this()?.relations.lock().parent.upgrade();
    Ok(parent.map_or(0, |parent| u64::from(parent.number)))
}

/// The process with this number; 0 is the running one.
fn process_of(number: u64) -> Result<Arc<Process>> {
    match number as u32 {
        0 => Ok(this()?.clone()),
        number => process::find(number).ok_or(Errno::NO_PROCESS),
    }
}

pub fn getpgid(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    Ok(u64::from(process_of(number)?.group.load(Ordering::Relaxed))) // Relaxed: a setting
}

pub fn getpgrp(frame: &mut Frame, _: Arguments) -> Result<u64> {
    getpgid(frame, [0; 6])
}

pub fn setpgid(_: &mut Frame, [number, group, ..]: Arguments) -> Result<u64> {
    let process = process_of(number)?;
    let group = if group == 0 { process.number } else { group as u32 };
    process.group.store(group, Ordering::Relaxed); // Relaxed: a setting
    Ok(0)
}

pub fn getsid(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    Ok(u64::from(process_of(number)?.session.load(Ordering::Relaxed))) // Relaxed: a setting
}

pub fn setsid(_: &mut Frame, _: Arguments) -> Result<u64> {
    let process = this()?;
    process.group.store(process.number, Ordering::Relaxed); // Relaxed, both: settings
    process.session.store(process.number, Ordering::Relaxed);
    Ok(u64::from(process.number))
}

pub fn clone(frame: &mut Frame, [how, stack, parent, child, storage, _]: Arguments) -> Result<u64> {
    let begin = Begin { flags: how, stack, parent_number: parent, child_number: child, storage };
    forks::clone(frame, &begin)
}

pub fn fork(frame: &mut Frame, _: Arguments) -> Result<u64> {
    clone(frame, [0; 6])
}

pub fn vfork(frame: &mut Frame, _: Arguments) -> Result<u64> {
    clone(frame, [flags::VM | flags::VFORK, 0, 0, 0, 0, 0])
}

/// Reads texts, from a list of their addresses that ends with 0.
fn texts(list: u64) -> Result<Vec<Vec<u8>>> {
    const TEXTS: u64 = 4096;
    const TEXT_BYTES: usize = 128 << 10;
    let mut texts = Vec::new();
    if list == 0 {
        return Ok(texts);
    }
    for place in 0..TEXTS {
        let address: u64 = memory::read(list + 8 * place)?;
        if address == 0 {
            return Ok(texts);
        }
        texts.push(memory::read_string(address, TEXT_BYTES).map_err(|error| match error {
            Errno::NAME_TOO_LONG => Errno::TOO_BIG,
            error => error,
        })?);
    }
    Err(Errno::TOO_BIG)
}

pub fn execve(frame: &mut Frame, [name, arguments, environment, ..]: Arguments) -> Result<u64> {
    let name = path_at(name)?;
    let name = crate::vfs::proc::link(&name).unwrap_or(name);
    exec::exec(frame, None, &name, &texts(arguments)?, &texts(environment)?)
}

pub fn exit(_: &mut Frame, [code, ..]: Arguments) -> Result<u64> {
    ends::end_thread(Status::exited(code))
}

pub fn exit_group(_: &mut Frame, [code, ..]: Arguments) -> Result<u64> {
    ends::end_process(Status::exited(code))
}

const NO_WAIT: u64 = 1;

pub fn wait4(_: &mut Frame, [which, status, how, usage, ..]: Arguments) -> Result<u64> {
    let Some((number, ended)) = forks::wait(i64::from(which as i32), how & NO_WAIT != 0, false)?
    else {
        return Ok(0);
    };
    if status != 0 {
        memory::write(status, &ended.0)?;
    }
    if usage != 0 {
        memory::write_list(usage, &[0u64; 18])?;
    }
    Ok(u64::from(number))
}

pub fn waitid(_: &mut Frame, [kind, number, info, how, ..]: Arguments) -> Result<u64> {
    const KEEP: u64 = 0x0100_0000;
    let which = match kind {
        0 => -1,
        1 => number as i64,
        2 => -(number as i64),
        _ => return Err(Errno::INVALID),
    };
    let found = forks::wait(which, how & NO_WAIT != 0, how & KEEP != 0)?;
    if info != 0 {
        let mut words = [0u32; 32];
        if let Some((number, status)) = found {
            let is_exit = status.0 & 0x7f == 0;
            words[0] = crate::task::signal::SIGCHLD;
            words[2] = if is_exit { 1 } else { 2 };
            words[4] = number;
            words[6] = if is_exit { status.0 >> 8 } else { status.0 };
        }
        memory::write_list(info, &words)?;
    }
    Ok(0)
}

pub fn set_tid_address(_: &mut Frame, [address, ..]: Arguments) -> Result<u64> {
    user_part()?.clear_when_over.store(address, Ordering::Relaxed); // Relaxed: the thread's own
    Ok(u64::from(thread::current().number))
}

pub fn arch_prctl(_: &mut Frame, [what, address, ..]: Arguments) -> Result<u64> {
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    let user = user_part()?;
    match what {
        SET_FS if address < memory::END => user.set_fs_base(address),
        // Relaxed: the thread's own
        GET_FS => memory::write(address, &user.fs_base.load(Ordering::Relaxed))?,
        _ => return Err(Errno::INVALID),
    }
    Ok(0)
}

pub fn prctl(_: &mut Frame, [what, ..]: Arguments) -> Result<u64> {
    const SET_NAME: u64 = 15;
    match what {
        SET_NAME => Ok(0),
        _ => Err(Errno::INVALID),
    }
}

pub fn sched_yield(_: &mut Frame, _: Arguments) -> Result<u64> {
    sched::give_way();
    Ok(0)
}

/// The thread with this number, of the running process; 0 is the running one.
fn thread_of(number: u64) -> Result<Arc<Thread>> {
    if number == 0 {
        return Ok(thread::current_arc());
    }
    let is_one = |thread: &&Arc<Thread>| u64::from(thread.number) == number;
    let own = this()?.relations.lock().threads.iter().find(is_one).cloned();
    let first = || process::find(number as u32)?.relations.lock().threads.first().cloned();
    own.or_else(first).ok_or(Errno::NO_PROCESS)
}

pub fn sched_setaffinity(_: &mut Frame, [number, bytes, set, ..]: Arguments) -> Result<u64> {
    if bytes == 0 {
        return Err(Errno::INVALID);
    }
    let mut word = [0; 8];
    let bytes = (bytes as usize).min(8);
    memory::read_bytes(set, &mut word[..bytes])?;
    let all = u64::MAX >> (64 - cpu::count());
    let set = u64::from_le_bytes(word) & all;
    if set == 0 {
        return Err(Errno::INVALID);
    }
    let thread = thread_of(number)?;
    thread.affinity.store(set, Ordering::Relaxed); // Relaxed: a setting
    sched::move_if_needed(&thread);
    Ok(0)
}

pub fn sched_getaffinity(_: &mut Frame, [number, bytes, set, ..]: Arguments) -> Result<u64> {
    if bytes < 8 {
        return Err(Errno::INVALID);
    }
    let all = u64::MAX >> (64 - cpu::count());
    // Relaxed: a setting
    memory::write(set, &(thread_of(number)?.affinity.load(Ordering::Relaxed) & all))?;
    Ok(8)
}

/// No barrier is offered: programs use ordinary ones.
pub fn membarrier(_: &mut Frame, [what, ..]: Arguments) -> Result<u64> {
    if what == 0 { Ok(0) } else { Err(Errno::INVALID) }
}

pub fn futex(_: &mut Frame, [word, what, value, timeout, _, bits]: Arguments) -> Result<u64> {
    const REALTIME: u64 = 0x100;
    if !word.is_multiple_of(4) {
        return Err(Errno::INVALID);
    }
    let space = crate::mm::space::current().ok_or(Errno::NO_PROCESS)?;
    let key = space.futex_key(word);
    let bits = bits as u32;
    match what & 0x7f {
        0 => {
            let deadline =
                if timeout == 0 { None } else { Some(tsc::now() + time::read_duration(timeout)?) };
            futex_wait(key, word, value as u32, !0, deadline)
        }
        9 => {
            let deadline = if timeout == 0 {
                None
            } else {
                let until = time::read_duration(timeout)?;
                let offset = if what & REALTIME != 0 { time::wall_ns() - tsc::now() } else { 0 };
                Some(until.saturating_sub(offset))
            };
            futex_wait(key, word, value as u32, bits, deadline)
        }
        1 => Ok(u64::from(futexes::wake(key, !0, value as u32))),
        10 => Ok(u64::from(futexes::wake(key, bits, value as u32))),
        3 | 4 => {
            if what & 0x7f == 4 && memory::read::<u32>(word)? != bits {
                return Err(Errno::AGAIN);
            }
            Ok(u64::from(futexes::requeue(key, value as u32, timeout as u32)))
        }
        _ => Err(Errno::NO_CALL),
    }
}

fn futex_wait(
    key: futexes::Key,
    word: u64,
    expected: u32,
    bits: u32,
    deadline: Option<u64>,
) -> Result<u64> {
    if bits == 0 {
        return Err(Errno::INVALID);
    }
    loop {
        // The page comes in now: the look below is pinned.
        if memory::read::<u32>(word)? != expected {
            return Err(Errno::AGAIN);
        }
        let mut seen = Err(Errno::FAULT);
        let is_unchanged = || {
            seen = memory::read::<u32>(word);
            seen == Ok(expected)
        };
        let patience = Patience { signals: true, deadline };
        match (futexes::wait(key, bits, patience, is_unchanged), seen) {
            (None, Err(_)) => {} // the page has gone meanwhile
            (None, Ok(_)) => return Err(Errno::AGAIN),
            (Some(Err(Early::Deadline)), _) => return Err(Errno::TIMED_OUT),
            // Waits with a deadline are not restarted: they would become too long.
            (Some(Err(Early::Signal)), _) if deadline.is_some() => return Err(Errno::INTERRUPTED),
            (Some(ended), _) => return Ok(ended.map(|()| 0)?),
        }
    }
}

pub fn reboot(_: &mut Frame, [first, _, what, ..]: Arguments) -> Result<u64> {
    const MAGIC: u64 = 0xfee1_dead;
    const RESTART: u64 = 0x0123_4567;
    const HALT: u64 = 0xcdef_0123;
    const POWER_OFF: u64 = 0x4321_fedc;
    if first as u32 as u64 != MAGIC {
        return Err(Errno::INVALID);
    }
    match what as u32 as u64 {
        RESTART => machine::reset(),
        HALT | POWER_OFF => {
            println!("khronos: PASSED");
            machine::exit(true)
        }
        _ => Ok(0), // what ^Alt^Del does
    }
}
