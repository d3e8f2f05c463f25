//! Calls that remove names.

use alloc::vec::Vec;

use manycore::session::View;

use crate::errno::Errno;
use crate::fs::{Ask, At, Cx};
use crate::inode::{Inode, Kind};
use crate::sync::Stop;
use crate::walk::{Last, walk};

impl Cx<'_> {
    /// Removes a name of a non-directory. If that was its last name and no reference is left, the
    /// inode is freed.
    ///
    /// # Errors
    ///
    /// [`Errno::IsDirectory`].
    pub fn unlink(&mut self, at: At<'_>) -> Result<(), Errno> {
        let _update = self.update();
        let ((), held) = self.run(View::Latest, Ask::at(at), |tx, brought, holds| {
            let end = walk(tx, &brought, brought.from, Last::Name)?;
            let (seen, inode) = end.present(Errno::IsDirectory)?;
            if inode.is_directory() {
                return Err(Errno::IsDirectory.into());
            }
            if end.has_slash {
                return Err(Errno::NotDirectory.into());
            }
            holds.unlink(inode.inode());
            holds.note(&[seen.place])?;
            tx.prepare(&[seen], None, false)?;
            tx.change(&seen, None, brought.now)
        })?;
        self.unlinked(held.expect("the attempt holds what it has unlinked"));
        Ok(())
    }

    /// Removes a directory that has no names. From now on its remaining users find nothing in it,
    /// and can create nothing in it.
    ///
    /// # Errors
    ///
    /// [`Errno::NotEmpty`], [`Errno::NotDirectory`]; [`Errno::Invalid`] for a path that ends with
    /// `.`, and [`Errno::Busy`] for the root.
    pub fn rmdir(&mut self, at: At<'_>) -> Result<(), Errno> {
        let _update = self.update();
        let ((), held) = self.run(View::Latest, Ask::at(at), |tx, brought, holds| {
            let end = walk(tx, &brought, brought.from, Last::Name)?;
            let (seen, directory) = end.present(match end.found {
                _ if end.is_dot => Errno::Invalid,
                Some(found) if found.is(brought.root) => Errno::Busy,
                _ => Errno::NotEmpty,
            })?;
            if !directory.is_directory() {
                return Err(Errno::NotDirectory.into());
            }
            holds.unlink(directory.inode());
            holds.note(&[seen.place])?;
            tx.prepare(&[seen], Some(directory), false)?;
            match tx.remove(directory) {
                // It has names while this one leads to it.
                Err(Stop::Fail(errno)) => {
                    tx.confirm(&[seen])?;
                    Err(errno.into())
                }
                Err(again) => Err(again),
                Ok(()) => tx.change(&seen, None, brought.now),
            }
        })?;
        self.unlinked(held.expect("the attempt holds what it has removed"));
        Ok(())
    }

    /// Removes all names; no other thread has the file system any more.
    pub(crate) fn empty_root(&mut self) {
        let root = self.fs.root();
        let mut path = Vec::new();
        while let Some(depth) = self.remove_one(root, &mut path) {
            path.truncate(depth);
        }
    }

    /// Descends to a directory without subdirectories, and removes it with all its files. Returns
    /// the length of the path of the directory above it; `None` if there is none.
    fn remove_one(&mut self, root: &Inode, path: &mut Vec<u8>) -> Option<usize> {
        let mut above = 0;
        loop {
            path.push(b'/');
            let here = path.len();
            let mut below = None;
            for (name, kind) in self.names_of(At { directory: root, path }) {
                if kind == Kind::Directory {
                    below = Some(name);
                    continue;
                }
                path.truncate(here);
                path.extend_from_slice(&name);
                self.unlink(At { directory: root, path }).expect("no other thread removes it");
            }
            path.truncate(here);
            let Some(below) = below else { break };
            above = here - 1;
            path.extend_from_slice(&below);
        }
        path.pop();
        if path.is_empty() {
            return None;
        }
        self.rmdir(At { directory: root, path }).expect("no other thread puts anything in");
        Some(above)
    }
}
