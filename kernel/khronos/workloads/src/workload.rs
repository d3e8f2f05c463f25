//! The workloads, by name.

use core::fmt;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Makes a file, and removes one that the thread has made before.
    Create,
    /// Removes a file, and makes it again.
    Unlink,
    /// Gives a file another name, or its old one.
    Rename,
    /// Renames a file, or a directory, from one directory to another. All threads use both
    /// directories.
    Move(bool),
    /// Reads the attributes of a file five directories down.
    Find,
    /// Lists a directory.
    List,
    /// Reads a page of a file.
    Read,
    /// Writes over one.
    Overwrite,
}

/// What threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// Each has a directory of its own.
    Low,
    /// All threads use one directory or one file, but each uses its own names or pages there.
    Medium,
    /// All use the same name or page.
    High,
}

/// What threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    name: &'static str,
    about: &'static str,
    pub(crate) operation: Operation,
    pub(crate) shared: Shared,
}

macro_rules! workloads {
    ($($name:ident, $text:literal, $operation:expr, $shared:ident, $about:literal;)*) => {
        impl Workload {
            $(
                #[doc = $about]
                pub const $name: Self = Self {
                    name: $text, about: $about, operation: $operation, shared: Shared::$shared,
                };
            )*

            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

workloads! {
    MWCL, "mwcl", Operation::Create, Low, "files are made and removed, each thread in a directory of its own";
    MWCM, "mwcm", Operation::Create, Medium, "files are made and removed in one directory";
    MWUL, "mwul", Operation::Unlink, Low, "files are removed and made again, each thread in a directory of its own";
    MWUM, "mwum", Operation::Unlink, Medium, "files are removed and made again in one directory";
    MWRL, "mwrl", Operation::Rename, Low, "files are renamed, each thread in a directory of its own";
    MWRM, "mwrm", Operation::Rename, Medium, "files are renamed from directories of threads to one directory, and back";
    MRPL, "mrpl", Operation::Find, Low, "a file of the thread's is looked up five directories down";
    MRPM, "mrpm", Operation::Find, Medium, "any of 64 files is looked up five directories down";
    MRPH, "mrph", Operation::Find, High, "the same file is looked up five directories down";
    MRDL, "mrdl", Operation::List, Low, "a directory of the thread's is listed";
    MRDM, "mrdm", Operation::List, Medium, "the same directory is listed";
    DRBL, "drbl", Operation::Read, Low, "a page of a file of the thread's is read";
    DRBM, "drbm", Operation::Read, Medium, "a page of the thread's is read in one file";
    DRBH, "drbh", Operation::Read, High, "the same page is read";
    DWOL, "dwol", Operation::Overwrite, Low, "a page of a file of the thread's is written over";
    DWOM, "dwom", Operation::Overwrite, Medium, "a page of the thread's is written over in one file";
    STORM, "storm", Operation::Move(true), Medium, "directories are moved between two directories";
    STORM_FILES, "storm-files", Operation::Move(false), Medium, "files are moved between two directories";
}

impl Workload {
    /// What it is called on the command line.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// In a few words.
    pub const fn about(self) -> &'static str {
        self.about
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|workload| workload.name == name)
    }

    /// Whether operations change names or bytes.
    pub const fn updates(self) -> bool {
        !matches!(self.operation, Operation::Find | Operation::List | Operation::Read)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
