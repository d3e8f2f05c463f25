//! A file system with what a workload needs.

use alloc::format;
use alloc::string::String;

use khronos_fs::{At, Cx, Fs, Open, Options, Totals};

use crate::worker::Worker;
use crate::workload::{Operation, Shared, Workload};

/// Bytes that an operation reads or writes.
pub(crate) const PAGE: usize = 4096;

/// The number of files in a directory that is listed, or in which files are looked up.
pub(crate) const FILES: u32 = 64;

/// The number of names that a thread uses one after the other.
pub(crate) const NAMES: u32 = 64;

/// How far down files are that are looked up.
const DEPTH: &str = "1/2/3/4";

/// A file system, and what its threads do.
#[derive(Debug)]
pub struct Stage {
    fs: Fs,
    workload: Workload,
    threads: u32,
}

impl Stage {
    /// Without anything in it yet.
    pub fn new(workload: Workload, options: Options, threads: u32) -> Self {
        Self { fs: Fs::new(options), workload, threads }
    }

    /// Creates the initial files, and calls `progress` after each name.
    pub fn fill(&self, progress: &mut dyn FnMut()) {
        let mut cx = self.fs.context();
        for name in ["shared", "left", "right"] {
            mkdir(&mut cx, name);
        }
        self.fill_directory(&mut cx, "shared", progress);
        for thread in 0..self.threads {
            let own = format!("own-{thread}");
            mkdir(&mut cx, &own);
            progress();
            match (self.workload.operation, self.workload.shared) {
                (Operation::Unlink, _) => {
                    (0..NAMES).for_each(|number| {
                        make(&mut cx, &self.file(thread, number), 0);
                        progress();
                    });
                }
                (Operation::Rename, _) => make(&mut cx, &format!("{own}/a"), 0),
                (Operation::Move(true), _) => mkdir(&mut cx, &format!("left/{thread}")),
                (Operation::Move(false), _) => make(&mut cx, &format!("left/{thread}"), 0),
                (_, Shared::Low) => self.fill_directory(&mut cx, &own, progress),
                _ => {}
            }
        }
    }

    /// Makes the files that are read in a directory, which is the threads' own or shared.
    fn fill_directory(&self, cx: &mut Cx<'_>, directory: &str, progress: &mut dyn FnMut()) {
        let pages = if directory == "shared" { self.threads } else { 1 };
        match self.workload.operation {
            Operation::Find => {
                for (end, _) in DEPTH.match_indices('/').chain([(DEPTH.len(), "")]) {
                    mkdir(cx, &format!("{directory}/{}", &DEPTH[..end]));
                }
                for number in 0..FILES {
                    make(cx, &Self::deep(directory, number), 0);
                    progress();
                }
            }
            Operation::List => (0..FILES).for_each(|number| {
                make(cx, &format!("{directory}/{number}"), 0);
                progress();
            }),
            Operation::Read | Operation::Overwrite => {
                make(cx, &format!("{directory}/f"), pages as usize);
                progress();
            }
            _ => {}
        }
    }

    /// A thread's worker. When it is dropped, it removes its files, and moves renamed ones back.
    pub fn worker(&self, thread: u32) -> Worker<'_> {
        Worker::new(self, self.fs.context(), thread)
    }

    /// The file system.
    pub fn fs(&self) -> &Fs {
        &self.fs
    }

    /// Checks the file system; no thread has a worker.
    ///
    /// # Errors
    ///
    /// What is wrong first.
    pub fn check(&self) -> Result<Totals, String> {
        self.fs.context().check_all()
    }

    pub(crate) fn workload(&self) -> Workload {
        self.workload
    }

    /// One of the names that a thread makes and removes.
    pub(crate) fn file(&self, thread: u32, number: u32) -> String {
        match self.workload.shared {
            Shared::Low => format!("own-{thread}/{number}"),
            Shared::Medium | Shared::High => format!("shared/{thread}-{number}"),
        }
    }

    /// A file far down.
    pub(crate) fn deep(directory: &str, number: u32) -> String {
        format!("{directory}/{DEPTH}/{number}")
    }
}

fn at<'a>(fs: &'a Fs, path: &'a str) -> At<'a> {
    At { directory: fs.root(), path: path.as_bytes() }
}

fn mkdir(cx: &mut Cx<'_>, path: &str) {
    cx.mkdir(at(cx.fs(), path), 0o755).expect("it is not there yet");
}

fn make(cx: &mut Cx<'_>, path: &str, pages: usize) {
    let file = cx.open(at(cx.fs(), path), Open::NEW, 0o644).expect("it is not there yet");
    for page in 0..pages {
        cx.write(&file, (page * PAGE) as u64, &[1; PAGE / 8].repeat(8)).expect("memory for it");
    }
    cx.close(file);
}
