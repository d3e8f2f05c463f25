//! Names for the numbers of cgroups.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More are not looked at.
const CGROUPS_MAX: usize = 10_000;

/// The cgroups of the unified hierarchy, by the inode numbers of their directories.
#[derive(Debug, Default)]
pub struct Cgroups {
    paths: HashMap<u64, String>,
}

impl Cgroups {
    /// The cgroups that there are now.
    pub fn read() -> Self {
        let mut this = Self::default();
        if let Some(root) = unified(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()) {
            this.add(&root, &root);
        }
        this
    }

    /// The path of a cgroup, from the topmost root; `None` if the cgroup was removed.
    pub fn path(&self, number: u64) -> Option<String> {
        self.paths.get(&number).cloned()
    }

    /// Whether a cgroup is this one, or below it.
    pub fn is_within(&self, number: u64, one: &One) -> bool {
        let below =
            |path: &String| path.strip_prefix(&one.path).is_some_and(|rest| rest.starts_with('/'));
        number == one.number || one.path == "/" || self.paths.get(&number).is_some_and(below)
    }

    fn add(&mut self, root: &Path, directory: &Path) {
        let Ok(metadata) = fs::metadata(directory) else { return };
        if self.paths.len() >= CGROUPS_MAX {
            return;
        }
        let below = directory.strip_prefix(root).unwrap_or(directory);
        self.paths.insert(metadata.ino(), format!("/{}", below.display()));
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(root, &entry.path());
            }
        }
    }
}

/// A cgroup that existed when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct One {
    number: u64,
    path: String,
}

impl One {
    /// Finds a cgroup by its path from the topmost root, as in `/proc/PID/cgroup`, or by its
    /// directory.
    pub fn find(path: &str) -> Result<Self, String> {
        let root = unified(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
            .ok_or("there is no unified hierarchy of cgroups (cgroup2) here")?;
        let given = Path::new(path);
        let below = given.strip_prefix(&root).or_else(|_| given.strip_prefix("/")).unwrap_or(given);
        let directory = root.join(below);
        let found = fs::metadata(&directory)
            .map_err(|error| format!("there is no cgroup at {}: {error}", directory.display()))?;
        Ok(Self { number: found.ino(), path: format!("/{}", below.display()) })
    }
}

/// Where the unified hierarchy is mounted.
fn unified(mounts: &str) -> Option<PathBuf> {
    let mut fields = mounts.lines().map(|line| line.split(' '));
    fields.find_map(|mut fields| {
        let place = fields.nth(1)?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_found() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(unified(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(unified("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn directories_have_numbers() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("run/b")).unwrap();
        let mut cgroups = Cgroups::default();
        cgroups.add(root.path(), root.path());
        let number = fs::metadata(root.path().join("run/b")).unwrap().ino();
        assert_eq!(cgroups.path(number).as_deref(), Some("/run/b"));
        assert_eq!(cgroups.path(0), None);
        let one = One { number: 0, path: "/run".to_owned() };
        assert!(cgroups.is_within(number, &one) && cgroups.is_within(0, &one));
        assert!(!cgroups.is_within(number, &One { number: 0, path: "/ru".to_owned() }));
        assert!(cgroups.is_within(number, &One { number: 0, path: "/".to_owned() }));
    }
}
