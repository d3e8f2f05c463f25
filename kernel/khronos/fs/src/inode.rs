//! Files, directories and symbolic links, whatever their names are.
//!
//! ```text
//!   line 1: read only     number, kind, body
//!   line 2: holders       references
//!   line 3: names         links
//!   line 4: attributes    mode, times
//! ```
//!
//! # Life
//!
//! An inode has *links*, its names in directories, and *references*: those of its users, and one
//! for all its links together. A thread that removes the last link drops that one reference, and a
//! thread that drops the last reference retires the inode. So opening and closing a file writes no
//! line that `stat` reads, and making and removing names writes none that writers of its bytes
//! read. A link is counted before a name can be found, and removed after the name is gone, so there
//! are never more names than links. Neither count ever increases from 0.

use alloc::boxed::Box;

use manycore::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Errno;
use crate::file::File;
use crate::sync::{Directory, Line, Shared};

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bytes.
    File,
    /// Names.
    Directory,
    /// A path.
    Symlink,
    /// A device, a pipe or a socket of another subsystem; its type is in the mode.
    Special,
}

/// The bits of a mode that give the kind of an inode.
pub const MODE_KIND: u32 = 0o170_000;
const MODE_DIRECTORY: u32 = 0o040_000;
const MODE_FILE: u32 = 0o100_000;
const MODE_SYMLINK: u32 = 0o120_000;

impl Kind {
    /// Its kind in the highest bits of a mode; a special file has its own.
    pub const fn mode(self) -> u32 {
        match self {
            Self::File => MODE_FILE,
            Self::Directory => MODE_DIRECTORY,
            Self::Symlink => MODE_SYMLINK,
            Self::Special => 0,
        }
    }
}

pub(crate) enum Body {
    File(Box<File>),
    Directory(Directory),
    Symlink(Box<[u8]>),
    Special(u64),
}

/// What does not change.
struct Constant {
    number: u64,
    kind: Kind,
    /// The file system that it belongs to.
    owner: usize,
    body: Body,
}

/// A file, a directory, a symbolic link or something special.
pub struct Inode {
    constant: Line<Shared<Constant>>,
    references: Line<AtomicU64>,
    links: Line<AtomicU64>,
    attributes: Line<Attributes>,
}

/// As many names as an inode may have.
const LINKS_MAX: u64 = 1 << 20;

struct Attributes {
    mode: AtomicU32,
    user: AtomicU32,
    group: AtomicU32,
    accessed: AtomicU64,
    modified: AtomicU64,
    changed: AtomicU64,
    /// Its changes since it was last kept; see `record`.
    marks: AtomicU32,
}

impl Inode {
    /// Creates an inode with this many links, and one reference, which the caller owns.
    pub(crate) fn new(
        number: u64,
        owner: usize,
        mode: u32,
        links: u64,
        now: u64,
        body: Body,
    ) -> Self {
        let kind = match body {
            Body::File(_) => Kind::File,
            Body::Directory(_) => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
            Body::Special(_) => Kind::Special,
        };
        let of_kind = if kind == Kind::Special { mode & MODE_KIND } else { kind.mode() };
        Self {
            constant: Line(Shared::new(Constant { number, kind, owner, body })),
            references: Line(AtomicU64::new(1 + u64::from(links > 0))),
            links: Line(AtomicU64::new(links)),
            attributes: Line(Attributes {
                mode: AtomicU32::new(of_kind | mode & !MODE_KIND),
                user: AtomicU32::new(0),
                group: AtomicU32::new(0),
                accessed: AtomicU64::new(now),
                modified: AtomicU64::new(now),
                changed: AtomicU64::new(now),
                marks: AtomicU32::new(0),
            }),
        }
    }

    /// Its number, which no other inode of the file system ever gets.
    pub fn number(&self) -> u64 {
        self.constant.get().number
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.constant.get().kind
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == Kind::Directory
    }

    pub(crate) fn body(&self) -> &Body {
        &self.constant.get().body
    }

    pub(crate) fn owner(&self) -> usize {
        self.constant.get().owner
    }

