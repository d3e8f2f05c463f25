//! Results that are kept, so that a sweep that was interrupted goes on where it was.
//!
//! A result is found by what determines it: the job, and the executable that simulates, by its content. An entry has the
//! whole job in it, so that two jobs whose names happen to be the same are told apart. Entries of an executable are in a
//! directory of their own; those of others go when they have not been used for long.
//!
//! ```text
//! manycore/sim/EXECUTABLE/JOB.json      { "job": ..., "finding": ... }
//! ```

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::job::{Finding, Job};

/// Entries of an executable are removed when none has been added for so long.
const OLD: Duration = Duration::from_secs(60 * 24 * 3600);

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    /// Whether an entry was found that could not be read, or one could not be written.
    troubled: Arc<Trouble>,
}

#[derive(Debug, Default)]
struct Trouble {
    unreadable: AtomicBool,
    unwritable: AtomicBool,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    job: Job,
    finding: Finding,
}

impl Cache {
    /// In the user's directory for caches; `None` if the user has none.
    pub fn of_user(executable: &Path) -> io::Result<Option<Self>> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
        match own.or_else(home) {
            Some(caches) => Self::below(&caches.join("manycore/sim"), executable).map(Some),
            None => Ok(None),
        }
    }

    /// In this directory, for the results of this executable.
    pub fn below(root: &Path, executable: &Path) -> io::Result<Self> {
        let directory = root.join(hash(&fs::read(executable)?));
        remove_old(root, &directory);
        Ok(Self { directory, troubled: Arc::default() })
    }

    /// The result of a job, if there is one.
    pub(crate) fn find(&self, job: &Job) -> Option<Finding> {
        let text = match fs::read(self.path(job)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => return self.unreadable(),
        };
        match serde_json::from_slice::<Entry>(&text) {
            Ok(entry) => (entry.job == *job).then_some(entry.finding),
            Err(_) => self.unreadable(),
        }
    }

    fn unreadable(&self) -> Option<Finding> {
        self.troubled.unreadable.store(true, Ordering::Relaxed); // Relaxed: read when the threads have ended
        None
    }

    /// Keeps the result of a job. That it cannot be kept is no reason not to have it.
    pub(crate) fn keep(&self, job: &Job, finding: &Finding) {
        let entry = Entry { job: job.clone(), finding: finding.clone() };
        if self.write(&self.path(job), &entry).is_err() {
            self.troubled.unwritable.store(true, Ordering::Relaxed); // Relaxed: as above
        }
    }

    /// Whole or not at all, whoever else writes it and whenever this process ends.
    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(serde_json::to_string(entry)?.as_bytes())?;
        file.persist(path)?;
        Ok(())
    }

    fn path(&self, job: &Job) -> PathBuf {
        let text = serde_json::to_string(job).expect("a job is plain data");
        self.directory.join(hash(text.as_bytes())).with_extension("json")
    }

    /// What the user should know, once it is over.
    pub fn troubles(&self) -> Vec<String> {
        // Relaxed, both: the threads that set them have ended.
        let unreadable = self.troubled.unreadable.load(Ordering::Relaxed);
        let unwritable = self.troubled.unwritable.load(Ordering::Relaxed);
        let directory = self.directory.display();
        let unreadable = unreadable.then(|| {
            format!("some results in '{directory}' were unreadable; they were simulated anew and replaced")
        });
        let unwritable = unwritable.then(|| {
            format!("cannot keep results in '{directory}'; another run will simulate them again")
        });
        unreadable.into_iter().chain(unwritable).collect()
    }
}

/// 128 bits, the same for the same bytes as long as the executable is the same, which is as long as they matter.
fn hash(bytes: &[u8]) -> String {
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    for (salt, half) in (0..).zip(&mut halves) {
        half.write_u8(salt);
        half.write(bytes);
    }
    halves.iter().map(|half| format!("{:016x}", half.finish())).collect()
}

/// Removes the entries of executables that nobody uses any more. What cannot be removed stays.
fn remove_old(root: &Path, current: &Path) {
    let Ok(directories) = fs::read_dir(root) else { return };
    for directory in directories.flatten().map(|entry| entry.path()) {
        let changed = directory.metadata().and_then(|metadata| metadata.modified());
        let age = changed.map(|changed| SystemTime::now().duration_since(changed));
        if directory != current && matches!(age, Ok(Ok(age)) if age > OLD) {
            _ = fs::remove_dir_all(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_entries_depend_on_every_byte() {
        let names = [&b"a"[..], b"b", b"ab", b"", b"a\0"].map(hash);
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.len() == 32));
        assert_eq!(hash(b"a"), names[0]);
    }

    #[test]
    fn entries_of_other_executables_go_when_they_are_old() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for (name, age) in [("old", OLD * 2), ("recent", OLD / 2), ("current", OLD * 2)] {
            fs::create_dir(path(name)).unwrap();
            let directory = fs::File::open(path(name)).unwrap();
            directory.set_modified(SystemTime::now() - age).unwrap();
        }
        remove_old(root.path(), &path("current"));
        assert!(!path("old").exists() && path("recent").exists() && path("current").exists());
    }
}
