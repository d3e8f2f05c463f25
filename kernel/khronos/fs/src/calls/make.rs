//! Calls that make names.

use manycore::session::View;

use crate::errno::Errno;
use crate::file::File;
use crate::fs::{Ask, At, Cx};
use crate::inode::{Body, Kind, MODE_KIND};
use crate::sync::held::{Held, InodeHandle};

use crate::walk::{Last, PATH_MAX, walk};

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// It is made if it is not there (O_CREAT).
    pub create: bool,
    /// The file must not exist before (O_EXCL). Used with `create`.
    pub exclusive: bool,
    /// The file will be written, which directories cannot be (O_WRONLY, O_RDWR).
    pub write: bool,
    /// It has no bytes afterwards (O_TRUNC).
    pub truncate: bool,
    /// It is a directory (O_DIRECTORY).
    pub directory: bool,
    /// A symbolic link at the path's end is an error, and not followed (O_NOFOLLOW).
    pub no_follow: bool,
}

impl Open {
    /// To read what is there.
    pub const READ: Self = Self {
        create: false,
        exclusive: false,
        write: false,
        truncate: false,
        directory: false,
        no_follow: false,
    };
    /// To write, and made if it is not there.
    pub const CREATE: Self = Self { create: true, write: true, ..Self::READ };
    /// Made, and not there before.
    pub const NEW: Self = Self { exclusive: true, ..Self::CREATE };
}