    pub(crate) fn directory(&self) -> Result<&Directory, Errno> {
        match self.body() {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Errno::NotDirectory),
        }
    }

    /// Counts a reference, unless there is neither a reference nor a link; returns whether it did.
    pub(crate) fn acquire(&self) -> bool {
        add_one(&self.references, |references| references != 0)
    }

    /// Gives a reference back; says whether nothing is left.
    #[must_use = "if nothing is left, the inode is to be retired"]
    pub(crate) fn release(&self) -> bool {
        take_one(&self.references)
    }

    /// Counts a name that is going to be there.
    ///
    /// # Errors
    ///
    /// If it has no names any more, or as many as it can have.
    pub(crate) fn add_link(&self) -> Result<(), Errno> {
        if add_one(&self.links, |links| (1..LINKS_MAX).contains(&links)) {
            return Ok(());
        }
        Err(if self.links() == 0 { Errno::NoEntry } else { Errno::TooManyLinks })
    }

    /// Removes a link whose name was removed, or was not made; returns whether no link and no
    /// reference is left.
    #[must_use = "if nothing is left, the inode is to be retired"]
    pub(crate) fn remove_link(&self) -> bool {
        take_one(&self.links) && self.release()
    }

    /// The number of names that it has, or will soon have.
    pub(crate) fn links(&self) -> u64 {
        self.links.load(Ordering::Acquire) // Acquire: partner of the Release in `take_one`
    }

    /// The kind and the bits of permission.
    pub(crate) fn mode(&self) -> u32 {
        self.attributes.mode.load(Ordering::Relaxed) // Relaxed, as all attributes: by itself
    }

    pub(crate) fn set_mode(&self, mode: u32, now: u64) {
        let kind = self.mode() & MODE_KIND;
        self.attributes.mode.store(kind | mode & !MODE_KIND, Ordering::Relaxed);
        self.set_changed(now);
    }

    pub(crate) fn owners(&self) -> (u32, u32) {
        let Attributes { user, group, .. } = &*self.attributes;
        (user.load(Ordering::Relaxed), group.load(Ordering::Relaxed))
    }

    pub(crate) fn set_owners(&self, user: Option<u32>, group: Option<u32>, now: u64) {
        let set = |place: &AtomicU32, value: Option<u32>| {
            value.inspect(|value| place.store(*value, Ordering::Relaxed));
        };
        set(&self.attributes.user, user);
        set(&self.attributes.group, group);
        self.set_changed(now);
    }

    /// The times of the last read, of the last change of contents, and of the last change of
    /// anything.
    pub(crate) fn times(&self) -> [u64; 3] {
        let Attributes { accessed, modified, changed, .. } = &*self.attributes;
        [accessed, modified, changed].map(|time| time.load(Ordering::Relaxed))
    }

    pub(crate) fn set_times(&self, accessed: Option<u64>, modified: Option<u64>, now: u64) {
        let set = |place: &AtomicU64, time: Option<u64>| {
            time.inspect(|time| place.store(*time, Ordering::Relaxed));
        };
        set(&self.attributes.accessed, accessed);
        set(&self.attributes.modified, modified);
        self.set_changed(now);
    }

    /// Stored only if the time has changed, so that the line stays shared during a tick of the
    /// clock.
    pub(crate) fn set_changed(&self, now: u64) {
        set_time(&self.attributes.changed, now);
    }

    /// As it was on a disk.
    pub(crate) fn restore(&self, owners: [u32; 2], times: [u64; 3]) {
        let Attributes { user, group, accessed, modified, changed, .. } = &*self.attributes;
        for (place, value) in [user, group].into_iter().zip(owners) {
            place.store(value, Ordering::Relaxed);
        }
        for (place, value) in [accessed, modified, changed].into_iter().zip(times) {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// Adds marks; returns whether there was none before. To be called in an update, as `record`
    /// requires.
    pub(crate) fn mark(&self, marks: u32) -> bool {
        // Relaxed, as below: the gate of `record` orders updates and readers of the marks.
        let before = self.marks();
        before & marks != marks && self.attributes.marks.fetch_or(marks, Ordering::Relaxed) == 0
    }

    pub(crate) fn marks(&self) -> u32 {
        self.attributes.marks.load(Ordering::Relaxed)
    }

    pub(crate) fn unmark(&self, marks: u32) {
        self.attributes.marks.fetch_and(!marks, Ordering::Relaxed);
    }

    pub(crate) fn set_modified(&self, now: u64) {
        set_time(&self.attributes.modified, now);
        self.set_changed(now);
    }
}

/// Sets a time that many set to the same.
pub(crate) fn set_time(place: &AtomicU64, now: u64) {
    if place.load(Ordering::Relaxed) != now {
        place.store(now, Ordering::Relaxed); // Relaxed: as all attributes
    }
}

/// Increments the count if `may` accepts it; returns whether it did.
fn add_one(count: &AtomicU64, may: impl Fn(u64) -> bool) -> bool {
    // Relaxed, all: a thread that increments has found the inode, and so sees its contents.
    let relaxed = Ordering::Relaxed;
    let mut now = count.load(relaxed);
    while may(now) {
        match count.compare_exchange_weak(now, now + 1, relaxed, relaxed) {
            Ok(_) => return true,
            Err(other) => now = other,
        }
    }
    false
}

/// Counts one less; says whether none is left.
fn take_one(count: &AtomicU64) -> bool {
    // AcqRel: each subtraction is partner of the last one, whose thread sees the actions of all
    // others.
    let before = count.fetch_sub(1, Ordering::AcqRel);
    debug_assert!(before > 0, "given back more often than taken");
    before == 1
}

impl core::fmt::Debug for Inode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inode")
            .field("number", &self.number())
            .field("kind", &self.kind())
            .field("links", &self.links())
            .field("references", &self.references.load(Ordering::Relaxed)) // Relaxed: to be printed
            .finish_non_exhaustive()
    }
}
