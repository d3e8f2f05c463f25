//! Calls that list names.

use alloc::vec::Vec;

use manycore::session::View;

use crate::errno::Errno;
use crate::fs::{Ask, At, Cx};
use crate::inode::{Inode, Kind};
use crate::sync::{InodeRef, Stop, Tx};
use crate::walk::{Last, walk};

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The number of what it leads to.
    pub number: u64,
    /// What that is.
    pub kind: Kind,
    /// Where to go on behind it.
    pub next: u64,
}

/// Positions of `.` and `..`, before those of hashes.
const DOTS: u64 = 2;

impl Cx<'_> {
    /// Visits the names of a directory from a position on: 0, or [`Entry::next`] of a visited name.
    /// It returns false if `visit` does, and that entry then counts as not visited; it returns true
    /// after the last name.
    ///
    /// Under `rlu` and `mvrlu`, the names of one call are those of one moment. Positions stay valid
    /// whatever is created or removed meanwhile. (Two names with the same hash of 62 bits have the
    /// same position: if a call ends between them, the second is not visited.)
    ///
    /// # Errors
    ///
    /// [`Errno::NotDirectory`]; [`Errno::NoEntry`] if it was removed.
    pub fn readdir(
        &mut self,
        directory: &Inode,
        from: u64,
        mut visit: impl FnMut(Entry<'_>) -> bool,
    ) -> Result<bool, Errno> {
        directory.directory()?;
        let (is_all, _) = self.run(View::Snapshot, Ask::of(directory), |tx, brought, _| {
            let found = tx.enter(brought.inode)?;
            let parent = tx.parent(found).ok_or(Errno::NoEntry)?;
            for (position, name, dot) in [(0, b".".as_slice(), found), (1, b"..", parent)] {
                let (number, kind) = (dot.number(), dot.kind());
                if from <= position && !visit(Entry { name, number, kind, next: position + 1 }) {
                    return Ok(false);
                }
            }
            let mut is_all = true;
            tx.each(found, from.saturating_sub(DOTS), &mut |key, inode| {
                let (number, kind, next) = (inode.number(), inode.kind(), key.hash + DOTS + 1);
                is_all = visit(Entry { name: key.bytes, number, kind, next });
                is_all
            });
            Ok(is_all)
        })?;
        Ok(is_all)
    }

    /// The path of a directory, from the root; under `rlu` and `mvrlu` as of one moment. Takes time
    /// in proportion to the number of names in the directories above.
    ///
    /// # Errors
    ///
    /// [`Errno::NotDirectory`]; [`Errno::NoEntry`] if it was removed.
    pub fn getcwd(&mut self, directory: &Inode) -> Result<Vec<u8>, Errno> {
        directory.directory()?;
        let (path, _) = self.run(View::Snapshot, Ask::of(directory), |tx, brought, _| {
            let mut at = tx.enter(brought.inode)?;
            let mut names = Vec::new();
            while !at.is(brought.root) {
                let parent = tx.parent(at).ok_or(Errno::NoEntry)?;
                names.push(name_in(tx, parent, at).ok_or(Errno::NoEntry)?);
                at = parent;
            }
            let mut path = Vec::new();
            for name in names.iter().rev() {
                path.push(b'/');
                path.extend_from_slice(name);
            }
            if path.is_empty() {
                path.push(b'/');
            }
            Ok::<_, Stop>(path)
        })?;
        Ok(path)
    }

    /// The names in a directory, and their targets; none if the directory is missing.
    pub(crate) fn names_of(&mut self, at: At<'_>) -> Vec<(Vec<u8>, Kind)> {
        let listed = self.run(View::Snapshot, Ask::at(at), |tx, brought, _| {
            let found = walk(tx, &brought, brought.from, Last::Keep)?.existing()?;
            let mut names = Vec::new();
            tx.each(found, 0, &mut |key, inode| {
                names.push((key.bytes.to_vec(), inode.kind()));
                true
            });
            Ok(names)
        });
        listed.map_or(Vec::new(), |(names, _)| names)
    }
}

/// The name of a directory in the one above.
fn name_in<'v>(tx: &dyn Tx<'v>, parent: InodeRef<'v>, directory: InodeRef<'v>) -> Option<Vec<u8>> {
    let mut name = None;
    tx.each(parent, 0, &mut |key, inode| {
        if inode.is(&directory) {
            name = Some(key.bytes.to_vec());
        }
        name.is_none()
    });
    name
}
