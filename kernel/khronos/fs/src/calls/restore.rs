//! Calls that make the disk's contents, before any other code uses the file system.

use manycore::session::View;

use crate::errno::Errno;
use crate::file::{File, PageBytes};
use crate::fs::{Ask, At, Cx};
use crate::inode::{Body, Inode, Kind};
use crate::record::Restored;
use crate::sync::held::{Held, InodeHandle};
use crate::walk::{Last, walk};

impl<'fs> Cx<'fs> {
    /// The root's attributes.
    pub fn restore_root(&mut self, what: &Restored<'_>) {
        let root = self.fs.root();
        root.set_mode(what.mode, 0);
        root.restore(what.owners, what.times);
    }

    /// Makes an inode, with this name in a directory. This is not recorded.
    ///
    /// # Errors
    ///
    /// Those of [`mkdir`](Self::mkdir).
    pub fn restore(
        &mut self,
        directory: &Inode,
        name: &[u8],
        what: &Restored<'_>,
    ) -> Result<InodeHandle<'fs>, Errno> {
        let body = match what.kind() {
            Kind::File => Body::File(File::new(self.fs.options().records)),
            Kind::Directory => Body::Directory(self.names.directory()),
            Kind::Symlink => Body::Symlink(what.target.into()),
            Kind::Special => Body::Special(what.device),
        };
        let held = self.make_numbered(what.number, what.mode, body);
        self.is_restored(what.number);
        held.restore(what.owners, what.times);
        match self.restore_name(directory, name, &held) {
            Ok(()) => Ok(InodeHandle::new(held)),
            Err(errno) => {
                self.unmade(held);
                Err(errno)
            }
        }
    }

    /// Gives an inode that was restored another name.
    ///
    /// # Errors
    ///
    /// Those of [`link`](Self::link).
    pub fn restore_link(
        &mut self,
        directory: &Inode,
        name: &[u8],
        inode: &Inode,
    ) -> Result<(), Errno> {
        let held = Held::acquire(inode).ok_or(Errno::NoEntry)?;
        let linked = held.add_link().and_then(|()| {
            self.restore_name(directory, name, &held).inspect_err(|_| held.remove_link())
        });
        self.release(held);
        linked
    }

    fn restore_name(&mut self, directory: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        let ask = Ask::at(At { directory, path: name }).with(inode);
        // The directory has not been changed, since it was on a disk.
        let now = self.now();
        self.set_time(0);
        let made = self.run(View::Latest, ask, |tx, brought, _| {
            let seen = walk(tx, &brought, brought.from, Last::Name)?.absent()?;
            tx.prepare(&[seen], None, false)?;
            if brought.inode.is_directory() {
                tx.set_parent(brought.inode, seen.place.directory)?;
            }
            tx.change(&seen, Some(brought.inode), brought.now)
        });
        self.set_time(now);
        made.map(|_| ())
    }

    /// Makes a page of a file.
    ///
    /// # Errors
    ///
    /// [`Errno::NoSpace`] if there is no memory; [`Errno::Invalid`] if the inode is not a file.
    pub fn restore_page(
        &mut self,
        inode: &Inode,
        page: u64,
        bytes: &PageBytes,
    ) -> Result<(), Errno> {
        let Body::File(file) = inode.body() else { return Err(Errno::Invalid) };
        file.restore(page, bytes)
    }

    /// Sets the number of bytes of a file, after its pages.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] if it is no file.
    pub fn restore_size(&mut self, inode: &Inode, size: u64) -> Result<(), Errno> {
        let Body::File(file) = inode.body() else { return Err(Errno::Invalid) };
        file.restore_size(size);
        Ok(())
    }
}