impl<'fs> Cx<'fs> {
    /// What a path leads to, whatever it is.
    ///
    /// # Errors
    ///
    /// [`Errno::NoEntry`], and those of paths: [`Errno::NotDirectory`], [`Errno::NameTooLong`],
    /// [`Errno::TooManySymlinks`]. All calls with paths have these.
    pub fn resolve(&mut self, at: At<'_>, follow: bool) -> Result<InodeHandle<'fs>, Errno> {
        let (_, held) = self.run(self.reading(), Ask::at(at), |tx, brought, holds| {
            let found = walk(tx, &brought, brought.from, Last::follow_if(follow))?.existing()?;
            holds.hold(found.inode())
        })?;
        Ok(InodeHandle::new(held.expect("the attempt holds what it has found")))
    }

    /// Opens a file or a directory, or makes a file with these permissions.
    ///
    /// # Errors
    ///
    /// [`Errno::Exists`], [`Errno::IsDirectory`], [`Errno::NotDirectory`],
    /// [`Errno::TooManySymlinks`] as [`Open`] says.
    pub fn open(&mut self, at: At<'_>, how: Open, mode: u32) -> Result<InodeHandle<'fs>, Errno> {
        if let (true, [path @ .., b'/']) = (how.create, at.path) {
            return self.create_directory(At { path, ..at }, how.exclusive);
        }
        let last = match how {
            Open { create: true, exclusive: true, .. } => Last::Name,
            Open { no_follow: true, .. } => Last::Keep,
            Open { create: true, .. } => Last::FollowName,
            _ => Last::Follow,
        };
        loop {
            if !(how.create && how.exclusive) {
                match self.open_there(at, how, last) {
                    Err(Errno::NoEntry) if how.create => {}
                    result => return result,
                }
            }
            match self.create(at, mode, last) {
                Err(Errno::Exists) if !how.exclusive => {}
                result => return result,
            }
        }
    }

    /// The error for a path with a slash at its end, which cannot be that of a file, if the
    /// directory above exists.
    fn create_directory<R>(&mut self, mut at: At<'_>, exclusive: bool) -> Result<R, Errno> {
        while let [path @ .., b'/'] = at.path {
            at.path = path;
        }
        if at.path.is_empty() {
            return Err(Errno::IsDirectory);
        }
        let never = self.run(self.reading(), Ask::at(at), |tx, brought, _| {
            let is_name = walk(tx, &brought, brought.from, Last::Name)?.place.is_some();
            let errno = if exclusive && !is_name { Errno::Exists } else { Errno::IsDirectory };
            Err::<R, _>(errno.into())
        })?;
        Ok(never.0)
    }

    fn open_there(&mut self, at: At<'_>, how: Open, last: Last) -> Result<InodeHandle<'fs>, Errno> {
        let view = if how.create { View::Latest } else { self.reading() };
        let (_, held) = self.run(view, Ask::at(at), |tx, brought, holds| {
            let end = walk(tx, &brought, brought.from, last)?;
            let found = end.existing()?;
            if how.create && end.has_slash {
                return Err(Errno::IsDirectory.into());
            }
            match found.kind() {
                Kind::Symlink => return Err(Errno::TooManySymlinks.into()),
                Kind::Directory if how.write || how.create => {
                    return Err(Errno::IsDirectory.into());
                }
                Kind::Directory => {}
                _ if how.directory => return Err(Errno::NotDirectory.into()),
                _ => {}
            }
            holds.hold(found.inode())
        })?;
        let node = InodeHandle::new(held.expect("the attempt holds what it has found"));
        if how.truncate && node.kind() == Kind::File {
            self.truncate(&node, 0)?;
        }
        Ok(node)
    }

    fn create(&mut self, at: At<'_>, mode: u32, last: Last) -> Result<InodeHandle<'fs>, Errno> {
        let _update = self.update();
        let held = self.make(mode, self.file());
        let made = self.run(View::Latest, Ask::at(at).with(&held), |tx, brought, holds| {
            let end = walk(tx, &brought, brought.from, last)?;
            let seen = end.absent()?;
            if end.has_slash {
                return Err(Errno::IsDirectory.into());
            }
            holds.note(&[seen.place])?;
            tx.prepare(&[seen], None, false)?;
            tx.change(&seen, Some(brought.inode), brought.now)
        });
        match made {
            Ok(_) => Ok(InodeHandle::new(held)),
            Err(errno) => {
                self.unmade(held);
                Err(errno)
            }
        }
    }

    /// Makes a directory.
    ///
    /// # Errors
    ///
    /// [`Errno::Exists`].
    pub fn mkdir(&mut self, at: At<'_>, mode: u32) -> Result<(), Errno> {
        // A directory is large: it is made if it gets a name.
        self.run(self.reading(), Ask::at(at), |tx, brought, _| {
            Ok(walk(tx, &brought, brought.from, Last::Name)?.absent().map(|_| ())?)
        })?;
        let directory = self.names.directory();
        let held = self.make(mode, Body::Directory(directory));
        self.give_name(at, held, true)
    }

    /// Makes something special, or a file: the kind is in the mode. The number is a device's.
    ///
    /// # Errors
    ///
    /// [`Errno::Exists`]; [`Errno::NotPermitted`] for a directory, and [`Errno::Invalid`] for a
    /// symbolic link, because this call does not make them.
    pub fn mknod(&mut self, at: At<'_>, mode: u32, device: u64) -> Result<(), Errno> {
        let body = match mode & MODE_KIND {
            0 => self.file(),
            kind if kind == Kind::File.mode() => self.file(),
            kind if kind == Kind::Directory.mode() => return Err(Errno::NotPermitted),
            kind if kind == Kind::Symlink.mode() => return Err(Errno::Invalid),
            _ => Body::Special(device),
        };
        let held = self.make(mode, body);
        self.give_name(at, held, false)
    }

    /// Makes a symbolic link to a path, which needs not lead anywhere.
    ///
    /// # Errors
    ///
    /// [`Errno::Exists`]; [`Errno::NoEntry`] if the target is empty, and [`Errno::NameTooLong`] if
    /// it is longer than a path may be.
    pub fn symlink(&mut self, target: &[u8], at: At<'_>) -> Result<(), Errno> {
        match target.len() {
            0 => return Err(Errno::NoEntry),
            length if length > PATH_MAX => return Err(Errno::NameTooLong),
            _ => {}
        }
        let held = self.make(0o777, Body::Symlink(target.into()));
        self.give_name(at, held, false)
    }

    /// A file without bytes.
    fn file(&self) -> Body {
        Body::File(File::new(self.fs.options().records))
    }

    /// Gives an inode that was made its name.
    fn give_name(&mut self, at: At<'_>, held: Held, is_directory: bool) -> Result<(), Errno> {
        let _update = self.update();
        let made = self.run(View::Latest, Ask::at(at).with(&held), |tx, brought, holds| {
            let end = walk(tx, &brought, brought.from, Last::Name)?;
            let seen = end.absent()?;
            if end.has_slash && !is_directory {
                return Err(Errno::NoEntry.into());
            }
            holds.note(&[seen.place])?;
            tx.prepare(&[seen], None, false)?;
            if is_directory {
                tx.set_parent(brought.inode, seen.place.directory)?;
            }
            tx.change(&seen, Some(brought.inode), brought.now)
        });
        match made {
            Ok(_) => self.release(held),
            Err(_) => self.unmade(held),
        }
        made.map(|_| ())
    }

    /// Gives what is at `from` another name.
    ///
    /// There is one moment at which the old name exists and the new one appears.
    ///
    /// # Errors
    ///
    /// [`Errno::Exists`]; [`Errno::NotPermitted`] for a directory; [`Errno::TooManyLinks`].
    pub fn link(&mut self, from: At<'_>, to: At<'_>, follow: bool) -> Result<(), Errno> {
        let (ask, _update) = (Ask::at(from).to(to), self.update());
        self.run(View::Latest, ask, |tx, brought, holds| {
            let old = walk(tx, &brought, brought.from, Last::follow_if(follow))?;
            let inode = old.existing()?;
            let end = walk(tx, &brought, brought.to, Last::Name)?;
            if let (Ok((old, _)), Ok((new, _))) =
                (old.present(Errno::Exists), end.present(Errno::Exists))
            {
                tx.judge([old, new])?;
            }
            let seen = end.absent()?;
            if end.has_slash {
                return Err(Errno::NoEntry.into());
            }
            if inode.is_directory() {
                return Err(Errno::NotPermitted.into());
            }
            let (old, _) = old.present(Errno::NotPermitted)?;
            holds.link(inode.inode())?;
            holds.note(&[seen.place])?;
            tx.prepare(&[old, seen], None, false)?;
            tx.confirm(&[old])?;
            tx.change(&seen, Some(inode.inode()), brought.now)?;
            inode.set_changed(brought.now);
            Ok(())
        })
        .map(|_| ())
    }
}
