//! Changes: for keeping the file system on a disk.
//!
//! ```text
//!   CPU 0: create a/x      log 0: a/x                   the gate is shut:          the batch:
//!   CPU 1: rename b/y c/y  log 1: b/y, c/y        --->  no call is under way  ---> a/x -> 17
//!   CPU 0: write a/x       log 0: a/x, inode 17         where do the names         b/y gone
//!                                                       lead *now*?                c/y -> 23 ...
//! ```
//!
//! A call notes in the log of its context *which* names and inodes it has changed, not how. A
//! thread that makes a batch shuts a gate that all changing calls pass, waits for calls under way,
//! and reads the present state of everything noted. So a batch is the tree as of one moment: it
//! lacks nothing that came before anything in it, under every mechanism, and no two calls need
//! agree on an order. A log is as large as the number of changed names, however often they have
//! changed.
//!
//! The gate's readers and each context's log write no line that another context writes, as long as
//! no batch is being made. The first time that a context changes a directory after a batch, it
//! counts a reference to it.
//!
//! Bytes are noted in their file: which pages, and how short it was meanwhile. Most of them are
//! taken before the gate is shut.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use manycore::lock::PhaseRw;
use manycore::mutation;
use manycore::session::View;

use crate::calls::attributes::Stat;
use crate::file::Taken;
use crate::fs::{Ask, Cx};
use crate::inode::{Body, Inode, Kind};
use crate::name::Key;
use crate::sync::gate::{Gate, Shut, Update};
use crate::sync::held::{Held, InodeHandle};
use crate::sync::page::Guarded;
use crate::sync::{EntryName, Line, Stop};

/// Logs of contexts; with more contexts some share.
const LOGS: u64 = 64;

/// What the contexts of a file system have changed.
pub(crate) struct Recorder {
    gate: Gate,
    logs: Box<[Line<Guarded<Log, PhaseRw>>]>,
}

/// What a context has changed since the last batch.
#[derive(Default)]
pub(crate) struct Log {
    /// A reference to each directory in `names`.
    directories: BTreeMap<u64, Held>,
    /// In which directory.
    names: BTreeSet<(u64, Box<[u8]>)>,
    /// Inodes that are marked.
    inodes: BTreeMap<u64, Held>,
}

/// A name that an attempt is going to change.
pub(crate) struct Noted {
    directory: u64,
    /// Nothing if the log has it.
    held: Option<Held>,
    name: Box<[u8]>,
}

impl Recorder {
    pub fn new() -> Self {
        let log = |_| Line(Guarded::new(Log::default()));
        Self { gate: Gate::default(), logs: (0..LOGS).map(log).collect() }
    }

    fn log(&self, context: u64) -> &Guarded<Log, PhaseRw> {
        let place = (context % LOGS) as usize;
        &self.logs[place]
    }

    /// Notes a name that an attempt will change; `None` if the directory does not exist any more.
    fn note(&self, context: u64, place: &EntryName<'_>) -> Option<Noted> {
        let directory = place.directory.number();
        let is_known = self.log(context).read(|log| log.directories.contains_key(&directory));
        let held = if is_known { None } else { Some(Held::acquire(&place.directory)?) };
        Some(Noted { directory, held, name: place.key.bytes.into() })
    }
}

/// An attempt's way to the log.
#[derive(Clone, Copy)]
pub(crate) struct Noting<'fs> {
    recorder: &'fs Recorder,
    context: u64,
}

impl Noting<'_> {
    /// Notes a name that an attempt will change; `None` if the directory does not exist any more.
    pub fn note(&self, place: &EntryName<'_>) -> Option<Noted> {
        self.recorder.note(self.context, place)
    }
}

/// What is known of an inode that has changed.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Its attributes. Do not use the size of a file: its bytes may not be durable.
    pub stat: Stat,
    /// Where a symbolic link leads; of all others, empty.
    pub target: Box<[u8]>,
}

impl Changed {
    fn of(inode: &Inode) -> Self {
        let target = match inode.body() {
            Body::Symlink(target) => target.clone(),
            _ => Box::default(),
        };
        Self { stat: Stat::of(inode), target }
    }
}

/// A name that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedName {
    /// The number of the directory.
    pub directory: u64,
    /// The name.
    pub name: Box<[u8]>,
    /// The number of its target; nothing if it is gone.
    pub inode: Option<u64>,
}

/// Bytes of a file that have changed.
pub struct ChangedData<'fs> {
    /// The file.
    pub file: InodeHandle<'fs>,
    /// What has changed.
    pub taken: Taken,
}

