//! The effects of calls, as far as programs can see them: files, descriptors and memory in maps.
//!
//! Times are a count of changes. Whether a name was looked up or bytes were read cannot be seen.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use crate::call::{Call, Path};
use crate::case::{Callers, Side};

/// What a call has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing but that it is done.
    Done,
    /// Numbers of descriptors, a position.
    Numbers(Vec<usize>),
    /// A page's bytes, all the same.
    Byte(u8),
    /// That there are no more bytes.
    End,
    /// The status of an inode: whether it is a directory, links, pages, changes.
    Status(bool, usize, usize, u32),
    /// The error.
    Fails(&'static str),
}

impl Answer {
    /// Whether it is none of errors.
    pub fn succeeds(&self) -> bool {
        !matches!(self, Self::Fails(_))
    }
}

type Id = usize;

#[derive(Clone, Debug, Default)]
struct Inode {
    is_directory: bool,
    links: usize,
    pages: Vec<u8>,
    changes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    File(Id),
    Reader(Id),
    Writer(Id),
}

/// An open file.
#[derive(Clone, Debug)]
struct Open {
    target: Target,
    position: usize,
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// Open files, by descriptor.
    files: Vec<Option<Id>>,
    slots: BTreeMap<u8, usize>,
    /// Whether it may be written, and what is there.
    memory: BTreeMap<u8, (bool, u8)>,
}

/// All that there is.
#[derive(Clone, Debug)]
pub struct Model {
    place: Callers,
    names: BTreeMap<Path, Id>,
    inodes: Vec<Inode>,
    opens: Vec<Open>,
    pipes: Vec<VecDeque<u8>>,
    processes: [Process; 2],
}

/// What a side writes: its own.
fn byte(side: Side) -> u8 {
    b'A' + side as u8
}

/// A call that no case contains: it would wait or end the program, or it is a mistake.
pub struct NotForPairs;

type Result<T> = std::result::Result<T, NotForPairs>;

impl Model {
    /// Nothing there but two directories.
    pub fn new(place: Callers) -> Self {
        Self {
            place,
            names: BTreeMap::new(),
            inodes: Vec::new(),
            opens: Vec::new(),
            pipes: Vec::new(),
            processes: Default::default(),
        }
    }

    fn process(&mut self, side: Side) -> &mut Process {
        &mut self.processes[if self.place == Callers::Threads { 0 } else { side }]
    }

    fn make(&mut self, path: Path, is_directory: bool) -> Id {
        self.inodes.push(Inode { is_directory, links: 1, ..Inode::default() });
        self.names.insert(path, self.inodes.len() - 1);
        self.inodes.len() - 1
    }

    /// The lowest number that is free.
    fn install(&mut self, side: Side, slot: u8, target: Target) -> usize {
        self.opens.push(Open { target, position: 0 });
        let open = self.opens.len() - 1;
        self.put(side, slot, open)
    }

    fn put(&mut self, side: Side, slot: u8, open: Id) -> usize {
        let process = self.process(side);
        let number = process.files.iter().position(Option::is_none).unwrap_or(process.files.len());
        if number == process.files.len() {
            process.files.push(None);
        }
        process.files[number] = Some(open);
        process.slots.insert(slot, number);
        number
    }

    fn open_of(&mut self, side: Side, slot: u8) -> Option<Id> {
        let process = self.process(side);
        let number = *process.slots.get(&slot)?;
        *process.files.get(number)?
    }

    fn status(&self, inode: Id) -> Answer {
        let Inode { is_directory, links, ref pages, changes } = self.inodes[inode];
        Answer::Status(is_directory, links, pages.len(), changes)
    }

    fn lose_link(&mut self, inode: Id) {
        self.inodes[inode].links -= 1;
        self.inodes[inode].changes += 1;
    }

