//! Calls that say how things are.

use khronos_fs::Stat;

use super::Arguments;
use super::errno::{Errno, Result};
use super::files::{directory, file, path_at, this};
use crate::arch::frame::Frame;
use crate::arch::tsc;
use crate::mm::{frames, user};
use crate::vfs::{dev, path};

const HERE: u64 = -100i32 as u32 as u64;
const NO_FOLLOW: u64 = 0x100;
const EMPTY_PATH: u64 = 0x1000;
const BILLION: u64 = 1_000_000_000;

fn put(to: u64, stat: &Stat) -> Result<u64> {
    let time = |ns: u64| [ns / BILLION, ns % BILLION];
    let mut words = [0u64; 18];
    words[0] = 1;
    words[1] = stat.number;
    words[2] = stat.links;
    words[3] = u64::from(stat.mode) | u64::from(stat.user) << 32;
    words[4] = u64::from(stat.group);
    words[5] = stat.device;
    words[6] = stat.size;
    words[7] = 4096;
    words[8] = stat.size.div_ceil(512);
    words[9..11].copy_from_slice(&time(stat.accessed));
    words[11..13].copy_from_slice(&time(stat.modified));
    words[13..15].copy_from_slice(&time(stat.changed));
    user::write_list(to, &words)?;
    Ok(0)
}

fn of(number: u64, name: u64, how: u64) -> Result<Stat> {
    let name = if name == 0 { alloc::vec::Vec::new() } else { path_at(name)? };
    if name.is_empty() && how & EMPTY_PATH != 0 {
        if number == HERE {
            return path::stat(None, b".", true);
        }
        return Ok(file(number)?.object.stat());
    }
    let directory = if name.first() == Some(&b'/') { None } else { directory(number)? };
    path::stat(directory.as_ref(), &name, how & NO_FOLLOW == 0)
}

pub fn stat(_: &mut Frame, [name, to, ..]: Arguments) -> Result<u64> {
    put(to, &of(HERE, name, 0)?)
}

pub fn lstat(_: &mut Frame, [name, to, ..]: Arguments) -> Result<u64> {
    put(to, &of(HERE, name, NO_FOLLOW)?)
}

pub fn fstat(_: &mut Frame, [number, to, ..]: Arguments) -> Result<u64> {
    put(to, &file(number)?.object.stat())
}

pub fn newfstatat(_: &mut Frame, [number, name, to, how, ..]: Arguments) -> Result<u64> {
    put(to, &of(number, name, how)?)
}

pub fn statx(_: &mut Frame, [number, name, how, _, to, _]: Arguments) -> Result<u64> {
    const BASIC: u32 = 0x7ff;
    let stat = of(number, name, how)?;
    let mut bytes = [0u8; 256];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &BASIC.to_le_bytes());
    put(4, &4096u32.to_le_bytes());
    put(16, &(stat.links as u32).to_le_bytes());
    put(20, &stat.user.to_le_bytes());
    put(24, &stat.group.to_le_bytes());
    put(28, &(stat.mode as u16).to_le_bytes());
    put(32, &stat.number.to_le_bytes());
    put(40, &stat.size.to_le_bytes());
    put(48, &stat.size.div_ceil(512).to_le_bytes());
    for (at, ns) in [(64, stat.accessed), (96, stat.changed), (112, stat.modified)] {
        put(at, &(ns / BILLION).to_le_bytes());
        put(at + 8, &((ns % BILLION) as u32).to_le_bytes());
    }
    put(128, &((stat.device >> 8) as u32).to_le_bytes());
    put(132, &((stat.device & 0xff) as u32).to_le_bytes());
    put(140, &1u32.to_le_bytes());
    user::write_bytes(to, &bytes)?;
    Ok(0)
}

/// Checks a permission of the superuser, as whom all programs run: everything is allowed except
/// executing a file that no user may execute.
fn may(stat: &Stat, what: u64) -> Result<u64> {
    const EXECUTE: u64 = 1;
    let refused =
        what & EXECUTE != 0 && stat.mode & 0o111 == 0 && stat.kind != khronos_fs::Kind::Directory;
    if refused { Err(Errno::ACCESS) } else { Ok(0) }
}

pub fn access(_: &mut Frame, [name, what, ..]: Arguments) -> Result<u64> {
    may(&of(HERE, name, 0)?, what)
}

pub fn faccessat(_: &mut Frame, [number, name, what, ..]: Arguments) -> Result<u64> {
    may(&of(number, name, 0)?, what)
}

fn put_file_system(to: u64) -> Result<u64> {
    const TMPFS: u64 = 0x0102_1994;
    let (free, total) = frames::free_and_total();
    let mut words = [0u64; 15];
    words[0] = TMPFS;
    words[1] = 4096;
    words[2] = total;
    words[3] = free;
    words[4] = free;
    words[8] = 255;
    words[9] = 4096;
    user::write_list(to, &words)?;
    Ok(0)
}

pub fn statfs(_: &mut Frame, [name, to, ..]: Arguments) -> Result<u64> {
    of(HERE, name, 0)?;
    put_file_system(to)
}

pub fn fstatfs(_: &mut Frame, [number, to, ..]: Arguments) -> Result<u64> {
    file(number)?;
    put_file_system(to)
}

pub fn uname(_: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    const FIELD: usize = 65;
    let mut bytes = [0u8; 6 * FIELD];
    let fields = ["Linux", "khronos", "6.1.0-khronos", "KhronOS", "x86_64", "(none)"];
    for (field, text) in bytes.chunks_mut(FIELD).zip(fields) {
        field[..text.len()].copy_from_slice(text.as_bytes());
    }
    user::write_bytes(to, &bytes)?;
    Ok(0)
}

pub fn sysinfo(_: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    let (free, total) = frames::free_and_total();
    let processes = crate::task::process::all().len() as u64;
    let words = [tsc::now() / BILLION, 0, 0, 0, total, free, 0, 0, 0, 0, processes, 0, 0, 4096];
    user::write_list(to, &words)?;
    Ok(0)
}

/// The limit of a resource, as it really is in this kernel.
fn limit(resource: u64) -> u64 {
    match resource {
        3 => 8 << 20, // stack
        7 => 1024,    // files
        _ => u64::MAX,
    }
}

pub fn getrlimit(_: &mut Frame, [resource, to, ..]: Arguments) -> Result<u64> {
    user::write(to, &[limit(resource); 2])?;
    Ok(0)
}

pub fn prlimit64(_: &mut Frame, [_, resource, _, to, ..]: Arguments) -> Result<u64> {
    if to != 0 {
        user::write(to, &[limit(resource); 2])?;
    }
    Ok(0)
}

pub fn getrusage(_: &mut Frame, [_, to, ..]: Arguments) -> Result<u64> {
    let elapsed = tsc::now() - this()?.began;
    let mut words = [0u64; 18];
    words[0] = elapsed / BILLION;
    words[1] = elapsed % BILLION / 1_000;
    user::write_list(to, &words)?;
    Ok(0)
}

pub fn getrandom(_: &mut Frame, [to, bytes, ..]: Arguments) -> Result<u64> {
    let mut buffer = alloc::vec![0; (bytes as usize).min(4096)];
    dev::fill_random(&mut buffer);
    user::write_bytes(to, &buffer)?;
    Ok(buffer.len() as u64)
}
