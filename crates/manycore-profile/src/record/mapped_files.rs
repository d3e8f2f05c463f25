//! The files that processes have mapped: searched for while the processes live, since some are
//! unreachable afterwards.
//!
//! A process is inspected as soon as it has made its file of statistics: before its own first
//! instruction, but after some of the loader's. Then it is inspected less and less often. It may
//! load libraries later, or map files in which it names its generated code.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::analyze::names::files;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use rustix::time::Timespec;

use super::entry::{Entry, Subject, entries};
use super::namespaces::Inner;

/// The time between two samples. It begins with the first value, and doubles each time up to the
/// second.
const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(2);
/// Polling takes at most this fraction (1/N) of the time.
const SHARE: u32 = 20;

/// The processes that are polled.
#[derive(Debug, Default)]
pub struct MappedFiles {
    seen: HashMap<PathBuf, Next>,
    pause: Option<Instant>,
}

/// The time at which a process is inspected next, and the interval before it.
#[derive(Debug)]
struct Next {
    at: Instant,
    gap: Duration,
}

impl MappedFiles {
    /// Polls the processes that have written these files. New ones are always polled.
    pub fn sample(&mut self, entries: &[Entry]) {
        let begun = Instant::now();
        let inner = Inner::look_for(entries);
        let may_look_again = self.pause.is_none_or(|until| until <= begun);
        for entry in entries {
            let known = self.seen.get(&entry.path);
            if known.is_some_and(|next| begun < next.at || !may_look_again) {
                continue;
            }
            let gap = known.map_or(FIRST, |next| (next.gap * 2).min(LAST));
            self.seen.insert(entry.path.clone(), Next { at: begun + gap, gap });
            if let Some(process) = inner.number(entry) {
                files::see(process, (entry.pid, entry.started));
            }
        }
        if self.seen.len() > entries.len() {
            self.seen.retain(|path, _| entries.iter().any(|entry| entry.path == *path));
        }
        self.pause = Some(Instant::now() + begun.elapsed() * (SHARE - 1));
    }
}

/// Polls processes as soon as they make files in a directory, as long as it exists.
pub fn watch(directory: &Path) {
    let wakes = wakes(directory).ok();
    let directory = directory.to_owned();
    thread::spawn(move || {
        let mut mapped = MappedFiles::default();
        while let Ok(entries) = entries(&directory, Subject::Locks) {
            mapped.sample(&entries);
            wait(wakes.as_ref());
        }
    });
}

/// Becomes readable when a file has come.
fn wakes(directory: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let fd = inotify::init(flags)?;
    inotify::add_watch(&fd, directory, inotify::WatchFlags::CREATE)?;
    Ok(fd)
}

fn wait(wakes: Option<&OwnedFd>) {
    let Some(fd) = wakes else { return thread::sleep(FIRST) };
    let most = Timespec { tv_sec: 0, tv_nsec: FIRST.as_nanos() as i64 };
    let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&most));
    // Which file it is, is seen in the directory.
    let mut buffer = [0; 4096];
    while rustix::io::read(fd, &mut buffer).is_ok_and(|read| read > 0) {}
}
