//! Files as the kernel lists them among a process' mappings.
//!
//! The list writes a line feed in a path as `\012`, but a backslash unchanged; and its mark behind
//! the path of a deleted file, ` (deleted)`, can also be the end of a name. So a text stands for
//! several paths, and the numbers beside it show which one is meant.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The kernel's mark behind the path of a deleted file.
const DELETED: &[u8] = b" (deleted)";
const LINE_FEED: &[u8] = b"\\012";

/// A file in a list of mappings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Its path as it is written there.
    pub text: Vec<u8>,
    /// Its device's number: the upper half is the major one.
    pub device: u64,
    /// Its inode number; 0 if that is not known. With some file systems it differs from that of
    /// `stat`.
    pub inode: u64,
}

impl Listed {
    /// Paths that can be meant, the likeliest first.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        let gone = self.text.strip_suffix(DELETED);
        for text in [Some(&self.text[..]), gone].into_iter().flatten() {
            for bytes in [Cow::Borrowed(text), unescaped(text)] {
                let path = PathBuf::from(OsString::from_vec(bytes.into_owned()));
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Its path. It is right if no name in it has a backslash in front of digits.
    pub fn path(&self) -> PathBuf {
        let text = self.text.strip_suffix(DELETED).unwrap_or(&self.text);
        OsStr::from_bytes(&unescaped(text)).into()
    }

    /// What `/proc/PID/exe` reads for the file. It is right if no name in it has a backslash in
    /// front of digits.
    pub fn link(&self) -> PathBuf {
        OsStr::from_bytes(&unescaped(&self.text)).into()
    }

    /// Whether `/proc/PID/exe` may read so.
    pub fn is_called(&self, link: &Path) -> bool {
        self.text == link.as_os_str().as_bytes() || self.link() == link
    }

    /// Whether it can be a file, and not something that the kernel lends.
    pub fn is_file(&self) -> bool {
        self.text.starts_with(b"/")
    }

    /// Whether the list says that the file is deleted, or the file has such a name.
    pub fn is_listed_as_deleted(&self) -> bool {
        self.text.ends_with(DELETED)
    }
}

/// With line feeds.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.windows(LINE_FEED.len()).any(|part| part == LINE_FEED) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let feed = rest.strip_prefix(LINE_FEED);
        bytes.push(if feed.is_some() { b'\n' } else { *first });
        rest = feed.unwrap_or(behind);
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_for_several_paths() {
        let paths = |text: &str| -> Vec<String> {
            let listed = Listed { text: text.into(), device: 0, inode: 1 };
            listed.paths().into_iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(paths("/a b"), ["/a b"]);
        assert_eq!(paths("/a (deleted)"), ["/a (deleted)", "/a"]);
        assert_eq!(
            paths("/a\\012b\\c (deleted)"),
            ["/a\\012b\\c (deleted)", "/a\nb\\c (deleted)", "/a\\012b\\c", "/a\nb\\c"]
        );
    }

    #[test]
    fn a_program_is_the_one_that_its_process_names() {
        let listed = Listed { text: b"/a\\012b (deleted)".to_vec(), device: 0, inode: 1 };
        assert!(listed.is_called(Path::new("/a\nb (deleted)")));
        assert!(!listed.is_called(Path::new("/a\nb")));
        assert_eq!(listed.path(), Path::new("/a\nb"));
    }
}
