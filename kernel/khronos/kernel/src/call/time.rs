//! Calls on time.

use super::Arguments;
use super::errno::{Errno, Result};
use super::files::this;
use super::signals::ended_by_signal;
use crate::arch::frame::Frame;
use crate::arch::{clock, tsc};
use crate::mm::user;
use crate::sync::wait::sleep_until;

const BILLION: u64 = 1_000_000_000;

/// Nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    clock::at_boot_ns() + tsc::now()
}

/// A `timespec` of the program's, in nanoseconds.
pub fn read_duration(address: u64) -> Result<u64> {
    let [seconds, nanoseconds]: [u64; 2] = user::read(address)?;
    if nanoseconds >= BILLION || seconds > i64::MAX as u64 {
        return Err(Errno::INVALID);
    }
    Ok(seconds.min(1 << 33) * BILLION + nanoseconds)
}

fn write_duration(address: u64, ns: u64) -> Result<u64> {
    user::write(address, &[ns / BILLION, ns % BILLION])?;
    Ok(0)
}

fn now(clock: u64) -> Result<u64> {
    match clock {
        0 | 5 | 8 | 11 => Ok(wall_ns()),
        1 | 4 | 6 | 7 => Ok(tsc::now()),
        2 | 3 => Ok(tsc::now() - this()?.began), // a process' time on CPUs: what it has at most
        _ => Err(Errno::INVALID),
    }
}

pub fn clock_gettime(_: &mut Frame, [clock, to, ..]: Arguments) -> Result<u64> {
    write_duration(to, now(clock)?)
}

pub fn clock_getres(_: &mut Frame, [_, to, ..]: Arguments) -> Result<u64> {
    if to == 0 { Ok(0) } else { write_duration(to, 1) }
}

pub fn gettimeofday(_: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    let ns = wall_ns();
    if to != 0 {
        user::write(to, &[ns / BILLION, ns % BILLION / 1_000])?;
    }
    Ok(0)
}

pub fn time(_: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    let seconds = wall_ns() / BILLION;
    if to != 0 {
        user::write(to, &seconds)?;
    }
    Ok(seconds)
}

/// Ticks since boot; none of a process are counted.
pub fn times(_: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    let ticks = (tsc::now() - this()?.began) / 10_000_000;
    if to != 0 {
        user::write(to, &[ticks, 0, 0, 0])?;
    }
    Ok(tsc::now() / 10_000_000)
}

fn sleep(until: u64, left: u64) -> Result<u64> {
    sleep_until(until).map_err(|early| {
        if left != 0 {
            // If the program's memory for the result cannot be written, that is the program's
            // problem.
            let _ = write_duration(left, until.saturating_sub(tsc::now()));
        }
        ended_by_signal(early.into())
    })?;
    Ok(0)
}

pub fn nanosleep(_: &mut Frame, [duration, left, ..]: Arguments) -> Result<u64> {
    sleep(tsc::now() + read_duration(duration)?, left)
}

pub fn clock_nanosleep(_: &mut Frame, [clock, how, time, left, ..]: Arguments) -> Result<u64> {
    const ABSOLUTE: u64 = 1;
    let time = read_duration(time)?;
    if how & ABSOLUTE == 0 {
        return sleep(tsc::now() + time, left);
    }
    let ahead = time.saturating_sub(now(clock)?);
    sleep(tsc::now() + ahead, 0)
}

pub fn alarm(_: &mut Frame, [seconds, ..]: Arguments) -> Result<u64> {
    let deadline = if seconds == 0 { 0 } else { tsc::now() + seconds * BILLION };
    Ok(this()?.set_alarm(deadline, 0).0.div_ceil(BILLION))
}

fn microseconds(words: &[u64]) -> u64 {
    words[0].min(1 << 33) * BILLION + words[1].min(999_999) * 1_000
}

fn write_timer(to: u64, (left, interval): (u64, u64)) -> Result<u64> {
    if to != 0 {
        let pair = |ns: u64| [ns / BILLION, ns % BILLION / 1_000];
        user::write_list(to, &[pair(interval), pair(left)])?;
    }
    Ok(0)
}

pub fn setitimer(_: &mut Frame, [which, new, old, ..]: Arguments) -> Result<u64> {
    if which != 0 {
        return Err(Errno::INVALID);
    }
    let words: [u64; 4] = user::read(new)?;
    let (interval, value) = (microseconds(&words[..2]), microseconds(&words[2..]));
    let deadline = if value == 0 { 0 } else { tsc::now() + value };
    write_timer(old, this()?.set_alarm(deadline, interval))
}

pub fn getitimer(_: &mut Frame, [which, to, ..]: Arguments) -> Result<u64> {
    if which != 0 {
        return Err(Errno::INVALID);
    }
    write_timer(to, this()?.alarm())
}
