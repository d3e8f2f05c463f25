//! Calls on descriptors.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::errno::{Errno, Result};
use super::{Arguments, time};
use crate::arch::frame::Frame;
use crate::mm::user;
use crate::sync::shelf::Lent;
use crate::task::process::{self, Process};
use crate::vfs::durable;
use crate::vfs::file::{File, flags};
use crate::vfs::tree::{self, Held};
use crate::vfs::{path, pipe as pipes, poll as polling};

/// The running process.
pub fn this() -> Result<&'static Arc<Process>> {
    process::current().ok_or(Errno::NO_PROCESS)
}

/// The file of a descriptor, for the time of a call.
pub fn file(number: u64) -> Result<Lent<'static, File>> {
    this()?.files.lend(number)
}

/// The file of a descriptor, for another.
fn file_to_keep(number: u64) -> Result<Arc<File>> {
    this()?.files.get(number)
}

/// A path of the program's.
pub fn path_at(address: u64) -> Result<Vec<u8>> {
    user::read_string(address, 4096)
}

/// The working directory, as a descriptor.
const HERE: u32 = -100i32 as u32;

/// The directory at which a path begins, by its descriptor; `None` for the working directory.
pub fn directory(number: u64) -> Result<Option<Held>> {
    if number as u32 == HERE {
        return Ok(None);
    }
    Ok(Some(file(number)?.object.inode().ok_or(Errno::NOT_DIRECTORY)?.again()))
}

fn open_at(number: u64, name: u64, how: u64, mode: u64) -> Result<u64> {
    let name = path_at(name)?;
    if name.is_empty() {
        return Err(Errno::NO_ENTRY);
    }
    // The descriptor is not looked at for a path from the root.
    let directory = if name[0] == b'/' { None } else { directory(number)? };
    let how = how as u32;
    let file = path::open(directory.as_ref(), &name, how, mode as u32)?;
    this()?.files.add(file, how & flags::CLOSE_ON_EXEC != 0, 0)
}

pub fn open(_: &mut Frame, [name, how, mode, ..]: Arguments) -> Result<u64> {
    open_at(u64::from(HERE), name, how, mode)
}

pub fn openat(_: &mut Frame, [number, name, how, mode, ..]: Arguments) -> Result<u64> {
    open_at(number, name, how, mode)
}

pub fn creat(_: &mut Frame, [name, mode, ..]: Arguments) -> Result<u64> {
    let how = flags::CREATE | flags::TRUNCATE | flags::WRITE_ONLY;
    open_at(u64::from(HERE), name, u64::from(how), mode)
}

pub fn close(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    this()?.files.close(number).map(|()| 0)
}

pub fn lseek(_: &mut Frame, [number, offset, whence, ..]: Arguments) -> Result<u64> {
    file(number)?.seek(offset.cast_signed(), whence as u32)
}

pub fn ioctl(_: &mut Frame, [number, request, argument, ..]: Arguments) -> Result<u64> {
    file(number)?.object.control(request & 0xffff_ffff, argument)
}

pub fn getdents64(_: &mut Frame, [number, to, bytes, ..]: Arguments) -> Result<u64> {
    let names = file(number)?.names((bytes as usize).min(32 << 10))?;
    user::write_bytes(to, &names)?;
    Ok(names.len() as u64)
}

pub fn pipe(frame: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    pipe2(frame, [to, 0, 0, 0, 0, 0])
}

pub fn pipe2(_: &mut Frame, [to, how, ..]: Arguments) -> Result<u64> {
    let how = how as u32;
    let (reader, writer) = pipes::make(how & flags::NON_BLOCKING);
    let closes = how & flags::CLOSE_ON_EXEC != 0;
    let files = &this()?.files;
    let first = files.add(reader, closes, 0)?;
    let second = files.add(writer, closes, 0).inspect_err(|_| {
        let _ = files.close(first); // it was opened just now
    })?;
    user::write(to, &[first as u32, second as u32])?;
    Ok(0)
}

pub fn dup(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    this()?.files.add(file_to_keep(number)?, false, 0)
}

pub fn dup2(_: &mut Frame, [number, to, ..]: Arguments) -> Result<u64> {
    let file = file_to_keep(number)?;
    if number != to {
        this()?.files.put(file, false, to)?;
    }
    Ok(to)
}

pub fn dup3(_: &mut Frame, [number, to, how, ..]: Arguments) -> Result<u64> {
    if number == to {
        return Err(Errno::INVALID);
    }
    this()?.files.put(file_to_keep(number)?, how as u32 & flags::CLOSE_ON_EXEC != 0, to)?;
    Ok(to)
}

