//! Calls that move bytes.

use alloc::vec;
use alloc::vec::Vec;

use super::Arguments;
use super::errno::{Errno, Result};
use super::files::file;
use crate::arch::frame::Frame;
use crate::mm::user;
use crate::vfs::file::File;

/// Bytes that are in the kernel at a time.
const PIECE: usize = 64 << 10;

fn read_at(file: &File, at: Option<u64>, to: u64, bytes: u64) -> Result<u64> {
    let mut done = 0;
    let mut buffer = vec![0; (bytes as usize).min(PIECE)];
    while done < bytes || bytes == 0 {
        let room = ((bytes - done) as usize).min(buffer.len());
        let read = match file.read(at.map(|at| at + done), &mut buffer[..room]) {
            Err(_) if done > 0 => break,
            read => read?,
        };
        user::write_bytes(to + done, &buffer[..read])?;
        done += read as u64;
        // What has no positions gives what it has.
        if read < room || bytes == 0 || !file.object.is_seekable() {
            break;
        }
    }
    Ok(done)
}

fn write_at(file: &File, at: Option<u64>, from: u64, bytes: u64) -> Result<u64> {
    let mut done = 0;
    let mut buffer = vec![0; (bytes as usize).min(PIECE)];
    while done < bytes || bytes == 0 {
        let room = ((bytes - done) as usize).min(buffer.len());
        user::read_bytes(from + done, &mut buffer[..room])?;
        let written = match file.write(at.map(|at| at + done), &buffer[..room]) {
            Err(_) if done > 0 => break,
            written => written?,
        };
        done += written as u64;
        if written < room || bytes == 0 {
            break;
        }
    }
    Ok(done)
}

pub fn read(_: &mut Frame, [number, to, bytes, ..]: Arguments) -> Result<u64> {
    read_at(&*file(number)?, None, to, bytes)
}

pub fn write(_: &mut Frame, [number, from, bytes, ..]: Arguments) -> Result<u64> {
    write_at(&*file(number)?, None, from, bytes)
}

pub fn pread(_: &mut Frame, [number, to, bytes, at, ..]: Arguments) -> Result<u64> {
    read_at(&*file(number)?, Some(position(at)?), to, bytes)
}

pub fn pwrite(_: &mut Frame, [number, from, bytes, at, ..]: Arguments) -> Result<u64> {
    write_at(&*file(number)?, Some(position(at)?), from, bytes)
}

fn position(at: u64) -> Result<u64> {
    if at <= i64::MAX as u64 { Ok(at) } else { Err(Errno::INVALID) }
}

/// Calls `each` with the parts of a vector until one is short.
fn parts(list: u64, count: u64, mut each: impl FnMut(u64, u64, u64) -> Result<u64>) -> Result<u64> {
    if count > 1024 {
        return Err(Errno::INVALID);
    }
    let words: Vec<u64> = user::read_list(list, 2 * count as usize)?;
    let mut done = 0;
    for part in words.chunks_exact(2).filter(|part| part[1] > 0) {
        let moved = match each(part[0], part[1], done) {
            Err(_) if done > 0 => break,
            moved => moved?,
        };
        done += moved;
        if moved < part[1] {
            break;
        }
    }
    Ok(done)
}

fn vector(
    file: &File,
    at: Option<u64>,
    list: u64,
    count: u64,
    part: fn(&File, Option<u64>, u64, u64) -> Result<u64>,
) -> Result<u64> {
    parts(list, count, |address, bytes, done| part(file, at.map(|at| at + done), address, bytes))
}

pub fn readv(_: &mut Frame, [number, list, count, ..]: Arguments) -> Result<u64> {
    vector(&*file(number)?, None, list, count, read_at)
}

pub fn writev(_: &mut Frame, [number, list, count, ..]: Arguments) -> Result<u64> {
    vector(&*file(number)?, None, list, count, write_at)
}

pub fn preadv(_: &mut Frame, [number, list, count, at, ..]: Arguments) -> Result<u64> {
    vector(&*file(number)?, Some(position(at)?), list, count, read_at)
}

pub fn pwritev(_: &mut Frame, [number, list, count, at, ..]: Arguments) -> Result<u64> {
    vector(&*file(number)?, Some(position(at)?), list, count, write_at)
}

/// From a file to another, without the program's memory.
pub fn sendfile(_: &mut Frame, [to, from, place, bytes, ..]: Arguments) -> Result<u64> {
    let (to, from) = (file(to)?, file(from)?);
    let mut at = if place == 0 { None } else { Some(position(user::read(place)?)?) };
    let mut done = 0;
    let mut buffer = vec![0; (bytes as usize).min(PIECE)];
    while done < bytes {
        let room = ((bytes - done) as usize).min(buffer.len());
        let read = from.read(at, &mut buffer[..room])?;
        if read == 0 {
            break;
        }
        let written = to.write(None, &buffer[..read])? as u64;
        done += written;
        at = at.map(|at| at + written);
        if written < read as u64 {
            break;
        }
    }
    if let Some(at) = at {
        user::write(place, &at)?;
    }
    Ok(done)
}