    /// Does a call.
    ///
    /// # Errors
    ///
    /// If it waits, ends the program, or is a mistake.
    pub fn apply(&mut self, side: Side, call: Call) -> Result<Answer> {
        use Call::{
            Close, Dup, Fstat, Link, Lseek, MemRead, MemWrite, Mkdir, Mmap, Mprotect, Munmap, Open,
            OpenCreate, OpenNew, Pipe, Pread, Pwrite, Read, Rename, Rmdir, Stat, Unlink, Write,
        };
        Ok(match call {
            OpenNew { path, slot } => self.open(side, path, slot, true, true),
            OpenCreate { path, slot } => self.open(side, path, slot, true, false),
            Open { path, slot } => self.open(side, path, slot, false, false),
            Stat { path } => match self.names.get(&path) {
                Some(&inode) => self.status(inode),
                None => Answer::Fails("ENOENT"),
            },
            Unlink { path } => self.remove(path, false),
            Rmdir { path } => self.remove(path, true),
            Mkdir { path } if self.names.contains_key(&path) => Answer::Fails("EEXIST"),
            Mkdir { path } => {
                self.make(path, true);
                Answer::Done
            }
            Link { from, to } => self.link(from, to),
            Rename { from, to } => self.rename(from, to),
            Pipe { reader, writer } => {
                self.pipes.push(VecDeque::new());
                let pipe = self.pipes.len() - 1;
                let reader = self.install(side, reader, Target::Reader(pipe));
                Answer::Numbers(vec![reader, self.install(side, writer, Target::Writer(pipe))])
            }
            Mmap { .. } | Munmap { .. } | Mprotect { .. } | MemRead { .. } | MemWrite { .. } => {
                self.memory(side, call)?
            }
            Close { slot }
            | Read { slot }
            | Write { slot }
            | Pread { slot, .. }
            | Pwrite { slot, .. }
            | Lseek { slot, .. }
            | Fstat { slot }
            | Dup { slot, .. } => match self.open_of(side, slot) {
                Some(open) => self.on_open(side, open, call)?,
                None => Answer::Fails("EBADF"),
            },
        })
    }

    fn open(&mut self, side: Side, path: Path, slot: u8, creates: bool, is_new: bool) -> Answer {
        let inode = match self.names.get(&path) {
            Some(_) if is_new => return Answer::Fails("EEXIST"),
            // For writing, as all are opened here.
            Some(&inode) if self.inodes[inode].is_directory => return Answer::Fails("EISDIR"),
            Some(&inode) => inode,
            None if creates => self.make(path, false),
            None => return Answer::Fails("ENOENT"),
        };
        Answer::Numbers(vec![self.install(side, slot, Target::File(inode))])
    }

    fn remove(&mut self, path: Path, is_directory: bool) -> Answer {
        match self.names.get(&path) {
            None => Answer::Fails("ENOENT"),
            Some(&inode) if self.inodes[inode].is_directory != is_directory => {
                Answer::Fails(if is_directory { "ENOTDIR" } else { "EISDIR" })
            }
            Some(&inode) => {
                self.names.remove(&path);
                self.lose_link(inode);
                Answer::Done
            }
        }
    }

    fn link(&mut self, from: Path, to: Path) -> Answer {
        let Some(&inode) = self.names.get(&from) else { return Answer::Fails("ENOENT") };
        // Which of both errors, differs between systems; programs should not depend on it.
        if self.inodes[inode].is_directory || self.names.contains_key(&to) {
            return Answer::Fails("EEXIST or EPERM");
        }
        self.names.insert(to, inode);
        self.inodes[inode].links += 1;
        self.inodes[inode].changes += 1;
        Answer::Done
    }

    fn rename(&mut self, from: Path, to: Path) -> Answer {
        let Some(&inode) = self.names.get(&from) else { return Answer::Fails("ENOENT") };
        if let Some(&victim) = self.names.get(&to) {
            let [is_directory, victim_is_one] =
                [inode, victim].map(|inode| self.inodes[inode].is_directory);
            if is_directory != victim_is_one {
                return Answer::Fails(if is_directory { "ENOTDIR" } else { "EISDIR" });
            }
            if victim == inode {
                return Answer::Done;
            }
            self.lose_link(victim);
        }
        self.names.remove(&from);
        self.names.insert(to, inode);
        self.inodes[inode].changes += 1;
        Answer::Done
    }

