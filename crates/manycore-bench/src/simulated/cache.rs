//! Stored results, so that an interrupted sweep continues where it was.
//!
//! A result is found by its determining inputs: the job, and the content of the executable that
//! simulates. An entry contains the whole job, so two jobs with equal names are distinguished.
//! Entries of an executable are in a directory of their own. In the user's cache directory the
//! entries of other executables are removed when they have not been used for long.
//!
//! ```text
//! manycore/sim/EXECUTABLE/JOB.json      { "job": ..., "finding": ... }
//! manycore/sim/EXECUTABLE/took          JOB KIND THREAD-SECONDS SECONDS
//! ```
//!
//! The duration of simulations is not part of the results. It is used to predict the duration of
//! other simulations, including those of another executable. Several machines may share a
//! directory, and the contents of one directory can be merged into another.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::hash::hash;
use super::job::{Finding, Job};

/// Entries of an executable are removed when none has been added for this long.
const OLD: Duration = Duration::from_secs(60 * 24 * 3600);

/// The name of the file with the durations of simulations.
const TOOK: &str = "took";

/// How long a simulation took.
#[derive(Debug, PartialEq)]
pub(crate) struct Took {
    /// What [`Job::kind`] says.
    pub kind: String,
    /// What [`Job::thread_seconds`] says.
    pub thread_seconds: f64,
    /// Real seconds.
    pub seconds: f64,
}

impl Took {
    fn line(&self, key: &str) -> String {
        format!("{key} {} {} {}\n", self.kind, self.thread_seconds, self.seconds)
    }

    fn read(line: &str) -> Option<(String, Self)> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let (key, kind) = (word()?.to_owned(), word()?.to_owned());
        let (thread_seconds, seconds) = (word()?.parse().ok()?, word()?.parse().ok()?);
        Some((key, Self { kind, thread_seconds, seconds }))
    }
}

/// What was found where results were merged from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Results that were not there.
    pub new: usize,
    /// How many results were in the cache.
    pub known: usize,
    /// The number of results of other executables, which may differ.
    pub of_others: usize,
    /// Files that are no results.
    pub unreadable: usize,
}

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
    /// Creates one in the user's directory for caches; `None` if the user has none.
    pub fn of_user(executable: &Path) -> io::Result<Option<Self>> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
        match own.or_else(home) {
            Some(caches) => {
                let root = caches.join("manycore/sim");
                let cache = Self::below(&root, executable)?;
                remove_old(&root, &cache.directory);
                Ok(Some(cache))
            }
            None => Ok(None),
        }
    }

    /// Creates a cache in this directory, for the results of this executable. The directory may
    /// contain other files: nothing is removed from it, nor are the entries of other executables.
    pub fn below(root: &Path, executable: &Path) -> io::Result<Self> {
        let directory = root.join(hash(&fs::read(executable)?));
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

    /// Whether there is one.
    pub(crate) fn has(&self, job: &Job) -> bool {
        self.path(job).exists()
    }

    /// Keeps the result of a job, and its duration. A failure to keep it does not invalidate the
    /// result.
    pub(crate) fn keep(&self, job: &Job, finding: &Finding, took: Duration) {
        let entry = Entry { job: job.clone(), finding: finding.clone() };
        let took = Took {
            kind: job.kind(),
            thread_seconds: job.thread_seconds(),
            seconds: took.as_secs_f64(),
        };
        let kept = self.write(&self.path(job), &entry);
        if kept.and_then(|()| self.note(&took.line(&job.key()))).is_err() {
            self.troubled.unwritable.store(true, Ordering::Relaxed); // Relaxed: as above
        }
    }

    /// Writes an entry completely or not at all, whichever process writes it and whenever this
    /// process ends.
    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(serde_json::to_string(entry)?.as_bytes())?;
        file.persist(path)?;
        Ok(())
    }

    /// Adds lines about the duration of simulations, in one write, because other processes may do
    /// the same.
    fn note(&self, lines: &str) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(self.directory.join(TOOK))?;
        file.write_all(lines.as_bytes())
    }

    fn path(&self, job: &Job) -> PathBuf {
        self.directory.join(job.key()).with_extension("json")
    }

    /// The durations of simulations by any executable, by the key of the job.
    pub(crate) fn past(&self) -> HashMap<String, Took> {
        let root = self.directory.parent().map(fs::read_dir);
        let directories = root.into_iter().flatten().flatten().flatten();
        let texts = directories.flat_map(|entry| fs::read_to_string(entry.path().join(TOOK)));
        // A line that cannot be read makes an estimate worse, and nothing else.
        texts.flat_map(|text| text.lines().filter_map(Took::read).collect::<Vec<_>>()).collect()
    }

    /// Adds the results of this executable from another root. Existing entries stay.
    pub fn merge(&self, root: &Path) -> io::Result<Merged> {
        let mut merged = Merged::default();
        fs::create_dir_all(&self.directory)?;
        for directory in fs::read_dir(root)? {
            let directory = directory?.path();
            if !directory.is_dir() {
                continue;
            }
            let is_own = directory.file_name() == self.directory.file_name();
            for file in fs::read_dir(&directory)? {
                let path = file?.path();
                if path.extension().is_none_or(|extension| extension != "json") {
                    continue;
                }
                match is_own {
                    true => self.take(&path, &mut merged)?,
                    false => merged.of_others += 1,
                }
            }
            // Not again and again, where nothing has come.
            if is_own
                && merged.new > 0
                && let Ok(lines) = fs::read_to_string(directory.join(TOOK))
            {
                self.note(&lines)?;
            }
        }
        Ok(merged)
    }

    /// Adds an entry from elsewhere.
    fn take(&self, path: &Path, merged: &mut Merged) -> io::Result<()> {
        let entry = serde_json::from_slice::<Entry>(&fs::read(path)?).ok();
        let is_its = |entry: &Entry| path.file_stem().is_some_and(|stem| *stem == *entry.job.key());
        match entry.filter(is_its) {
            None => merged.unreadable += 1,
            Some(entry) if self.find(&entry.job).is_some() => merged.known += 1,
            Some(entry) => {
                self.write(&self.path(&entry.job), &entry)?;
                merged.new += 1;
            }
        }
        Ok(())
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

/// Whether [`hash`] gives such names.
fn is_hash(name: &OsStr) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.len() == 32 && name.as_encoded_bytes().iter().all(is_digit)
}

