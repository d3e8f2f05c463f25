//! Files and directories of the tree.

use alloc::sync::Arc;
use alloc::vec::Vec;

use khronos_fs::{Kind, Stat};

use super::file::Object;
use super::tree::{self, Held};
use crate::call::errno::{Errno, Result};
use crate::mm::area::{Content, Source};

/// An open file or directory.
pub struct OpenNode(pub Held);

/// The most bytes that are read or written while pinned.
const PIECE: usize = 16 << 10;

impl Object for OpenNode {
    fn read(&self, offset: u64, into: &mut [u8], _wait: bool) -> Result<usize> {
        if self.0.kind() == Kind::Directory {
            return Err(Errno::IS_DIRECTORY);
        }
        let mut done = 0;
        for piece in into.chunks_mut(PIECE) {
            let bytes = tree::with(|cx| cx.read(&self.0, offset + done as u64, piece))?;
            done += bytes;
            if bytes < piece.len() {
                break;
            }
        }
        Ok(done)
    }

    fn write(&self, offset: Option<u64>, from: &[u8], _wait: bool) -> Result<(u64, usize)> {
        let Some(offset) = offset else {
            return Ok(tree::with(|cx| cx.append(&self.0, from))?);
        };
        let mut done = 0;
        for piece in from.chunks(PIECE) {
            let bytes = tree::with(|cx| cx.write(&self.0, offset + done as u64, piece))?;
            done += bytes;
            if bytes < piece.len() {
                break;
            }
        }
        Ok((offset, done))
    }

    fn is_seekable(&self) -> bool {
        self.0.kind() == Kind::File
    }

    fn stat(&self) -> Stat {
        tree::with(|cx| cx.stat_of(&self.0))
    }

    fn inode(&self) -> Option<&Held> {
        Some(&self.0)
    }

    fn names(&self, from: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let mut list = Vec::with_capacity(most);
        let mut next = from;
        let mut is_full = false;
        tree::with(|cx| {
            cx.readdir(&self.0, from, |entry| {
                let fits =
                    put_name(&mut list, most, entry.name, entry.number, entry.kind, entry.next);
                is_full = !fits;
                if fits {
                    next = entry.next;
                }
                fits
            })
        })?;
        if is_full && list.is_empty() { Err(Errno::INVALID) } else { Ok((list, next)) }
    }

    fn source(self: Arc<Self>, offset: u64, bytes: u64) -> Result<Source> {
        if self.0.kind() != Kind::File {
            return Err(Errno::ACCESS);
        }
        Ok(Source::File { content: self, offset, limit: offset.saturating_add(bytes) })
    }
}

impl Content for OpenNode {
    fn read_at(&self, offset: u64, into: &mut [u8]) {
        // Unreadable bytes stay zero; a mapped file is a regular file, which can be read.
        let _ = self.read(offset, into, false);
    }
}

/// Appends a name to others, in the form of `getdents64`, if there is room.
pub fn put_name(
    list: &mut Vec<u8>,
    most: usize,
    name: &[u8],
    number: u64,
    kind: Kind,
    next: u64,
) -> bool {
    let bytes = (19 + name.len() + 1).next_multiple_of(8);
    if list.len() + bytes > most {
        return false;
    }
    let start = list.len();
    list.extend_from_slice(&number.to_le_bytes());
    list.extend_from_slice(&next.to_le_bytes());
    list.extend_from_slice(&(bytes as u16).to_le_bytes());
    let device = super::dev::CHARACTER_DEVICE;
    list.push((if kind == Kind::Special { device } else { kind.mode() } >> 12) as u8);
    list.extend_from_slice(name);
    list.resize(start + bytes, 0);
    true
}
