//! Calls with paths that change the tree.

use core::sync::atomic::Ordering;

use khronos_fs::{At, Inode, Rename};

use super::errno::{Errno, Result};
use super::files::{directory, file, path_at, this};
use super::{Arguments, time};
use crate::arch::frame::Frame;
use crate::mm::user;
use crate::vfs::tree::{self, Held};
use crate::vfs::{path, proc};

const HERE: u64 = -100i32 as u32 as u64;
const NO_FOLLOW: u64 = 0x100;
const FOLLOW: u64 = 0x400;
const EMPTY_PATH: u64 = 0x1000;

/// Calls `f` with the CPU's access to the tree and where two paths begin.
fn with_two<R>(
    (first, first_path): (u64, u64),
    (second, second_path): (u64, u64),
    f: impl FnOnce(
        &mut khronos_fs::Cx<'static>,
        At<'_>,
        At<'_>,
    ) -> core::result::Result<R, khronos_fs::Errno>,
) -> Result<R> {
    let (first, second) = (directory(first)?, directory(second)?);
    let (from, to) = (path_at(first_path)?, path_at(second_path)?);
    path::with_directory(first.as_ref(), &from, |first| {
        path::with_directory(second.as_ref(), &to, |second: &Inode| {
            let (from, to) =
                (At { directory: first, path: &from }, At { directory: second, path: &to });
            Ok(tree::with(|cx| f(cx, from, to))?)
        })
    })
}

pub fn mkdirat(_: &mut Frame, [number, name, mode, ..]: Arguments) -> Result<u64> {
    let mode = path::mode_of_new(mode as u32);
    path::with(directory(number)?.as_ref(), &path_at(name)?, |cx, at| cx.mkdir(at, mode))?;
    Ok(0)
}

pub fn mkdir(frame: &mut Frame, [name, mode, ..]: Arguments) -> Result<u64> {
    mkdirat(frame, [HERE, name, mode, 0, 0, 0])
}

pub fn unlinkat(_: &mut Frame, [number, name, how, ..]: Arguments) -> Result<u64> {
    const REMOVE_DIRECTORY: u64 = 0x200;
    path::with(directory(number)?.as_ref(), &path_at(name)?, |cx, at| {
        if how & REMOVE_DIRECTORY != 0 { cx.rmdir(at) } else { cx.unlink(at) }
    })?;
    Ok(0)
}

pub fn unlink(frame: &mut Frame, [name, ..]: Arguments) -> Result<u64> {
    unlinkat(frame, [HERE, name, 0, 0, 0, 0])
}

pub fn rmdir(frame: &mut Frame, [name, ..]: Arguments) -> Result<u64> {
    unlinkat(frame, [HERE, name, 0x200, 0, 0, 0])
}

pub fn renameat2(_: &mut Frame, [from, old, to, new, how, _]: Arguments) -> Result<u64> {
    let how = match how {
        0 => Rename::Replace,
        1 => Rename::NoReplace,
        2 => Rename::Exchange,
        _ => return Err(Errno::INVALID),
    };
    with_two((from, old), (to, new), |cx, from, to| cx.rename(from, to, how))?;
    Ok(0)
}

pub fn renameat(frame: &mut Frame, [from, old, to, new, ..]: Arguments) -> Result<u64> {
    renameat2(frame, [from, old, to, new, 0, 0])
}

pub fn rename(frame: &mut Frame, [old, new, ..]: Arguments) -> Result<u64> {
    renameat2(frame, [HERE, old, HERE, new, 0, 0])
}

pub fn linkat(_: &mut Frame, [from, old, to, new, how, _]: Arguments) -> Result<u64> {
    let follow = how & FOLLOW != 0;
    with_two((from, old), (to, new), |cx, from, to| cx.link(from, to, follow))?;
    Ok(0)
}

pub fn link(frame: &mut Frame, [old, new, ..]: Arguments) -> Result<u64> {
    linkat(frame, [HERE, old, HERE, new, 0, 0])
}

pub fn symlinkat(_: &mut Frame, [target, number, name, ..]: Arguments) -> Result<u64> {
    let target = path_at(target)?;
    path::with(directory(number)?.as_ref(), &path_at(name)?, |cx, at| cx.symlink(&target, at))?;
    Ok(0)
}

pub fn symlink(frame: &mut Frame, [target, name, ..]: Arguments) -> Result<u64> {
    symlinkat(frame, [target, HERE, name, 0, 0, 0])
}

pub fn readlinkat(_: &mut Frame, [number, name, to, bytes, ..]: Arguments) -> Result<u64> {
    let name = path_at(name)?;
    let mut buffer = [0; 4096];
    let length = match proc::link(&name) {
        Some(target) => {
            let length = target.len().min(buffer.len());
            buffer[..length].copy_from_slice(&target[..length]);
            length
        }
        None => {
            path::with(directory(number)?.as_ref(), &name, |cx, at| cx.readlink(at, &mut buffer))?
        }
    };
    let length = length.min(bytes as usize);
    user::write_bytes(to, &buffer[..length])?;
    Ok(length as u64)
}

pub fn readlink(frame: &mut Frame, [name, to, bytes, ..]: Arguments) -> Result<u64> {
    readlinkat(frame, [HERE, name, to, bytes, 0, 0])
}

/// The inode to which a descriptor and a path lead; without a path, that of the descriptor.
fn inode(number: u64, name: u64, how: u64) -> Result<Held> {
    let name = if name == 0 { alloc::vec::Vec::new() } else { path_at(name)? };
    if name.is_empty() {
        if how & EMPTY_PATH == 0 {
            return Err(Errno::NO_ENTRY);
        }
        return match directory(number)? {
            Some(held) => Ok(held),
            None => Ok(this()?.directory.lock().again()),
        };
    }
    path::resolve(directory(number)?.as_ref(), &name, how & NO_FOLLOW == 0)
}

