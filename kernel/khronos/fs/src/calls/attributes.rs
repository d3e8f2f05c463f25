//! Calls about attributes.

use crate::errno::Errno;
use crate::fs::{Ask, At, Cx};
use crate::inode::{Body, Inode, Kind};
use crate::record::ATTRIBUTES;
use crate::walk::{Last, walk};

/// What is known of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its number, which no other inode of the file system ever gets.
    pub number: u64,
    /// What it is.
    pub kind: Kind,
    /// The kind as in Linux, and the permission bits.
    pub mode: u32,
    /// The number of names. A directory has 1: its subdirectories are not counted, so that they can
    /// be made and removed without a common cache line.
    pub links: u64,
    /// Bytes; of a directory 4096, always.
    pub size: u64,
    /// The user's number, as it was set.
    pub user: u32,
    /// The group's.
    pub group: u32,
    /// The device's number of something special.
    pub device: u64,
    /// Nanoseconds since 1970: the time of the last read, as it was set explicitly. Reading does
    /// not change it.
    pub accessed: u64,
    /// The time of the last change of its contents. The contents of a directory are its names.
    pub modified: u64,
    /// When anything of it was changed.
    pub changed: u64,
}

impl Stat {
    pub(crate) fn of(inode: &Inode) -> Self {
        let ([accessed, mut modified, mut changed], (user, group)) =
            (inode.times(), inode.owners());
        let (mut links, mut device) = (inode.links(), 0);
        let size = match inode.body() {
            Body::File(file) => file.size(),
            Body::Symlink(target) => target.len() as u64,
            Body::Special(number) => {
                device = *number;
                0
            }
            Body::Directory(directory) => {
                modified = modified.max(directory.modified());
                changed = changed.max(modified);
                links = links.min(1);
                4096
            }
        };
        let (number, kind, mode) = (inode.number(), inode.kind(), inode.mode());
        Self { number, kind, mode, links, size, user, group, device, accessed, modified, changed }
    }
}

impl Cx<'_> {
    /// The attributes of a path's target. Writes no shared cache line.
    ///
    /// # Errors
    ///
    /// Those of paths.
    pub fn stat(&mut self, at: At<'_>, follow: bool) -> Result<Stat, Errno> {
        let (stat, _) = self.run(self.reading(), Ask::at(at), |tx, brought, _| {
            Ok(Stat::of(&*walk(tx, &brought, brought.from, Last::follow_if(follow))?.existing()?))
        })?;
        Ok(stat)
    }

    /// What is known of a held inode.
    pub fn stat_of(&self, inode: &Inode) -> Stat {
        let mut stat = Stat::of(inode);
        // The root has no name, and is there.
        if core::ptr::eq(inode, self.fs.root()) {
            stat.links = 1;
        }
        stat
    }

    /// Sets the bits of permission.
    pub fn chmod(&mut self, inode: &Inode, mode: u32) {
        let _update = self.update();
        inode.set_mode(mode, self.now());
        self.mark(inode, ATTRIBUTES);
    }

    /// Sets the numbers of user and group. They are kept, and mean nothing here.
    pub fn chown(&mut self, inode: &Inode, user: Option<u32>, group: Option<u32>) {
        let _update = self.update();
        inode.set_owners(user, group, self.now());
        self.mark(inode, ATTRIBUTES);
    }

    /// Sets times, in nanoseconds since 1970.
    pub fn utimens(&mut self, inode: &Inode, accessed: Option<u64>, modified: Option<u64>) {
        let _update = self.update();
        inode.set_times(accessed, modified, self.now());
        self.mark(inode, ATTRIBUTES);
    }

    /// Copies the path of a symbolic link, as far as there is room; returns the number of bytes.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] if it is none.
    pub fn readlink(&mut self, at: At<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (length, _) = self.run(self.reading(), Ask::at(at), |tx, brought, _| {
            let found = walk(tx, &brought, brought.from, Last::Keep)?.existing()?;
            let Body::Symlink(target) = found.inode().body() else {
                return Err(Errno::Invalid.into());
            };
            let length = target.len().min(buffer.len());
            buffer[..length].copy_from_slice(&target[..length]);
            Ok(length)
        })?;
        Ok(length)
    }
}