    fn on_open(&mut self, side: Side, open: Id, call: Call) -> Result<Answer> {
        let Open { target, position } = self.opens[open];
        let inode = if let Target::File(inode) = target { Some(inode) } else { None };
        Ok(match (call, inode) {
            (Call::Close { slot }, _) => {
                let process = self.process(side);
                let number = process.slots[&slot];
                process.files[number] = None;
                Answer::Done
            }
            (Call::Dup { to, .. }, _) => Answer::Numbers(vec![self.put(side, to, open)]),
            (Call::Fstat { .. }, Some(inode)) => self.status(inode),
            (Call::Lseek { page, .. }, Some(_)) => {
                self.opens[open].position = page.into();
                Answer::Numbers(vec![page.into()])
            }
            (Call::Read { .. }, Some(inode)) => {
                let answer = self.read(inode, position);
                self.opens[open].position += usize::from(matches!(answer, Answer::Byte(_)));
                answer
            }
            (Call::Write { .. }, Some(inode)) => {
                self.opens[open].position += 1;
                self.write(inode, position, byte(side))
            }
            (Call::Pread { page, .. }, Some(inode)) => self.read(inode, page.into()),
            (Call::Pwrite { page, .. }, Some(inode)) => self.write(inode, page.into(), byte(side)),
            (Call::Read { .. }, None) => self.read_pipe(target)?,
            (Call::Write { .. }, None) => self.write_pipe(target, byte(side))?,
            (Call::Fstat { .. }, None) => Answer::Done,
            // A pipe has no positions: such a call fails, and the cases are not about failures.
            (Call::Pread { .. } | Call::Pwrite { .. } | Call::Lseek { .. }, None) => {
                return Err(NotForPairs);
            }
            _ => unreachable!("{call} is on no descriptor"),
        })
    }

    fn read(&self, inode: Id, page: usize) -> Answer {
        self.inodes[inode].pages.get(page).map_or(Answer::End, |&byte| Answer::Byte(byte))
    }

    fn write(&mut self, inode: Id, page: usize, byte: u8) -> Answer {
        let inode = &mut self.inodes[inode];
        if page >= inode.pages.len() {
            inode.pages.resize(page + 1, 0);
        }
        inode.pages[page] = byte;
        inode.changes += 1;
        Answer::Done
    }

    /// Whether a descriptor somewhere is this end of a pipe.
    fn is_open(&self, target: Target) -> bool {
        let mut files = self.processes.iter().flat_map(|process| &process.files).flatten();
        files.any(|&open| self.opens[open].target == target)
    }

    fn read_pipe(&mut self, target: Target) -> Result<Answer> {
        let Target::Reader(pipe) = target else { return Err(NotForPairs) };
        match self.pipes[pipe].pop_front() {
            Some(byte) => Ok(Answer::Byte(byte)),
            None if self.is_open(Target::Writer(pipe)) => Err(NotForPairs),
            None => Ok(Answer::End),
        }
    }

    fn write_pipe(&mut self, target: Target, byte: u8) -> Result<Answer> {
        let Target::Writer(pipe) = target else { return Err(NotForPairs) };
        if !self.is_open(Target::Reader(pipe)) {
            return Err(NotForPairs);
        }
        self.pipes[pipe].push_back(byte);
        Ok(Answer::Done)
    }

    fn memory(&mut self, side: Side, call: Call) -> Result<Answer> {
        let memory = &mut self.process(side).memory;
        Ok(match call {
            Call::Mmap { page } => {
                memory.insert(page, (true, 0));
                Answer::Done
            }
            Call::Munmap { page } => {
                memory.remove(&page);
                Answer::Done
            }
            Call::Mprotect { page } => match memory.get_mut(&page) {
                Some(entry) => {
                    entry.0 = false;
                    Answer::Done
                }
                None => Answer::Fails("ENOMEM"),
            },
            Call::MemRead { page } => Answer::Byte(memory.get(&page).ok_or(NotForPairs)?.1),
            Call::MemWrite { page } => match memory.get_mut(&page) {
                Some((true, value)) => {
                    *value = byte(side);
                    Answer::Done
                }
                _ => return Err(NotForPairs),
            },
            _ => unreachable!("{call} is not on memory"),
        })
    }