pub fn fchmodat(_: &mut Frame, [number, name, mode, ..]: Arguments) -> Result<u64> {
    let inode = inode(number, name, 0)?;
    tree::with(|cx| cx.chmod(&inode, mode as u32 & 0o7777));
    Ok(0)
}

pub fn chmod(frame: &mut Frame, [name, mode, ..]: Arguments) -> Result<u64> {
    fchmodat(frame, [HERE, name, mode, 0, 0, 0])
}

pub fn fchmod(_: &mut Frame, [number, mode, ..]: Arguments) -> Result<u64> {
    let inode = inode(number, 0, EMPTY_PATH)?;
    tree::with(|cx| cx.chmod(&inode, mode as u32 & 0o7777));
    Ok(0)
}

pub fn fchownat(_: &mut Frame, [number, name, user, group, how, _]: Arguments) -> Result<u64> {
    let inode = inode(number, name, how)?;
    let new = |number: u64| (number as u32 != u32::MAX).then_some(number as u32);
    tree::with(|cx| cx.chown(&inode, new(user), new(group)));
    Ok(0)
}

pub fn chown(frame: &mut Frame, [name, user, group, ..]: Arguments) -> Result<u64> {
    fchownat(frame, [HERE, name, user, group, 0, 0])
}

pub fn lchown(frame: &mut Frame, [name, user, group, ..]: Arguments) -> Result<u64> {
    fchownat(frame, [HERE, name, user, group, NO_FOLLOW, 0])
}

pub fn fchown(frame: &mut Frame, [number, user, group, ..]: Arguments) -> Result<u64> {
    fchownat(frame, [number, 0, user, group, EMPTY_PATH, 0])
}

fn set_times(inode: &Held, times: [Option<u64>; 2]) {
    tree::with(|cx| cx.utimens(inode, times[0], times[1]));
}

pub fn utimensat(_: &mut Frame, [number, name, times, how, ..]: Arguments) -> Result<u64> {
    const NOW: u64 = 0x3fff_ffff;
    const OMIT: u64 = 0x3fff_fffe;
    let how = if name == 0 { how | EMPTY_PATH } else { how };
    let inode = inode(number, name, how)?;
    let now = Some(time::wall_ns());
    let times = if times == 0 {
        [now, now]
    } else {
        let words: [u64; 4] = user::read(times)?;
        let one = |seconds: u64, nanoseconds: u64| match nanoseconds {
            NOW => now,
            OMIT => None,
            nanoseconds => Some(seconds.saturating_mul(1_000_000_000) + nanoseconds),
        };
        [one(words[0], words[1]), one(words[2], words[3])]
    };
    set_times(&inode, times);
    Ok(0)
}

pub fn utimes(_: &mut Frame, [name, times, ..]: Arguments) -> Result<u64> {
    let inode = inode(HERE, name, 0)?;
    let now = Some(time::wall_ns());
    let times = if times == 0 {
        [now, now]
    } else {
        let words: [u64; 4] = user::read(times)?;
        let one = |at: usize| Some(words[at].saturating_mul(1_000_000_000) + words[at + 1] * 1_000);
        [one(0), one(2)]
    };
    set_times(&inode, times);
    Ok(0)
}

pub fn utime(_: &mut Frame, [name, times, ..]: Arguments) -> Result<u64> {
    let inode = inode(HERE, name, 0)?;
    let now = Some(time::wall_ns());
    let times = if times == 0 {
        [now, now]
    } else {
        let words: [u64; 2] = user::read(times)?;
        words.map(|seconds| Some(seconds.saturating_mul(1_000_000_000)))
    };
    set_times(&inode, times);
    Ok(0)
}

pub fn truncate(_: &mut Frame, [name, bytes, ..]: Arguments) -> Result<u64> {
    let inode = inode(HERE, name, 0)?;
    tree::with(|cx| cx.truncate(&inode, bytes))?;
    Ok(0)
}

pub fn getcwd(_: &mut Frame, [to, bytes, ..]: Arguments) -> Result<u64> {
    let directory = this()?.directory.lock().again();
    let mut path = tree::with(|cx| cx.getcwd(&directory))?;
    path.push(0);
    if path.len() as u64 > bytes {
        return Err(Errno::RANGE);
    }
    user::write_bytes(to, &path)?;
    Ok(path.len() as u64)
}

fn go_to(directory: Held) -> Result<u64> {
    let before = core::mem::replace(&mut *this()?.directory.lock(), directory);
    drop(before);
    Ok(0)
}

pub fn chdir(_: &mut Frame, [name, ..]: Arguments) -> Result<u64> {
    go_to(path::directory(None, &path_at(name)?)?)
}

pub fn fchdir(_: &mut Frame, [number, ..]: Arguments) -> Result<u64> {
    let file = file(number)?;
    let inode = file.object.inode().ok_or(Errno::NOT_DIRECTORY)?;
    if inode.kind() != khronos_fs::Kind::Directory {
        return Err(Errno::NOT_DIRECTORY);
    }
    go_to(inode.again())
}

pub fn umask(_: &mut Frame, [mask, ..]: Arguments) -> Result<u64> {
    // Relaxed: a setting
    Ok(u64::from(this()?.file_mask.swap(mask as u32 & 0o777, Ordering::Relaxed)))
}