pub fn fcntl(_: &mut Frame, [number, command, argument, ..]: Arguments) -> Result<u64> {
    let file = file(number)?;
    let files = &this()?.files;
    match command {
        0 => files.add(file_to_keep(number)?, false, argument as usize), // F_DUPFD
        1030 => files.add(file_to_keep(number)?, true, argument as usize), // F_DUPFD_CLOEXEC
        1 => files.closes_on_exec(number).map(u64::from),                // F_GETFD
        2 => files.set_closes_on_exec(number, argument & 1 != 0).map(|()| 0), // F_SETFD
        3 => Ok(u64::from(file.flags() & !flags::CLOSE_ON_EXEC)),        // F_GETFL
        4 => {
            file.set_flags(argument as u32); // F_SETFL
            Ok(0)
        }
        // Locks of files: programs here do not contend for them.
        5 => user::write(argument, &2u16).map(|()| 0), // F_GETLK: unlocked
        6 | 7 => Ok(0),                                // F_SETLK, F_SETLKW
        _ => Err(Errno::INVALID),
    }
}

pub fn flock(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    file(number).map(|_| 0)
}

/// Makes the file durable, and all names. `fdatasync`, too.
pub fn fsync(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    let file = file(number)?;
    durable::sync(Some(file.object.inode().ok_or(Errno::INVALID)?))?;
    Ok(0)
}

/// Makes all files durable. Only `fsync` and `syncfs` report failures.
pub fn sync(_: &mut Frame, _: Arguments) -> Result<u64> {
    let _ = durable::sync(None);
    Ok(0)
}

/// Makes all files durable.
pub fn syncfs(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    file(number)?;
    durable::sync(None)?;
    Ok(0)
}

pub fn ftruncate(_: &mut Frame, [number, bytes, ..]: Arguments) -> Result<u64> {
    let file = file(number)?;
    file.check_writable().map_err(|_| Errno::INVALID)?;
    let inode = file.object.inode().ok_or(Errno::INVALID)?;
    tree::with(|cx| cx.truncate(inode, bytes))?;
    Ok(0)
}

pub fn fallocate(_: &mut Frame, [number, mode, start, bytes, ..]: Arguments) -> Result<u64> {
    let file = file(number)?;
    let inode = file.object.inode().ok_or(Errno::NO_DEVICE)?;
    let end = start.checked_add(bytes).ok_or(Errno::INVALID)?;
    if mode != 0 {
        return Err(Errno(95)); // EOPNOTSUPP
    }
    if end > file.object.stat().size {
        tree::with(|cx| cx.truncate(inode, end))?;
    }
    Ok(0)
}

fn poll_until(list: u64, count: u64, deadline: Option<u64>) -> Result<u64> {
    if count > 1024 {
        return Err(Errno::INVALID);
    }
    let files = &this()?.files;
    let mut asked = Vec::new();
    for place in 0..count {
        let number: i32 = user::read(list + 8 * place)?;
        let events: u16 = user::read(list + 8 * place + 4)?;
        // A negative number is left out.
        asked.push((number >= 0).then(|| polling::Asked {
            file: files.get(number as u64).ok(),
            events: u32::from(events),
        }));
    }
    let wanted: Vec<_> = asked.iter().map(Option::is_some).collect();
    let asked: Vec<_> = asked.into_iter().flatten().collect();
    let mut answers = polling::wait(&asked, deadline)?.into_iter();
    let mut ready = 0;
    for (place, is_wanted) in wanted.into_iter().enumerate() {
        let answer = if is_wanted { answers.next().unwrap_or(0) } else { 0 };
        user::write(list + 8 * place as u64 + 6, &(answer as u16))?;
        ready += u64::from(answer != 0);
    }
    Ok(ready)
}

pub fn poll(_: &mut Frame, [list, count, milliseconds, ..]: Arguments) -> Result<u64> {
    let milliseconds = milliseconds as i32;
    let deadline = u64::try_from(milliseconds).ok();
    poll_until(list, count, deadline.map(|ms| crate::arch::tsc::now() + ms * 1_000_000))
}

pub fn ppoll(_: &mut Frame, [list, count, timeout, ..]: Arguments) -> Result<u64> {
    let deadline = if timeout == 0 { None } else { Some(time::read_duration(timeout)?) };
    poll_until(list, count, deadline.map(|duration| crate::arch::tsc::now() + duration))
}
