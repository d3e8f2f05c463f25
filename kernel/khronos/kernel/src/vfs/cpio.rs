//! The archive that the loader brings: `cpio` in the form `newc`. Its files become the tree.

use khronos_fs::{At, Errno as FsErrno, Kind, Open};

use super::tree;
use crate::call::errno::{Errno, Result};

const HEADER: usize = 110;
const KIND: u32 = 0o170_000;

/// A file of an archive.
struct Member<'a> {
    mode: u32,
    name: &'a [u8],
    data: &'a [u8],
}

fn field(header: &[u8], number: usize) -> Option<usize> {
    let text = core::str::from_utf8(&header[6 + 8 * number..14 + 8 * number]).ok()?;
    usize::from_str_radix(text, 16).ok()
}

/// The first member, and what is behind it.
fn next(archive: &[u8]) -> Option<(Member<'_>, &[u8])> {
    let header = archive.get(..HEADER)?;
    if !header.starts_with(b"070701") && !header.starts_with(b"070702") {
        return None;
    }
    let (mode, size, name_bytes) = (field(header, 1)?, field(header, 6)?, field(header, 11)?);
    let name = archive.get(HEADER..HEADER.checked_add(name_bytes)?)?;
    let start = (HEADER + name_bytes).next_multiple_of(4);
    let end = start.checked_add(size)?;
    let data = archive.get(start..end)?;
    let rest = archive.get(end.next_multiple_of(4)..).unwrap_or(&[]);
    let name = name.split(|&byte| byte == 0).next()?;
    Some((Member { mode: mode as u32, name, data }, rest))
}

/// Puts all files of the archive into the tree; returns their number.
pub fn unpack(archive: &[u8]) -> Result<usize> {
    let mut count = 0;
    let mut rest = archive;
    loop {
        // A loader may have put several archives one behind the other, with zeros between.
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        rest = &rest[zeros..];
        let Some((member, behind)) = next(rest) else { break };
        rest = behind;
        let name = member.name.strip_prefix(b"./").unwrap_or(member.name);
        if name == b"TRAILER!!!" || name == b"." || name.is_empty() {
            continue;
        }
        put(&Member { name, ..member })?;
        count += 1;
    }
    if rest.is_empty() || count > 0 { Ok(count) } else { Err(Errno::INVALID) }
}

fn put(member: &Member) -> Result<()> {
    let at = At { directory: tree::fs().root(), path: member.name };
    let permissions = member.mode & 0o7777;
    let made = match member.mode & KIND {
        kind if kind == Kind::Directory.mode() => tree::with(|cx| cx.mkdir(at, permissions)),
        kind if kind == Kind::Symlink.mode() => tree::with(|cx| cx.symlink(member.data, at)),
        kind if kind == Kind::File.mode() => tree::with(|cx| {
            let file = cx.open(at, Open { truncate: true, ..Open::CREATE }, permissions)?;
            let written = cx.write(&file, 0, member.data);
            cx.close(file);
            written.map(|_| ())
        }),
        _ => Ok(()), // devices are made by their driver
    };
    match made {
        Ok(()) | Err(FsErrno::Exists) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