/// Removes the entries of unused executables. It removes no file whose name has another form.
/// Entries that cannot be removed stay.
fn remove_old(root: &Path, current: &Path) {
    let Ok(directories) = fs::read_dir(root) else { return };
    for directory in directories.flatten().map(|entry| entry.path()) {
        let is_own = directory.file_name().is_some_and(is_hash) && directory != current;
        let changed = directory.symlink_metadata().and_then(|metadata| metadata.modified());
        let age = changed.map(|changed| SystemTime::now().duration_since(changed));
        if is_own && matches!(age, Ok(Ok(age)) if age > OLD) {
            _ = fs::remove_dir_all(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_took_is_read_as_it_was_written() {
        let took = Took { kind: "set/lock:mcs".into(), thread_seconds: 0.0125, seconds: 3.5 };
        let line = took.line("0a");
        assert_eq!(Took::read(line.trim_end()), Some(("0a".to_owned(), took)));
        assert_eq!(Took::read("0a set/lock:mcs 0.01"), None);
    }

    /// A directory whose last change is this old, with a file in it.
    fn aged(path: &Path, age: Duration) {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), "content").unwrap();
        let directory = fs::File::open(path).unwrap();
        directory.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn entries_of_other_executables_go_when_they_are_old() {
        let root = tempfile::tempdir().unwrap();
        let [old, recent, current] = [&b"old"[..], b"recent", b"current"].map(hash);
        let cases = [
            (&*old, OLD * 2, false),
            (&*recent, OLD / 2, true),
            (&*current, OLD * 2, true),
            ("photographs", OLD * 2, true),
            (&old[1..], OLD * 2, true),
        ];
        cases.iter().for_each(|(name, age, _)| aged(&root.path().join(name), *age));
        remove_old(root.path(), &root.path().join(&current));
        for (name, _, stays) in cases {
            assert_eq!(root.path().join(name).join("file").exists(), stays, "{name}");
        }
    }

    #[test]
    fn a_directory_that_was_named_keeps_all_that_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let executable = root.path().join("executable");
        fs::write(&executable, "code").unwrap();
        let names = ["photographs".to_owned(), hash(b"other"), hash(b"code")];
        names.iter().for_each(|name| aged(&root.path().join(name), OLD * 2));
        Cache::below(root.path(), &executable).unwrap();
        assert!(names.iter().all(|name| root.path().join(name).join("file").exists()));
    }
}
