//! Renaming: one name goes and another comes, at one moment.

use manycore::session::{Conflict, View};

use crate::errno::Errno;
use crate::fs::{Ask, At, Cx};
use crate::sync::{Brought, InodeRef, Seen, Stop, Tx, changes_parent};
use crate::walk::{End, Last, walk};

/// What becomes of what has the new name already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rename {
    /// The target loses that name. A directory must be empty, and is removed.
    #[default]
    Replace,
    /// It is an error (RENAME_NOREPLACE).
    NoReplace,
    /// It gets the old name (RENAME_EXCHANGE).
    Exchange,
}

/// Both names, and what is there.
struct Pair<'v> {
    from: Seen<'v>,
    to: Seen<'v>,
    inode: InodeRef<'v>,
}

impl Cx<'_> {
    /// Renames, also from one directory to another. Under `rlu` and `mvrlu` this is one
    /// transaction, of which a [`Moment`](crate::Moment) sees all or nothing. Under the other
    /// mechanisms a reader may find both names for a moment, but always finds one.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] if a directory would become its own descendant; [`Errno::NotEmpty`],
    /// [`Errno::NotDirectory`] or [`Errno::IsDirectory`] if it cannot replace the existing target;
    /// [`Errno::Exists`] as [`Rename`] requires; [`Errno::Busy`] if a path ends with `.` or `..`.
    pub fn rename(&mut self, from: At<'_>, to: At<'_>, how: Rename) -> Result<(), Errno> {
        let (ask, _update) = (Ask::at(from).to(to), self.update());
        let ((), held) = self.run(View::Latest, ask, |tx, brought, holds| {
            let Some(pair) = find(tx, &brought, how)? else { return Ok(()) };
            let Pair { from, to, inode } = pair;
            let replaced = to.inode.filter(|_| how == Rename::Replace);
            let exchanged = to.inode.filter(|_| how == Rename::Exchange);
            let (below, above) = (from.place.directory, to.place.directory);
            let is_move = changes_parent(inode.inode(), below, above);
            let is_moved_back =
                exchanged.is_some_and(|other| changes_parent(other.inode(), above, below));
            if let Some(replaced) = replaced {
                holds.unlink(replaced.inode());
            }
            holds.note(&[from.place, to.place])?;
            let removed = replaced.filter(|replaced| replaced.is_directory());
            tx.prepare(&[from, to], removed, is_move || is_moved_back)?;
            if is_move {
                tx.move_below(inode, below, above)?;
            }
            if let (true, Some(other)) = (is_moved_back, exchanged) {
                tx.move_below(other, above, below)?;
            }
            if let Some(removed) = removed {
                tx.remove(removed)?;
            }
            tx.change(&to, Some(inode.inode()), brought.now)?;
            tx.change(&from, exchanged.map(InodeRef::inode), brought.now)?;
            inode.set_changed(brought.now);
            Ok(())
        })?;
        if let Some(held) = held {
            self.unlinked(held);
        }
        Ok(())
    }
}

/// Finds both names, and checks whether one can become the other. Returns `None` if there is
/// nothing to do.
fn find<'v>(
    tx: &mut dyn Tx<'v>,
    brought: &Brought<'v>,
    how: Rename,
) -> Result<Option<Pair<'v>>, Stop> {
    let old = walk(tx, brought, brought.from, Last::Name)?;
    let new = walk(tx, brought, brought.to, Last::Name)?;
    let (Some(_), Some(place)) = (old.place, new.place) else {
        let is_there = how == Rename::NoReplace && old.place.is_some();
        return Err(if is_there { Errno::Exists } else { Errno::Busy }.into());
    };
    let (from, inode) = old.present(Errno::Busy)?;
    let to = Seen { place, inode: new.found };
    if from.place.is(&place) && !new.found.is_some_and(|found| found.is(&inode)) {
        // Another thread came between the two look-ups of one name. This attempt would then write
        // by one look-up an object that it checks by the other.
        return Err(Stop::Again(Conflict::Changed));
    }
    let pair = Pair { from, to, inode };
    let errno = match (new.found, how) {
        (Some(_), Rename::NoReplace) => Some(Errno::Exists),
        (None, Rename::Exchange) => Some(Errno::NoEntry),
        (found, _) if has_wrong_slash(&old, inode, new.has_slash, found, how) => {
            Some(Errno::NotDirectory)
        }
        (Some(other), _) => kinds(tx, &pair, other, how),
        (None, _) => None,
    };
    if let Some(errno) = errno {
        // An error about two names describes a state that held at one moment.
        tx.judge([from, to])?;
        return Err(errno.into());
    }
    if new.found.is_some_and(|other| other.is(&inode)) {
        // Both are names of one file only if they are at one moment.
        tx.judge([from, to])?;
        return Ok(None);
    }
    Ok(Some(pair))
}

/// Whether a slash follows the name of a non-directory, or of a name that will not be that of a
/// directory.
fn has_wrong_slash(
    old: &End<'_>,
    inode: InodeRef<'_>,
    new_has_slash: bool,
    found: Option<InodeRef<'_>>,
    how: Rename,
) -> bool {
    let is_exchange = how == Rename::Exchange;
    let old_is_wrong = old.has_slash || new_has_slash && !is_exchange;
    let other_is_file = is_exchange && found.is_some_and(|other| !other.is_directory());
    !inode.is_directory() && old_is_wrong || new_has_slash && other_is_file
}

/// The reason why one cannot replace the other, by their kinds.
fn kinds<'v>(tx: &dyn Tx<'v>, pair: &Pair<'v>, other: InodeRef<'v>, how: Rename) -> Option<Errno> {
    let Pair { from, to, inode } = pair;
    if inode.is_directory() && is_above(tx, *inode, to.place.directory) {
        return Some(Errno::Invalid);
    }
    if other.is_directory() && is_above(tx, other, from.place.directory) {
        return Some(if how == Rename::Exchange { Errno::Invalid } else { Errno::NotEmpty });
    }
    match (inode.is_directory(), other.is_directory()) {
        _ if how == Rename::Exchange => None,
        (true, false) => Some(Errno::NotDirectory),
        (false, true) => Some(Errno::IsDirectory),
        _ => None,
    }
}

/// Whether a directory is another one, or above it. The answer is not as of one moment: directories
/// may move meanwhile.
fn is_above<'v>(tx: &dyn Tx<'v>, above: InodeRef<'v>, mut directory: InodeRef<'v>) -> bool {
    loop {
        if directory.is(&above) {
            return true;
        }
        match tx.parent(directory) {
            Some(parent) if !parent.is(&directory) => directory = parent,
            _ => return false,
        }
    }
}
