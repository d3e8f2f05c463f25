//! The jobs of a process, and in which order they come.
//!
//! The kinds are those of AIM7's multiuser mix: files, memory, processes, pipes, arithmetic. Each
//! takes some tens or hundreds of microseconds, except for the start of a program, which takes
//! about a millisecond.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{PAGE, map, touch, unmap};
use crate::failure::Failure;
use crate::work::work;

/// The program that is started: it ends at once.
pub const PROGRAM: &std::ffi::CStr = c"/bin/true";

/// The size of a file, and the number of reads from the descriptor that all processes share.
const FILE: usize = 16 * 1024;
const SHARED_READS: usize = 16;
/// The size of mapped and touched memory, and of the heap's growth.
const MAPPING: usize = 256 * 1024;
const HEAP: usize = 128 * 1024;
/// The part of its parent's memory to which a child writes.
const INHERITED: usize = 64 * 1024;
/// What goes through a pipe, and how often.
const MESSAGE: usize = 1024;
const MESSAGES: usize = 32;
/// Turns of the work loop, at about a nanosecond.
const TURNS: u32 = 100_000;

/// A kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file is created, written, read, renamed and removed. In addition, a part of a file that
    /// all processes have open is read.
    Files,
    /// Memory is mapped, touched and unmapped; the heap grows and shrinks.
    Memory,
    /// A process is made, writes to its memory, and ends.
    Fork,
    /// A process is made and becomes another program.
    Exec,
    /// Bytes go through a pipe.
    Pipes,
    /// Numbers are multiplied and added.
    Arithmetic,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Files, "files"),
    (Kind::Memory, "memory"),
    (Kind::Fork, "fork"),
    (Kind::Exec, "exec"),
    (Kind::Pipes, "pipes"),
    (Kind::Arithmetic, "arithmetic"),
];

/// The shares of the kinds of jobs, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix([u16; KINDS.len()]);

impl Mix {
    /// Whether a kind comes at all.
    pub fn has(&self, kind: Kind) -> bool {
        KINDS.iter().zip(self.0).any(|((known, _), weight)| *known == kind && weight > 0)
    }
}

