//! Calls on the bytes of files.

use crate::errno::Errno;
use crate::file::File;
use crate::fs::Cx;
use crate::inode::{Body, Inode};
use crate::record::{ATTRIBUTES, DATA};

fn file(inode: &Inode) -> Result<&File, Errno> {
    match inode.body() {
        Body::File(file) => Ok(file),
        Body::Directory(_) => Err(Errno::IsDirectory),
        Body::Symlink(_) | Body::Special(_) => Err(Errno::Invalid),
    }
}

impl Cx<'_> {
    /// Reads from a position on; returns the number of bytes, which is smaller at the end of the
    /// file. A read sees the bytes of another write all together or not at all.
    ///
    /// # Errors
    ///
    /// [`Errno::IsDirectory`]; [`Errno::Invalid`] for what has no bytes here.
    pub fn read(&mut self, inode: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        Ok(file(inode)?.read(offset, buffer))
    }

    /// Writes from a position on; returns how many bytes: fewer if there is no memory for more.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read); [`Errno::TooLarge`]; [`Errno::NoSpace`] if there is no memory
    /// for a single one.
    pub fn write(&mut self, inode: &Inode, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        let _update = self.update();
        let written = file(inode)?.write(Some(offset), data)?;
        self.modified(inode);
        Ok(written.1)
    }

    /// Writes at the end; returns the position, and the number of bytes.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    pub fn append(&mut self, inode: &Inode, data: &[u8]) -> Result<(u64, usize), Errno> {
        let _update = self.update();
        let written = file(inode)?.write(None, data)?;
        self.modified(inode);
        Ok(written)
    }

    /// Makes a file shorter, or longer by zeros that take no memory.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    pub fn truncate(&mut self, inode: &Inode, size: u64) -> Result<(), Errno> {
        let _update = self.update();
        file(inode)?.truncate(size)?;
        self.modified(inode);
        Ok(())
    }

    fn modified(&self, inode: &Inode) {
        inode.set_modified(self.now());
        self.mark(inode, ATTRIBUTES | DATA);
    }
}