    /// Everything that a program could find out, as text. Two states have the same text if a
    /// program cannot distinguish them.
    pub fn seen(&self) -> String {
        let mut text = String::new();
        let (mut inodes, mut opens, mut pipes) = (Vec::new(), Vec::new(), Vec::new());
        let mut put = |text: &mut String, inode: Id| {
            let number = place(&mut inodes, inode);
            let _ = write!(text, "inode {number} {:?}; ", self.inodes[inode]);
        };
        for (path, &inode) in &self.names {
            let _ = write!(text, "{path} ");
            put(&mut text, inode);
        }
        for process in &self.processes {
            for (number, open) in process.files.iter().enumerate() {
                let Some(open) = *open else { continue };
                let Open { target, position } = self.opens[open];
                let _ = write!(text, "{number} is open {} at {position} ", place(&mut opens, open));
                match target {
                    Target::File(inode) => put(&mut text, inode),
                    Target::Reader(pipe) | Target::Writer(pipe) => {
                        let end =
                            if matches!(target, Target::Reader(_)) { "reads" } else { "writes" };
                        let number = place(&mut pipes, pipe);
                        let _ = write!(text, "{end} pipe {number} {:?}; ", self.pipes[pipe]);
                    }
                }
            }
            let _ = write!(text, "{:?} ", process.memory);
        }
        text
    }
}

/// The index in the order of first use: the numbers from the creation are not visible.
fn place(all: &mut Vec<Id>, one: Id) -> usize {
    all.iter().position(|&other| other == one).unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}

/// Whether the two calls commute after the setup, and each succeeds.
pub fn commute(place: Callers, setup: &[(Side, Call)], calls: [Call; 2]) -> Option<[bool; 2]> {
    let mut before = Model::new(place);
    for &(side, call) in setup {
        before.apply(side, call).ok().filter(Answer::succeeds)?;
    }
    let both = |order: [Side; 2]| {
        let mut model = before.clone();
        let mut answers = [Answer::Done, Answer::Done];
        for side in order {
            answers[side] = model.apply(side, calls[side]).ok()?;
        }
        Some((answers, model.seen()))
    };
    let (answers, seen) = both([0, 1])?;
    (both([1, 0])? == (answers.clone(), seen)).then(|| answers.map(|answer| answer.succeeds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: u8) -> Path {
        Path { directory: 0, name }
    }

    #[test]
    fn names_that_differ_commute_and_the_same_do_not() {
        let open = |name| Call::OpenNew { path: path(name), slot: 0 };
        assert_eq!(commute(Callers::Processes, &[], [open(0), open(1)]), Some([true, true]));
        assert_eq!(commute(Callers::Processes, &[], [open(0), open(0)]), None);
        // The first caller gets the lowest free descriptor.
        assert_eq!(commute(Callers::Threads, &[], [open(0), open(1)]), None);
        let both = [Call::Stat { path: path(0) }, Call::Unlink { path: path(1) }];
        let linked = [(0, open(0)), (0, Call::Link { from: path(0), to: path(1) })];
        assert_eq!(commute(Callers::Processes, &linked, both), None, "stat tells links");
        let other = [(0, open(0)), (1, open(1))];
        assert_eq!(commute(Callers::Processes, &other, both), Some([true, true]));
    }

    #[test]
    fn positions_are_of_open_files_and_not_of_descriptors() {
        let open = |slot| (0, Call::Open { path: path(0), slot });
        let file =
            [(0, Call::OpenNew { path: path(0), slot: 0 }), (0, Call::Pwrite { slot: 0, page: 1 })];
        let calls = [Call::Read { slot: 0 }, Call::Lseek { slot: 1, page: 1 }];
        let two = [&file[..], &[open(1)]].concat();
        assert_eq!(commute(Callers::Threads, &two, calls), Some([true, true]));
        let copy = [&file[..], &[(0, Call::Dup { slot: 0, to: 1 })]].concat();
        assert_eq!(commute(Callers::Threads, &copy, calls), None);
    }

    #[test]
    fn a_pipe_with_bytes_is_read_and_written_in_any_order() {
        let pipe = [(0, Call::Pipe { reader: 0, writer: 1 })];
        let calls = [Call::Read { slot: 0 }, Call::Write { slot: 1 }];
        assert_eq!(commute(Callers::Threads, &pipe, calls), None, "one order waits");
        let filled = [&pipe[..], &[(0, Call::Write { slot: 1 })]].concat();
        assert_eq!(commute(Callers::Threads, &filled, calls), Some([true, true]));
    }

    #[test]
    fn memory_is_common_to_threads_only() {
        let map = [(0, Call::Mmap { page: 0 }), (1, Call::Mmap { page: 0 })];
        let calls = [Call::MemWrite { page: 0 }, Call::MemRead { page: 0 }];
        assert_eq!(commute(Callers::Processes, &map, calls), Some([true, true]));
        assert_eq!(commute(Callers::Threads, &map, calls), None);
    }
}