impl Default for Mix {
    /// The five kinds in the proportions of AIM7, except that starting programs has a quarter of
    /// the share of making processes.
    fn default() -> Self {
        Self([20, 20, 15, 5, 20, 20])
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = KINDS.iter().zip(self.0).filter(|(_, weight)| *weight > 0);
        let parts: Vec<_> = parts.map(|((_, name), weight)| format!("{name}:{weight}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Mix {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let mut weights = [0; KINDS.len()];
        for part in text.split(',') {
            let (name, weight) = part.split_once(':').unwrap_or((part, ""));
            let at = KINDS.iter().position(|(_, known)| *known == name);
            match (at, weight.parse()) {
                (Some(at), Ok(weight @ 0..=1000)) => weights[at] = weight,
                _ => {
                    let names = KINDS.map(|(_, name)| name).join(", ");
                    return Err(Failure::Usage(format!(
                        "'{part}' is no part of a mix: write KIND:WEIGHT, such as fork:10, where kinds are {names} and weights 0 to 1000"
                    )));
                }
            }
        }
        match weights.iter().all(|weight| *weight == 0) {
            true => Err(Failure::Usage(format!("'{text}' has no jobs: give a kind a weight"))),
            false => Ok(Self(weights)),
        }
    }
}

/// Jobs in random order. Each kind occurs as often as its weight; then all of them follow again in
/// another order.
pub struct Deck {
    cards: Vec<Kind>,
    next: usize,
    random: fastrand::Rng,
}

impl Deck {
    /// The jobs of a process, by its number. The same seed gives the same order.
    pub fn new(mix: Mix, seed: u64, process: u32) -> Self {
        let of_kind = |((kind, _), weight): (&(Kind, &str), u16)| vec![*kind; usize::from(weight)];
        let cards: Vec<Kind> = KINDS.iter().zip(mix.0).flat_map(of_kind).collect();
        let own = seed.wrapping_add(u64::from(process).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { next: cards.len(), cards, random: fastrand::Rng::with_seed(own) }
    }

    /// The next job.
    pub fn draw(&mut self) -> Kind {
        if self.next == self.cards.len() {
            self.random.shuffle(&mut self.cards);
            self.next = 0;
        }
        self.next += 1;
        self.cards[self.next - 1]
    }
}

/// The directory and the data of a process' jobs. The process has a single thread.
pub struct Site<'a> {
    made: PathBuf,
    renamed: PathBuf,
    /// The descriptor that all processes have inherited, and whose file position they share.
    shared: &'a File,
    memory: Vec<u8>,
    block: Vec<u8>,
}

impl<'a> Site<'a> {
    /// The state of a process, by its number.
    pub fn new(directory: &Path, process: u32, shared: &'a File) -> Self {
        let path = |name: &str| directory.join(format!("{name}-{process}"));
        let (memory, block) = (vec![1; INHERITED], vec![1; PAGE]);
        Self { made: path("made"), renamed: path("renamed"), shared, memory, block }
    }

    /// The file that all share, made and opened.
    pub fn shared(directory: &Path) -> io::Result<File> {
        let path = directory.join("shared");
        fs::write(&path, [1; PAGE])?;
        File::open(path)
    }

    /// Does a job.
    pub fn job(&mut self, kind: Kind) -> io::Result<()> {
        match kind {
            Kind::Files => self.files(),
            Kind::Memory => memory(),
            Kind::Fork => self.child(|memory| {
                // SAFETY: the memory is the whole of a vector of this function's.
                unsafe { touch(memory.as_mut_ptr(), memory.len()) };
                0
            }),
            Kind::Exec => self.child(|_| {
                let arguments = [PROGRAM.as_ptr(), std::ptr::null()];
                // SAFETY: a path, and pointers to it up to a null.
                unsafe { libc::execv(PROGRAM.as_ptr(), arguments.as_ptr()) };
                1 // it is still this program
            }),
            Kind::Pipes => self.pipes(),
            Kind::Arithmetic => {
                std::hint::black_box(work(1, TURNS));
                Ok(())
            }
        }
    }

    fn files(&mut self) -> io::Result<()> {
        let mut file = File::options().read(true).write(true).create_new(true).open(&self.made)?;
        for _ in 0..FILE / self.block.len() {
            file.write_all(&self.block)?;
        }
        file.rewind()?;
        for _ in 0..FILE / self.block.len() {
            file.read_exact(&mut self.block)?;
        }
        drop(file);
        fs::rename(&self.made, &self.renamed)?;
        fs::remove_file(&self.renamed)?;
        let mut shared = self.shared;
        for _ in 0..SHARED_READS {
            if shared.read(&mut self.block[..64])? == 0 {
                shared.rewind()?;
            }
        }
        Ok(())
    }

    /// Makes a process that exits with the result of `does`, and waits for it.
    fn child(&mut self, does: impl FnOnce(&mut [u8]) -> i32) -> io::Result<()> {
        // SAFETY: this process has a single thread, so the child finds no lock that another thread
        // holds.
        match unsafe { libc::fork() } {
            -1 => Err(explained(&io::Error::last_os_error(), "make a process", ALLOW_MORE)),
            0 => {
                let status = does(&mut self.memory);
                // SAFETY: ends this process, and runs nothing more of it.
                unsafe { libc::_exit(status) }
            }
            child => match wait(child)? {
                0 => Ok(()),
                status => Err(io::Error::other(format!("a child ended with status {status:#x}"))),
            },
        }
    }

    fn pipes(&mut self) -> io::Result<()> {
        let (mut read, mut write) = io::pipe()?;
        for _ in 0..MESSAGES {
            write.write_all(&self.block[..MESSAGE])?;
            read.read_exact(&mut self.block[..MESSAGE])?;
        }
        Ok(())
    }
}

fn memory() -> io::Result<()> {
    let at = map(MAPPING)?;
    // SAFETY: mapped just now, and no other thread knows of it.
    unsafe { touch(at, MAPPING) };
    // SAFETY: `map` has just made the mapping; no other code knows it, and it is not used again.
    unsafe { unmap(at, MAPPING) }?;
    // SAFETY: only this thread uses the heap's end, and nothing is allocated until the end is back
    // at its old place.
    let end = unsafe { libc::sbrk(HEAP as libc::intptr_t) };
    if end.addr() == usize::MAX {
        return Err(explained(
            &io::Error::last_os_error(),
            "let the heap grow",
            "allow more memory: ulimit -d, memory.max of the cgroup",
        ));
    }
    // SAFETY: the heap has just grown by this memory, and no other code has it.
    unsafe { touch(end.cast(), HEAP) };
    // SAFETY: only this thread uses the memory by which the heap has grown, and nothing was
    // allocated in it.
    let back = unsafe { libc::sbrk(-(HEAP as libc::intptr_t)) };
    if back.addr() == usize::MAX { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until a child has ended; returns its status in the kernel's form.
pub fn wait(child: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: the status is written to a variable of ours.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The remedy if a process or a thread cannot be made.
pub const ALLOW_MORE: &str = "allow more of them: ulimit -u, pids.max of the cgroup";

/// An error with the failed action and a remedy.
pub fn explained(error: &io::Error, what: &str, remedy: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what}: {error} ({remedy})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_read_as_they_are_written() {
        let usual = Mix::default();
        assert_eq!(usual.to_string().parse::<Mix>().unwrap(), usual);
        let one: Mix = "fork:3".parse().unwrap();
        assert!(one.has(Kind::Fork) && !one.has(Kind::Exec));
        for bad in ["", "fork", "fork:", "fork:-1", "fork:1001", "forks:1", "fork:0", "fork:1,"] {
            assert!(bad.parse::<Mix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_seed_decides_the_order_and_the_weights_the_number() {
        let draw = |seed, process| {
            let mut deck = Deck::new(Mix::default(), seed, process);
            (0..100).map(|_| deck.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        let forks = draw(7, 0).iter().filter(|kind| **kind == Kind::Fork).count();
        assert_eq!(forks, 15);
    }
}
