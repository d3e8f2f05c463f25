//! The behaviour of names when one thread uses them: files in two directories, each identified by
//! its mode.

use std::collections::BTreeMap;

use khronos_fs::{At, Cx, Errno, Fs, Open, Rename, Sync};
use manycore_history::history::Log;
use manycore_history::specification::Specification;

/// A directory and a name in it.
pub type EntryName = (u8, u8);

/// What is done with names.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Makes a file, whose mode is this.
    Create(EntryName, u32),
    Unlink(EntryName),
    Find(EntryName),
    Link(EntryName, EntryName),
    Rename(EntryName, EntryName),
    NoReplace(EntryName, EntryName),
    Exchange(EntryName, EntryName),
    /// Finds both at one moment.
    Both(EntryName, EntryName),
}

/// Files that were found, or why there is none.
pub type Outcome = Result<[Option<u32>; 2], Errno>;

pub struct Names;

const NOTHING: Outcome = Ok([None; 2]);

impl Specification for Names {
    type State = BTreeMap<EntryName, u32>;
    type Operation = Operation;
    type Result = Outcome;

    fn apply(state: &mut Self::State, operation: &Operation) -> Outcome {
        match *operation {
            Operation::Create(place, file) => {
                if state.contains_key(&place) {
                    return Err(Errno::Exists);
                }
                state.insert(place, file);
            }
            Operation::Unlink(place) => {
                state.remove(&place).ok_or(Errno::NoEntry)?;
            }
            Operation::Find(place) => return Ok([state.get(&place).copied(), None]),
            Operation::Both(one, two) => return Ok([one, two].map(|p| state.get(&p).copied())),
            Operation::Link(from, to) => {
                let file = *state.get(&from).ok_or(Errno::NoEntry)?;
                if state.contains_key(&to) {
                    return Err(Errno::Exists);
                }
                state.insert(to, file);
            }
            Operation::Rename(from, to) => {
                let file = *state.get(&from).ok_or(Errno::NoEntry)?;
                // Two names of the same file both stay.
                if state.insert(to, file) != Some(file) {
                    state.remove(&from);
                }
            }
            Operation::NoReplace(from, to) => {
                let file = *state.get(&from).ok_or(Errno::NoEntry)?;
                if state.contains_key(&to) {
                    return Err(Errno::Exists);
                }
                state.insert(to, file);
                state.remove(&from);
            }
            Operation::Exchange(from, to) => {
                let (one, two) = (state.get(&from).copied(), state.get(&to).copied());
                let (Some(one), Some(two)) = (one, two) else { return Err(Errno::NoEntry) };
                state.insert(from, two);
                state.insert(to, one);
            }
        }
        NOTHING
    }

    fn key(_: &Operation) -> Option<u64> {
        None
    }
}

const DIRECTORIES: [&str; 2] = ["x", "y"];

/// Makes the directories.
pub fn prepare(cx: &mut Cx<'_>) {
    let root = cx.fs().root();
    for name in DIRECTORIES {
        cx.mkdir(At { directory: root, path: name.as_bytes() }, 0o755).unwrap();
    }
}

fn path((directory, name): EntryName) -> String {
    format!("{}/{name}", DIRECTORIES[usize::from(directory)])
}

fn call(cx: &mut Cx<'_>, operation: &Operation) -> Outcome {
    let root = cx.fs().root();
    let (from, to) = match *operation {
        Operation::Create(place, _) | Operation::Unlink(place) | Operation::Find(place) => {
            (path(place), String::new())
        }
        Operation::Link(from, to)
        | Operation::Rename(from, to)
        | Operation::NoReplace(from, to)
        | Operation::Exchange(from, to)
        | Operation::Both(from, to) => (path(from), path(to)),
    };
    let [from, to] = [&from, &to].map(|path| At { directory: root, path: path.as_bytes() });
    match *operation {
        Operation::Create(_, mode) => {
            let file = cx.open(from, Open::NEW, mode)?;
            cx.close(file);
        }
        Operation::Unlink(_) => cx.unlink(from)?,
        Operation::Find(_) => {
            let found = cx.stat(from, false).ok();
            return Ok([found.map(|stat| stat.mode & 0o7777), None]);
        }
        Operation::Link(..) => cx.link(from, to, false)?,
        Operation::Rename(..) => cx.rename(from, to, Rename::Replace)?,
        Operation::NoReplace(..) => cx.rename(from, to, Rename::NoReplace)?,
        Operation::Exchange(..) => cx.rename(from, to, Rename::Exchange)?,
        Operation::Both(from, to) => return Ok(both(cx, from, to)),
    }
    NOTHING
}

fn both(cx: &mut Cx<'_>, from: EntryName, to: EntryName) -> [Option<u32>; 2] {
    cx.moment(|moment| {
        let directories =
            DIRECTORIES.map(|name| moment.find(moment.root(), name.as_bytes()).unwrap().unwrap());
        let find = |(directory, name): EntryName| {
            let directory = directories[usize::from(directory)];
            let found = moment.find(directory, name.to_string().as_bytes()).unwrap();
            found.map(|item| item.stat().mode & 0o7777)
        };
        let one = find(from);
        [one, if from == to { one } else { find(to) }]
    })
}

/// Whether finding one name after the other shows a rename as one step.
fn renames_are_steps(sync: Sync) -> bool {
    matches!(sync, Sync::Lock | Sync::Rlu | Sync::MvRlu)
}

/// The operations of a thread. Each file has a mode of its own.
pub fn run(
    fs: &Fs,
    log: &mut Log<'_, Operation, Outcome>,
    thread: u32,
    operations: u32,
    names: u8,
    seed: u64,
) {
    let mut cx = fs.context();
    let sync = fs.options().sync;
    let mut random = fastrand::Rng::with_seed(seed * 64 + u64::from(thread));
    for number in 0..operations {
        let mut place = || (random.u8(..2), random.u8(..names));
        let (from, to) = (place(), place());
        let operation = match random.u32(..if renames_are_steps(sync) { 10 } else { 6 }) {
            0 | 1 => Operation::Create(from, thread * 1000 + number),
            2 => Operation::Unlink(from),
            3 | 4 => Operation::Find(from),
            5 => Operation::Link(from, to),
            6 | 7 => Operation::Rename(from, to),
            8 if random.bool() => Operation::NoReplace(from, to),
            8 => Operation::Exchange(from, to),
            _ if sync.has_moments() => Operation::Both(from, to),
            _ => Operation::Find(to),
        };
        log.call(operation, |operation| call(&mut cx, operation));
    }
}
