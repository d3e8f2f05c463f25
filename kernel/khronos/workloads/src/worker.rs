//! What one thread does.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use khronos_fs::{At, Cx, Inode, InodeHandle, Open, Rename, Retries};

use crate::stage::{FILES, NAMES, PAGE, Stage};
use crate::workload::{Operation, Shared};

/// The number of existing files that a thread has made.
const LIVE: usize = 8;

/// A thread that uses a file system.
pub struct Worker<'s> {
    root: &'s Inode,
    cx: Cx<'s>,
    operation: Operation,
    /// Names for operations, which use them in turn or at random.
    paths: Vec<String>,
    /// How many operations there were.
    done: usize,
    /// An open file with a position for pages; or a directory that is listed.
    open: Option<(InodeHandle<'s>, u64)>,
    page: Vec<u8>,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(stage: &'s Stage, mut cx: Cx<'s>, thread: u32) -> Self {
        let workload = stage.workload();
        let (operation, shared) = (workload.operation, workload.shared);
        let root = stage.fs().root();
        let own = format!("own-{thread}");
        let directory = if shared == Shared::Low { own.clone() } else { "shared".into() };
        let paths = match (operation, shared) {
            (Operation::Create | Operation::Unlink, _) => {
                (0..NAMES).map(|number| stage.file(thread, number)).collect()
            }
            (Operation::Rename, Shared::Low) => vec![format!("{own}/a"), format!("{own}/b")],
            (Operation::Rename, _) => vec![format!("{own}/a"), format!("shared/{thread}")],
            (Operation::Move(_), _) => vec![format!("left/{thread}"), format!("right/{thread}")],
            (Operation::Find, Shared::Medium) => {
                (0..FILES).map(|number| Stage::deep(&directory, number)).collect()
            }
            (Operation::Find, _) => vec![Stage::deep(&directory, 0)],
            _ => Vec::new(),
        };
        let open = match operation {
            Operation::List => Some((directory, 0)),
            Operation::Read | Operation::Overwrite => {
                let page = if shared == Shared::Medium { u64::from(thread) } else { 0 };
                Some((format!("{directory}/f"), page * PAGE as u64))
            }
            _ => None,
        };
        let open = open.map(|(path, offset)| {
            let at = At { directory: root, path: path.as_bytes() };
            (cx.resolve(at, true).expect("the stage is filled"), offset)
        });
        let page = if open.is_some() { vec![1; PAGE] } else { Vec::new() };
        Self { root, cx, operation, paths, done: 0, open, page }
    }

    /// How often calls had to begin anew.
    pub fn retries(&self) -> Retries {
        self.cx.retries()
    }

    /// Does the next operation, by a random number.
    pub fn act(&mut self, random: u64) {
        let (count, number) = (self.paths.len(), self.done);
        match self.operation {
            Operation::Create => {
                self.make(number % count);
                if number >= LIVE {
                    self.unlink((number - LIVE) % count);
                }
            }
            Operation::Unlink => {
                self.unlink(number % count);
                self.make(number % count);
            }
            Operation::Rename | Operation::Move(_) => self.rename(number % 2),
            Operation::Find => {
                #[expect(clippy::cast_possible_truncation, reason = "any number is as good")]
                let path = &self.paths[random as usize % count];
                let at = At { directory: self.root, path: path.as_bytes() };
                self.cx.stat(at, true).expect("it is there");
            }
            Operation::List => {
                let (directory, _) = self.open.as_ref().expect("it is open");
                let mut names = 0;
                let visit = |_: khronos_fs::Entry<'_>| {
                    names += 1;
                    true
                };
                self.cx.readdir(directory, 0, visit).expect("it is a directory");
                assert!(names >= FILES, "{names} names are listed of {FILES}");
            }
            Operation::Read => {
                let (file, offset) = self.open.as_ref().expect("it is open");
                let read = self.cx.read(file, *offset, &mut self.page);
                assert_eq!(read, Ok(PAGE), "a page is there");
            }
            Operation::Overwrite => {
                let (file, offset) = self.open.as_ref().expect("it is open");
                let written = self.cx.write(file, *offset, &self.page);
                assert_eq!(written, Ok(PAGE), "a page is there");
            }
        }
        self.done += 1;
    }

    fn make(&mut self, number: usize) {
        let at = At { directory: self.root, path: self.paths[number].as_bytes() };
        let file = self.cx.open(at, Open::NEW, 0o644).expect("no other thread makes it");
        self.cx.close(file);
    }

    fn unlink(&mut self, number: usize) {
        let at = At { directory: self.root, path: self.paths[number].as_bytes() };
        self.cx.unlink(at).expect("no other thread removes it");
    }

    /// From one of two names to the other.
    fn rename(&mut self, from: usize) {
        let [from, to] = [from, 1 - from]
            .map(|name| At { directory: self.root, path: self.paths[name].as_bytes() });
        self.cx.rename(from, to, Rename::NoReplace).expect("no other thread renames it");
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let count = self.paths.len();
        match self.operation {
            Operation::Create => {
                for number in self.done.saturating_sub(LIVE)..self.done {
                    self.unlink(number % count);
                }
            }
            Operation::Rename | Operation::Move(_) if self.done % 2 == 1 => self.rename(1),
            _ => {}
        }
        if let Some((node, _)) = self.open.take() {
            self.cx.close(node);
        }
    }
}

impl core::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Worker").field("done", &self.done).finish_non_exhaustive()
    }
}
