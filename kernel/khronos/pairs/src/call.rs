//! Calls, and how they are written in a list of cases.

use std::fmt;
use std::str::FromStr;

/// A name in one of two directories, `a` and `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// 0 or 1.
    pub directory: u8,
    /// Which of its names.
    pub name: u8,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", char::from(b'a' + self.directory), self.name)
    }
}

impl FromStr for Path {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || Mistake(format!("{text} is no path: one is a0 or b3"));
        let directory = match text.as_bytes().first() {
            Some(b'a') => 0,
            Some(b'b') => 1,
            _ => return Err(mistake()),
        };
        Ok(Self { directory, name: text[1..].parse().map_err(|_| mistake())? })
    }
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(pub String);

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}

macro_rules! calls {
    ($($(#[doc = $doc:literal])* $variant:ident $text:literal $of:literal ($($argument:ident: $type:ty),*);)*) => {
        /// A call. Descriptors are in slots, which programs keep for each process. Bytes of files
        /// are read and written in pages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "what an argument is, its name tells")]
        pub enum Call {
            $($(#[doc = $doc])* $variant { $($argument: $type),* },)*
        }

        impl Call {
            /// The system call that it is.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $of,)* }
            }
        }

        impl fmt::Display for Call {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant { $($argument),* } => {
                        f.write_str($text)?;
                        $(write!(f, ":{}", $argument)?;)*
                        Ok(())
                    })*
                }
            }
        }

        impl FromStr for Call {
            type Err = Mistake;

            fn from_str(text: &str) -> Result<Self, Mistake> {
                let mut words = text.split(':');
                match words.next() {
                    $(Some($text) => Ok(Self::$variant { $($argument: next(text, words.next())?),* }),)*
                    _ => Err(Mistake(format!("{text} is no call"))),
                }
            }
        }
    };
}

fn next<T: FromStr>(call: &str, word: Option<&str>) -> Result<T, Mistake> {
    let word = word.ok_or_else(|| Mistake(format!("{call}: an argument is missing")))?;
    word.parse().map_err(|_| Mistake(format!("{call}: what is {word}?")))
}

impl Call {
    /// Its paths.
    pub fn paths(self) -> Vec<Path> {
        match self {
            Self::OpenNew { path, .. }
            | Self::OpenCreate { path, .. }
            | Self::Open { path, .. }
            | Self::Stat { path }
            | Self::Unlink { path }
            | Self::Mkdir { path }
            | Self::Rmdir { path } => vec![path],
            Self::Link { from, to } | Self::Rename { from, to } => vec![from, to],
            _ => vec![],
        }
    }
}

calls! {
    /// Makes a file that must not be there.
    OpenNew "open-new" "open" (path: Path, slot: u8);
    /// Makes a file unless it is there.
    OpenCreate "open-create" "open" (path: Path, slot: u8);
    /// Opens a file that is there.
    Open "open" "open" (path: Path, slot: u8);
    /// The status of a path.
    Stat "stat" "stat" (path: Path);
    Unlink "unlink" "unlink" (path: Path);
    Mkdir "mkdir" "mkdir" (path: Path);
    Rmdir "rmdir" "rmdir" (path: Path);
    Link "link" "link" (from: Path, to: Path);
    Rename "rename" "rename" (from: Path, to: Path);
    Close "close" "close" (slot: u8);
    /// Where the descriptor is.
    Read "read" "read" (slot: u8);
    Write "write" "write" (slot: u8);
    Pread "pread" "pread" (slot: u8, page: u8);
    Pwrite "pwrite" "pwrite" (slot: u8, page: u8);
    Lseek "lseek" "lseek" (slot: u8, page: u8);
    Fstat "fstat" "fstat" (slot: u8);
    /// One more descriptor of the same open file.
    Dup "dup" "dup" (slot: u8, to: u8);
    Pipe "pipe" "pipe" (reader: u8, writer: u8);
    /// Maps zeroed memory at a page, in place of the page's earlier contents.
    Mmap "mmap" "mmap" (page: u8);
    Munmap "munmap" "munmap" (page: u8);
    /// Takes the right to write.
    Mprotect "mprotect" "mprotect" (page: u8);
    MemRead "memread" "memread" (page: u8);
    MemWrite "memwrite" "memwrite" (page: u8);
}

/// The calls of which pairs are made, by their names.
pub const NAMES: [&str; 20] = [
    "open", "stat", "unlink", "link", "rename", "mkdir", "rmdir", "close", "read", "write",
    "pread", "pwrite", "lseek", "fstat", "pipe", "mmap", "munmap", "mprotect", "memread",
    "memwrite",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_it_is_written() {
        let path = |directory, name| Path { directory, name };
        for call in [
            Call::Rename { from: path(0, 1), to: path(1, 12) },
            Call::Pwrite { slot: 3, page: 2 },
            Call::OpenNew { path: path(0, 0), slot: 7 },
        ] {
            assert_eq!(call.to_string().parse(), Ok(call));
        }
        assert!("rename:a0".parse::<Call>().unwrap_err().to_string().contains("missing"));
        assert!("rename:a0:c1".parse::<Call>().unwrap_err().to_string().contains("c1"));
        assert!("fly:a0".parse::<Call>().is_err());
    }
}
