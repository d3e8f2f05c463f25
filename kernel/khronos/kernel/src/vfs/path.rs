//! From paths to files.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use khronos_fs::{At, Inode, Kind, Open, Stat};

use super::file::{File, Object, flags};
use super::node::OpenNode;
use super::tree::{self, Held};
use super::{dev, proc};
use crate::call::errno::{Errno, Result};
use crate::task::process;

/// The start of a path: a directory, the process' working directory, or the root. For a path from
/// the root, a thread neither reads the process' working directory nor counts as its user.
pub fn with_directory<R>(directory: Option<&Held>, path: &[u8], f: impl FnOnce(&Inode) -> R) -> R {
    match (directory, process::current()) {
        (Some(directory), _) => f(directory),
        (None, Some(process)) if path.first() != Some(&b'/') => {
            let directory = process.directory.lock().again();
            f(&directory)
        }
        (None, _) => f(tree::fs().root()),
    }
}

/// Calls `f` with the CPU's access to the tree and where the path begins.
pub fn with<R>(
    directory: Option<&Held>,
    path: &[u8],
    f: impl FnOnce(&mut khronos_fs::Cx<'static>, At<'_>) -> core::result::Result<R, khronos_fs::Errno>,
) -> Result<R> {
    with_directory(directory, path, |directory| Ok(tree::with(|cx| f(cx, At { directory, path }))?))
}

/// Bits of permission that a new file gets.
pub fn mode_of_new(mode: u32) -> u32 {
    // Relaxed: a setting
    let mask = process::current().map_or(0, |process| process.file_mask.load(Ordering::Relaxed));
    mode & 0o7777 & !mask
}

/// Opens a file.
pub fn open(directory: Option<&Held>, path: &[u8], how: u32, mode: u32) -> Result<Arc<File>> {
    if let Some(object) = proc::open(path) {
        return Ok(File::new(object?, how));
    }
    let has = |flag| how & flag != 0;
    if has(flags::PATH) {
        let node = with(directory, path, |cx, at| cx.resolve(at, !has(flags::NO_FOLLOW)))?;
        return Ok(File::new(Arc::new(OpenNode(Held::new(node))), how));
    }
    let how_opened = Open {
        create: has(flags::CREATE),
        exclusive: has(flags::EXCLUSIVE),
        write: how & flags::ACCESS != 0,
        truncate: has(flags::TRUNCATE),
        directory: has(flags::DIRECTORY),
        no_follow: has(flags::NO_FOLLOW),
    };
    let mode = mode_of_new(mode);
    let node = Held::new(with(directory, path, |cx, at| cx.open(at, how_opened, mode))?);
    let object: Arc<dyn Object> = if node.kind() == Kind::Special {
        dev::open(tree::with(|cx| cx.stat_of(&node)))?
    } else {
        Arc::new(OpenNode(node))
    };
    Ok(File::new(object, how))
}

/// What is known of a path.
pub fn stat(directory: Option<&Held>, path: &[u8], follow: bool) -> Result<Stat> {
    if let Some(object) = proc::open(path) {
        return Ok(object?.stat());
    }
    with(directory, path, |cx, at| cx.stat(at, follow))
}

/// The inode at a path, held.
pub fn resolve(directory: Option<&Held>, path: &[u8], follow: bool) -> Result<Held> {
    Ok(Held::new(with(directory, path, |cx, at| cx.resolve(at, follow))?))
}

/// The directory at a path, held.
pub fn directory(from: Option<&Held>, path: &[u8]) -> Result<Held> {
    let node = resolve(from, path, true)?;
    if node.kind() == Kind::Directory { Ok(node) } else { Err(Errno::NOT_DIRECTORY) }
}