/// Changes, as of one moment. When they are durable, pass them to [`Cx::keep`]; otherwise to
/// [`Cx::put_back`].
#[must_use = "what is neither kept nor put back is never freed"]
#[derive(Default)]
pub struct Changes<'fs> {
    /// Inodes by their numbers: those to which a changed name leads, and others.
    pub inodes: BTreeMap<u64, Changed>,
    /// Names.
    pub names: Vec<ChangedName>,
    /// Bytes of the files that were asked for.
    pub data: Vec<ChangedData<'fs>>,
    log: Log,
}

/// The files whose bytes are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// All files.
    All,
    /// These files.
    Files(&'a [&'a Inode]),
}

impl Which<'_> {
    fn has(self, file: &Inode) -> bool {
        match self {
            Self::All => true,
            Self::Files(files) => files.iter().any(|one| core::ptr::eq(*one, file)),
        }
    }
}

/// Marks of an inode that is in a log.
pub(crate) const ATTRIBUTES: u32 = 1;
pub(crate) const DATA: u32 = 2;

impl<'fs> Cx<'fs> {
    /// Held while a call changes something, unless changes are not recorded.
    pub(crate) fn update(&self) -> Option<Update<'fs>> {
        // The mistake: a batch is of no moment.
        if mutation!("khronos-open-gate") {
            return None;
        }
        self.fs.recorder.as_ref().map(|recorder| recorder.gate.enter())
    }

    pub(crate) fn noting(&self) -> Option<Noting<'fs>> {
        let recorder = self.fs.recorder.as_ref()?;
        Some(Noting { recorder, context: self.number })
    }

    /// An attempt has succeeded, which has noted this.
    pub(crate) fn has_changed(&mut self, noted: Vec<Noted>) {
        let Some(recorder) = &self.fs.recorder else { return };
        for Noted { directory, held, name } in noted {
            let twice = recorder.log(self.number).write(|log| {
                log.names.insert((directory, name));
                held.and_then(|held| log.directories.insert(directory, held))
            });
            twice.into_iter().for_each(|held| self.release(held));
        }
    }

    /// An attempt has failed, which has noted this.
    pub(crate) fn has_not_changed(&mut self, noted: Vec<Noted>) {
        noted.into_iter().filter_map(|noted| noted.held).for_each(|held| self.release(held));
    }

    /// Notes a change of an inode itself, and not of a name. The caller is in an update, and holds
    /// the inode.
    pub(crate) fn mark(&self, inode: &Inode, marks: u32) {
        let Some(recorder) = &self.fs.recorder else { return };
        if inode.mark(marks) {
            let held = Held::acquire(inode).expect("the caller holds it");
            let before =
                recorder.log(self.number).write(|log| log.inodes.insert(inode.number(), held));
            debug_assert!(before.is_none(), "who marks it first puts it into a log");
        }
    }

    /// The number of this context's notes since the last batch. They take memory until the next.
    pub fn noted(&self) -> usize {
        let Some(recorder) = &self.fs.recorder else { return 0 };
        recorder.log(self.number).read(|log| log.names.len() + log.inodes.len())
    }

    /// Files whose bytes have changed, held.
    pub fn changed_files(&mut self) -> Vec<InodeHandle<'fs>> {
        let Some(recorder) = &self.fs.recorder else { return Vec::new() };
        let mut files = Vec::new();
        for log in &recorder.logs {
            log.read(|log| {
                let changed = log.inodes.values().filter(|inode| inode.marks() & DATA != 0);
                files.extend(changed.filter_map(|one| Held::acquire(one)).map(InodeHandle::new));
            });
        }
        files
    }

    /// Takes pages of a file that have changed, at most this many; `None` if the inode is not a
    /// file. They count as durable from now on: if they are not, [give](Self::give_back) them back.
    pub fn take_data(&mut self, inode: &Inode, most: usize) -> Option<Taken> {
        let Body::File(file) = inode.body() else { return None };
        let _update = self.update();
        Some(file.take(most))
    }

    /// Pages that were taken are not durable.
    pub fn give_back(&mut self, inode: &Inode, cut: Option<u64>, pages: &[u64]) {
        let Body::File(file) = inode.body() else { return };
        let _update = self.update();
        file.give_back(cut, pages);
        self.mark(inode, DATA);
    }

    /// Takes all changes, as of one moment, with the bytes of some files.
    pub fn changes(&mut self, which: Which<'_>) -> Changes<'fs> {
        let mut changes = Changes::default();
        let Some(recorder) = &self.fs.recorder else { return changes };
        let shut = recorder.gate.shut();
        changes.log = self.merge(recorder, &shut);
        self.read_names(&mut changes);
        self.read_inodes(&mut changes, which);
        // The changes of files that were not requested remain to be written.
        let inodes = core::mem::take(&mut changes.log.inodes).into_iter();
        let (left, done) = inodes.partition(|(_, inode)| inode.marks() != 0);
        changes.log.inodes = done;
        recorder.log(self.number).write(|log| log.inodes = left);
        drop(shut);
        changes
    }

    /// All logs, as one, and empty afterwards.
    fn merge(&mut self, recorder: &Recorder, _shut: &Shut<'_>) -> Log {
        let mut merged = Log::default();
        for log in &recorder.logs {
            let mut log = log.write(core::mem::take);
            merged.names.append(&mut log.names);
            merged.inodes.append(&mut log.inodes);
            for (number, held) in log.directories {
                let twice = merged.directories.insert(number, held);
                twice.into_iter().for_each(|held| self.release(held));
            }
        }
        merged
    }

    fn read_names(&mut self, changes: &mut Changes<'fs>) {
        for (directory, name) in &changes.log.names {
            let found = self.look_up(&changes.log.directories[directory], name);
            let (directory, name) = (*directory, name.clone());
            let inode = found.as_ref().map(|changed| changed.stat.number);
            changes.names.push(ChangedName { directory, name, inode });
            changes.inodes.extend(found.map(|changed| (changed.stat.number, changed)));
        }
        // Their times have changed.
        for directory in changes.log.directories.values() {
            if directory.links() > 0 || core::ptr::eq(&**directory, self.fs.root()) {
                changes.inodes.insert(directory.number(), Changed::of(directory));
            }
        }
    }

    fn look_up(&mut self, directory: &Inode, name: &[u8]) -> Option<Changed> {
        let found = self.run(View::Latest, Ask::of(directory), |tx, brought, _| {
            let directory = tx.enter(brought.inode)?;
            let key = Key::new(name, brought.seed)?;
            Ok::<_, Stop>(tx.find(directory, key).map(|found| Changed::of(&found)))
        });
        // A directory that was removed has no names.
        found.ok().and_then(|(found, _)| found)
    }

    fn read_inodes(&mut self, changes: &mut Changes<'fs>, which: Which<'_>) {
        for (number, inode) in &changes.log.inodes {
            let is_root = core::ptr::eq(&**inode, self.fs.root());
            if inode.links() == 0 && !is_root {
                inode.unmark(ATTRIBUTES | DATA);
                continue;
            }
            if inode.marks() & ATTRIBUTES != 0 {
                changes.inodes.insert(*number, Changed::of(inode));
                inode.unmark(ATTRIBUTES);
            }
            if let (Body::File(file), true) = (inode.body(), inode.marks() & DATA != 0)
                && which.has(inode)
            {
                inode.unmark(DATA);
                let held = Held::acquire(inode).expect("it has names");
                let file_node = InodeHandle::new(held);
                changes.data.push(ChangedData { file: file_node, taken: file.take(usize::MAX) });
            }
        }
    }

    /// The changes are durable.
    pub fn keep(&mut self, changes: Changes<'fs>) {
        let Changes { data, log, .. } = changes;
        data.into_iter().for_each(|data| self.close(data.file));
        let Log { directories, inodes, .. } = log;
        directories.into_values().chain(inodes.into_values()).for_each(|held| self.release(held));
    }

    /// Puts changes back that are not durable: they will be among the next ones.
    pub fn put_back(&mut self, changes: Changes<'fs>) {
        let Changes { data, log, .. } = changes;
        for ChangedData { file, taken } in data {
            let pages: Vec<_> = taken.pages.iter().map(|(page, _)| *page).collect();
            self.give_back(&file, taken.cut, &pages);
            self.close(file);
        }
        let update = self.update();
        let Log { directories, names, inodes } = log;
        for inode in inodes.into_values() {
            self.mark(&inode, ATTRIBUTES);
            self.release(inode);
        }
        let mut names: Vec<_> = names.into_iter().collect();
        for (directory, held) in directories {
            let mut held = Some(held);
            let of = names.extract_if(.., |(of, _)| *of == directory);
            let noted = of.map(|(directory, name)| Noted { directory, held: held.take(), name });
            let noted: Vec<_> = noted.collect();
            self.has_changed(noted);
            held.into_iter().for_each(|held| self.release(held));
        }
        drop(update);
    }
}

/// An inode that was on a disk.
#[derive(Clone, Copy, Debug)]
pub struct Restored<'a> {
    /// Its number, which no other gets from now on.
    pub number: u64,
    /// Kind and permissions.
    pub mode: u32,
    /// The numbers of user and group.
    pub owners: [u32; 2],
    /// The device's number of something special.
    pub device: u64,
    /// Nanoseconds since 1970: accessed, modified, changed.
    pub times: [u64; 3],
    /// Where a symbolic link leads.
    pub target: &'a [u8],
}

impl Restored<'_> {
    /// By the kind in its mode.
    pub fn kind(&self) -> Kind {
        let kinds = [Kind::File, Kind::Directory, Kind::Symlink];
        let is = |kind: &Kind| self.mode & crate::MODE_KIND == kind.mode();
        kinds.into_iter().find(is).unwrap_or(Kind::Special)
    }
}
