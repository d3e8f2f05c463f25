//! The files of sysfs and /proc, below a chosen directory.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::cpu_set::CpuSet;
use crate::problem::Problem;

/// Where `sys` and `proc` are.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// What the running kernel shows.
    pub fn of_this_machine() -> Self {
        Self::below("/")
    }

    /// A copy of the files, or of a part: `sys` and `proc` are in this directory.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file, without the white space at its ends; nothing if the file does not exist.
    pub(crate) fn text(&self, path: &str) -> Result<Option<String>, Problem> {
        let path = self.path(path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Problem::new(
                format!("cannot read {}: {error}", path.display()),
                "let this user read it, or run where it can be read",
            )),
        }
    }

    /// The content of a file as a value of this type; nothing if the file is not there.
    pub(crate) fn value<T>(&self, path: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.text(path)? else { return Ok(None) };
        text.parse().map(Some).map_err(|why| self.broken(path, why))
    }

    /// Like [`value`](Self::value), of a mask of CPUs.
    pub(crate) fn mask(&self, path: &str) -> Result<Option<CpuSet>, Problem> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let broken = || self.broken(path, format!("'{text}' is no mask of CPUs"));
        CpuSet::from_mask(&text).map(Some).ok_or_else(broken)
    }

    /// The names in a directory, in order; nothing if the directory does not exist.
    pub(crate) fn names(&self, path: &str) -> Result<Option<Vec<String>>, Problem> {
        let path = self.path(path);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => {
                return Err(Problem::new(
                    format!("cannot list {}: {error}", path.display()),
                    "let this user list it, or run where it can be listed",
                ));
            }
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(Some(names))
    }

    /// Whether there is a file or a directory.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The name of a link's target; nothing if it is no link.
    pub(crate) fn name_behind(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// A file whose content makes no sense.
    pub(crate) fn broken(&self, path: &str, why: impl Display) -> Problem {
        Problem::new(
            format!("{} makes no sense: {why}", self.path(path).display()),
            "report it with the file's content",
        )
    }

    /// A file without which nothing can be said.
    pub(crate) fn missing(&self, path: &str) -> Problem {
        Problem::new(
            format!("{} is missing", self.path(path).display()),
            "mount sysfs and proc where this runs",
        )
    }
}

/// Whether the file does not exist, or its device has gone or does not provide the value.
fn is_absent(error: &io::Error) -> bool {
    const NO_DEVICE: i32 = 19;
    const INVALID: i32 = 22;
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || matches!(error.raw_os_error(), Some(NO_DEVICE | INVALID))
}

/// The number at the end of a name such as `cpu12`, if the name consists only of the word and a
/// number.
pub(crate) fn number_after(name: &str, word: &str) -> Option<usize> {
    name.strip_prefix(word)?.parse().ok()
}
