//! Calls on names of a thread's own, in a directory of all.

use core::fmt;

use khronos_fs::{At, Cx, Open, Rename};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what it is called")]
pub enum Call {
    Create,
    Unlink,
    Rename,
    Link,
    Stat,
    Symlink,
    Mkdir,
    Rmdir,
    /// A look-up of a name that does not exist.
    Missing,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::Unlink,
        Self::Rename,
        Self::Link,
        Self::Stat,
        Self::Symlink,
        Self::Mkdir,
        Self::Rmdir,
        Self::Missing,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Unlink => "unlink",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Stat => "stat",
            Self::Symlink => "symlink",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::Missing => "missing",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.name() == name)
    }

    /// Makes what is there before the call.
    ///
    /// # Panics
    ///
    /// If the name is there.
    pub fn prepare(self, cx: &mut Cx<'_>, name: &str) {
        let at = At { directory: cx.fs().root(), path: name.as_bytes() };
        match self {
            Self::Unlink | Self::Rename | Self::Link | Self::Stat => {
                let file = cx.open(at, Open::NEW, 0o644).expect("a new name");
                cx.close(file);
            }
            Self::Rmdir => cx.mkdir(at, 0o755).expect("a new name"),
            Self::Create | Self::Symlink | Self::Mkdir | Self::Missing => {}
        }
    }

    /// Makes the call.
    ///
    /// # Panics
    ///
    /// If it was not prepared.
    pub fn act(self, cx: &mut Cx<'_>, name: &str, other: &str) {
        let fs = cx.fs();
        let [at, other] =
            [name, other].map(|name| At { directory: fs.root(), path: name.as_bytes() });
        let done = match self {
            Self::Create => cx.open(at, Open::NEW, 0o644).map(|file| cx.close(file)),
            Self::Unlink => cx.unlink(at),
            Self::Rename => cx.rename(at, other, Rename::Replace),
            Self::Link => cx.link(at, other, false),
            Self::Stat => cx.stat(at, false).map(|_| ()),
            Self::Symlink => cx.symlink(b"somewhere", at),
            Self::Mkdir => cx.mkdir(at, 0o755),
            Self::Rmdir => cx.rmdir(at),
            Self::Missing => {
                assert!(cx.stat(at, false).is_err(), "{name} is there");
                Ok(())
            }
        };
        done.unwrap_or_else(|error| panic!("{self} of {name}: {error:?}"));
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
