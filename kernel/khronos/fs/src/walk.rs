//! Following paths.

use crate::Errno;
use crate::inode::{Body, Kind};
use crate::name::Key;
use crate::sync::{Brought, EntryName, InodeRef, Seen, Start, Stop, Tx};

/// The longest path, in bytes.
pub const PATH_MAX: usize = 4095;

/// How many symbolic links a path may lead over.
const SYMLINKS_MAX: usize = 40;

/// Where a path leads.
pub(crate) struct End<'v> {
    /// The last name, unless the path ends with `.` or `..`, or is `/`.
    pub place: Option<EntryName<'v>>,
    /// What is there.
    pub found: Option<InodeRef<'v>>,
    /// Whether the path says that it is a directory.
    pub has_slash: bool,
    /// Whether the last part is `.`.
    pub is_dot: bool,
}

impl<'v> End<'v> {
    /// What is there.
    pub fn existing(&self) -> Result<InodeRef<'v>, Errno> {
        self.found.ok_or(Errno::NoEntry)
    }

    /// The place of a name that is not there.
    pub fn absent(&self) -> Result<Seen<'v>, Errno> {
        match (self.place, self.found) {
            (Some(place), None) => Ok(Seen { place, inode: None }),
            _ => Err(Errno::Exists),
        }
    }

    /// An existing name, and its target. A path with another end leads to a directory that is in
    /// use: then the error is `errno`.
    pub fn present(&self, errno: Errno) -> Result<(Seen<'v>, InodeRef<'v>), Errno> {
        let place = self.place.ok_or(errno)?;
        let inode = self.existing()?;
        Ok((Seen { place, inode: Some(inode) }, inode))
    }
}

/// The treatment of a symbolic link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// It is followed.
    Follow,
    /// It is followed if a slash is behind it.
    Keep,
    /// It is kept, because the call is about the name. The caller decides whether a slash may
    /// follow.
    Name,
    /// It is followed. The caller decides whether a slash may follow its target.
    FollowName,
}

impl Last {
    pub fn follow_if(follow: bool) -> Self {
        if follow { Self::Follow } else { Self::Keep }
    }
}

/// The remaining parts of a path. Those of symbolic links follow, the innermost last.
struct Parts<'v> {
    rests: [&'v [u8]; SYMLINKS_MAX + 1],
    depth: usize,
}

impl<'v> Parts<'v> {
    fn new(path: &'v [u8]) -> Self {
        let mut rests: [&[u8]; SYMLINKS_MAX + 1] = [&[]; SYMLINKS_MAX + 1];
        rests[0] = path;
        Self { rests, depth: 1 }
    }

    fn push(&mut self, path: &'v [u8]) {
        self.rests[self.depth] = path;
        self.depth += 1;
    }

    /// The next part, and whether a slash follows it.
    fn next(&mut self) -> Option<(&'v [u8], bool)> {
        while self.depth > 0 {
            let rest = &mut self.rests[self.depth - 1];
            let begin = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
            let path = &rest[begin..];
            if path.is_empty() {
                self.depth -= 1;
                continue;
            }
            let length = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            let (part, behind) = path.split_at(length);
            *rest = behind;
            return Some((part, !behind.is_empty()));
        }
        None
    }

    /// Whether only slashes are left, and whether there are any.
    fn end(&self) -> (bool, bool) {
        let rests = &self.rests[..self.depth];
        let is_end = rests.iter().all(|rest| rest.iter().all(|byte| *byte == b'/'));
        (is_end, rests.iter().any(|rest| !rest.is_empty()))
    }
}

fn checked(path: &[u8]) -> Result<(), Errno> {
    match path.len() {
        0 => Err(Errno::NoEntry),
        length if length > PATH_MAX => Err(Errno::NameTooLong),
        _ => Ok(()),
    }
}

fn is_followed(last: Last, has_slash: bool) -> bool {
    matches!(last, Last::Follow | Last::FollowName) || last == Last::Keep && has_slash
}

/// Follows a path.
///
/// # Errors
///
/// If a directory on the way does not exist, or is not a directory. The last name need not exist.
pub(crate) fn walk<'v>(
    tx: &dyn Tx<'v>,
    brought: &Brought<'v>,
    start: Start<'v>,
    last: Last,
) -> Result<End<'v>, Stop> {
    checked(start.path)?;
    let root = InodeRef::root(brought);
    let begin = |path: &[u8]| if path.first() == Some(&b'/') { Some(root) } else { None };
    let mut at = match begin(start.path) {
        Some(root) => root,
        None => tx.enter(start.directory)?,
    };
    let (mut parts, mut symlinks) = (Parts::new(start.path), 0);
    let mut end = End { place: None, found: Some(at), has_slash: true, is_dot: false };
    while let Some((part, has_slash)) = parts.next() {
        if !at.is_directory() {
            return Err(Errno::NotDirectory.into());
        }
        let (is_end, slash_behind) = parts.end();
        let has_slash = has_slash || is_end && slash_behind;
        end = End { place: None, found: None, has_slash, is_dot: part == b"." };
        match part {
            b"." => {}
            b".." => at = tx.parent(at).ok_or(Errno::NoEntry)?,
            name => {
                let place = EntryName { directory: at, key: Key::new(name, brought.seed)? };
                end.place = Some(place);
                let found = tx.find(place.directory, place.key);
                let Some(found) = found else {
                    if is_end {
                        return Ok(end);
                    }
                    return Err(Errno::NoEntry.into());
                };
                if let (Body::Symlink(target), true) =
                    (found.inode().body(), !is_end || is_followed(last, has_slash))
                {
                    symlinks += 1;
                    if symlinks > SYMLINKS_MAX {
                        return Err(Errno::TooManySymlinks.into());
                    }
                    checked(target)?;
                    at = begin(target).unwrap_or(at);
                    parts.push(target);
                    end = End { place: None, found: Some(at), has_slash: true, is_dot: false };
                    continue;
                }
                at = found;
            }
        }
        end.found = Some(at);
    }
    let must_fit = matches!(last, Last::Follow | Last::Keep);
    if must_fit && end.has_slash && at.kind() != Kind::Directory {
        return Err(Errno::NotDirectory.into());
    }
    Ok(end)
}
