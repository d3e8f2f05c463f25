//! All cases: the calls, the arguments that are the same, and the initial objects.

use std::collections::BTreeMap;

use crate::call::{Call, Path};
use crate::case::{Callers, Case, Side};
use crate::model;

/// The most cases of two calls that are kept for each kind of callers, evenly from all. Renames
/// alone would have thousands, and hide the rest.
pub const MOST: usize = 8;

/// A path is there as this before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    Directory,
    /// The file with this number. Several names may lead to the same file.
    File(u8),
}

/// What a descriptor is of.
#[derive(Clone, Copy)]
enum Target {
    /// A file that has this name.
    File(Path),
    /// An end of the pipe with this number.
    Reader(u8),
    Writer(u8),
    /// The open file of the other call's descriptor.
    Same,
    /// That descriptor itself, which has this slot.
    TheOne(u8),
}

/// Memory is there as this before.
#[derive(Clone, Copy)]
enum Page {
    Unmapped,
    Untouched,
    Written,
    /// As the other call has it made.
    AsMade,
}

/// A call with its arguments left open.
#[derive(Clone, Copy)]
enum Shape {
    One(fn(Path, u8) -> Call),
    Two(fn(Path, Path) -> Call),
    Slot(fn(u8) -> Call),
    Memory(fn(u8) -> Call),
    Free(fn(u8) -> Call),
}

use Shape::{Free, Memory, One, Slot, Two};

const SHAPES: &[Shape] = &[
    One(|path, slot| Call::OpenNew { path, slot }),
    One(|path, slot| Call::OpenCreate { path, slot }),
    One(|path, slot| Call::Open { path, slot }),
    One(|path, _| Call::Stat { path }),
    One(|path, _| Call::Unlink { path }),
    One(|path, _| Call::Mkdir { path }),
    One(|path, _| Call::Rmdir { path }),
    Two(|from, to| Call::Link { from, to }),
    Two(|from, to| Call::Rename { from, to }),
    Slot(|slot| Call::Close { slot }),
    Slot(|slot| Call::Read { slot }),
    Slot(|slot| Call::Write { slot }),
    Slot(|slot| Call::Pread { slot, page: 0 }),
    Slot(|slot| Call::Pread { slot, page: 1 }),
    Slot(|slot| Call::Pwrite { slot, page: 0 }),
    Slot(|slot| Call::Pwrite { slot, page: 1 }),
    Slot(|slot| Call::Pwrite { slot, page: 2 }),
    Slot(|slot| Call::Lseek { slot, page: 0 }),
    Slot(|slot| Call::Lseek { slot, page: 1 }),
    Slot(|slot| Call::Fstat { slot }),
    Free(|slot| Call::Pipe { reader: slot, writer: slot + 1 }),
    Memory(|page| Call::Mmap { page }),
    Memory(|page| Call::Munmap { page }),
    Memory(|page| Call::Mprotect { page }),
    Memory(|page| Call::MemRead { page }),
    Memory(|page| Call::MemWrite { page }),
];

/// The slot for a side's own calls. Objects that the calls make are in other slots.
fn slot(side: Side) -> u8 {
    side as u8
}

fn slot_of_new(side: Side) -> u8 {
    2 + 2 * side as u8
}

/// With which files are made that are there before.
const SLOT_OF_SETUP: u8 = 6;

/// To read, and to write.
fn slots_of_pipe(pipe: u8) -> (u8, u8) {
    (8 + 2 * pipe, 9 + 2 * pipe)
}

/// A call with its arguments, and what the arguments have to refer to.
#[derive(Clone)]
struct Made {
    call: Call,
    paths: Vec<Path>,
    /// The descriptor that it uses, and the descriptor's target.
    target: Option<(u8, Target)>,
    page: Option<(u8, Page)>,
}

impl Made {
    fn new(call: Call) -> Self {
        Self { call, paths: Vec::new(), target: None, page: None }
    }
}

/// The paths that are used already, and a new one in each directory. The second directory is tried
/// only once the first is used, because names have no meaning.
fn next_paths(used: &[Path]) -> Vec<Path> {
    let mut all = used.to_vec();
    all.sort_unstable();
    all.dedup();
    let directories = used.iter().map(|path| path.directory + 1).max().unwrap_or(0);
    for directory in 0..=directories.min(1) {
        let name = used
            .iter()
            .filter(|path| path.directory == directory)
            .map(|path| path.name + 1)
            .max()
            .unwrap_or(0);
        all.push(Path { directory, name });
    }
    all
}

/// All calls of a shape, with all arguments that make a difference. `other` is the call of the
/// other side.
fn arguments(shape: Shape, side: Side, place: Callers, other: Option<&Made>) -> Vec<Made> {
    let used = other.map_or(&[][..], |other| &other.paths);
    match shape {
        One(call) => next_paths(used)
            .into_iter()
            .map(|path| Made { paths: vec![path], ..Made::new(call(path, slot_of_new(side))) })
            .collect(),
        Two(call) => {
            let firsts = next_paths(used).into_iter();
            let both = firsts.flat_map(|from| {
                let used = [used, &[from]].concat();
                next_paths(&used).into_iter().map(move |to| (from, to))
            });
            both.filter(|(from, to)| from != to)
                .map(|(from, to)| Made { paths: vec![from, to], ..Made::new(call(from, to)) })
                .collect()
        }
        Slot(call) => targets(used, place, other)
            .into_iter()
            .map(|target| {
                let slot = match target {
                    Target::File(_) | Target::Same => slot(side),
                    Target::Reader(pipe) => slots_of_pipe(pipe).0,
                    Target::Writer(pipe) => slots_of_pipe(pipe).1,
                    Target::TheOne(slot) => slot,
                };
                let paths = if let Target::File(path) = target { vec![path] } else { Vec::new() };
                Made { paths, target: Some((slot, target)), ..Made::new(call(slot)) }
            })
            .collect(),
        Memory(call) => pages(place, other)
            .into_iter()
            .map(|(page, there)| Made { page: Some((page, there)), ..Made::new(call(page)) })
            .collect(),
        Free(call) => vec![Made::new(call(slot_of_new(side)))],
    }
}

/// The possible targets of a descriptor: the target of the other call, or another object.
fn targets(used: &[Path], place: Callers, other: Option<&Made>) -> Vec<Target> {
    let mut all: Vec<_> = next_paths(used).into_iter().map(Target::File).collect();
    let Some((slot, target)) = other.and_then(|other| other.target) else {
        all.extend([Target::Reader(0), Target::Writer(0)]);
        return all;
    };
    all.extend([Target::Reader(1), Target::Writer(1)]);
    if place == Callers::Threads {
        all.extend([Target::Same, Target::TheOne(slot)]);
        match target {
            Target::Reader(_) => all.push(Target::Writer(0)),
            Target::Writer(_) => all.push(Target::Reader(0)),
            _ => {}
        }
    }
    all
}

/// The pages that a call can use. Each process has its own.
fn pages(place: Callers, other: Option<&Made>) -> Vec<(u8, Page)> {
    let there = [Page::Unmapped, Page::Untouched, Page::Written];
    match (place, other.and_then(|other| other.page)) {
        (Callers::Threads, Some(of_other)) => {
            let mut all: Vec<_> = there.map(|there| (1, there)).into();
            all.push((of_other.0, Page::AsMade));
            all
        }
        _ => there.map(|there| (0, there)).into(),
    }
}

/// All combinations of existing paths. A path to which a descriptor refers is a file.
fn trees(paths: &[(Path, bool)]) -> Vec<Vec<There>> {
    let mut all = vec![Vec::new()];
    for (_, is_file) in paths {
        let longer = |tree: Vec<There>| {
            let files = tree.iter().filter_map(|there| {
                if let There::File(file) = there { Some(*file + 1) } else { None }
            });
            let files = files.max().unwrap_or(0);
            let mut choices: Vec<_> = (0..=files).map(There::File).collect();
            if !is_file {
                choices.extend([There::Nothing, There::Directory]);
            }
            choices.into_iter().map(move |there| [&tree[..], &[there]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// The steps that make the initial objects. The agent that uses an object first has made it.
fn setup(made: [&Made; 2], paths: &[(Path, bool)], tree: &[There]) -> Vec<(Side, Call)> {
    let mut steps = Vec::new();
    let mut first_names: BTreeMap<u8, Path> = BTreeMap::new();
    for (&(path, _), &there) in paths.iter().zip(tree) {
        let side = usize::from(!made[0].paths.contains(&path));
        match there {
            There::Nothing => {}
            There::Directory => steps.push((side, Call::Mkdir { path })),
            There::File(file) => match first_names.get(&file) {
                Some(&from) => steps.push((side, Call::Link { from, to: path })),
                None => {
                    first_names.insert(file, path);
                    steps.extend(make_file(path).map(|call| (side, call)));
                }
            },
        }
    }
    let mut pipes = Vec::new();
    for (side, made) in made.into_iter().enumerate() {
        if let Some((slot, target)) = made.target {
            steps
                .extend(make_target(slot, target, &mut pipes).into_iter().map(|call| (side, call)));
            if matches!(target, Target::File(_) | Target::Same) {
                steps.extend(warm_up(made.call, slot).map(|call| (side, call)));
            }
        }
        let page = match made.page {
            None | Some((_, Page::Unmapped | Page::AsMade)) => vec![],
            Some((page, Page::Untouched)) => vec![Call::Mmap { page }],
            Some((page, Page::Written)) => vec![Call::Mmap { page }, Call::MemWrite { page }],
        };
        steps.extend(page.into_iter().map(|call| (side, call)));
    }
    steps
}

/// A file of two pages.
fn make_file(path: Path) -> [Call; 4] {
    let slot = SLOT_OF_SETUP;
    let write = |page| Call::Pwrite { slot, page };
    [Call::OpenNew { path, slot }, write(0), write(1), Call::Close { slot }]
}

/// The earlier access of an agent that reads or writes: a first access is not what is measured.
fn warm_up(call: Call, slot: u8) -> Option<Call> {
    match call {
        Call::Read { .. } | Call::Pread { .. } => Some(Call::Pread { slot, page: 0 }),
        Call::Write { .. } | Call::Pwrite { .. } => Some(Call::Pwrite { slot, page: 0 }),
        _ => None,
    }
}

fn make_target(slot: u8, target: Target, pipes: &mut Vec<u8>) -> Vec<Call> {
    match target {
        Target::TheOne(_) => vec![],
        Target::File(path) => vec![Call::Open { path, slot }],
        // The other call's descriptor is of side 0, in its own slot or a pipe's.
        Target::Same => vec![Call::Dup { slot: 1 - slot, to: slot }],
        Target::Reader(pipe) | Target::Writer(pipe) if pipes.contains(&pipe) => vec![],
        Target::Reader(pipe) | Target::Writer(pipe) => {
            pipes.push(pipe);
            let (reader, writer) = slots_of_pipe(pipe);
            vec![
                Call::Pipe { reader, writer },
                Call::Write { slot: writer },
                Call::Write { slot: writer },
            ]
        }
    }
}

/// All cases of two shapes that commute.
fn of_shapes(shapes: [Shape; 2], place: Callers) -> Vec<Case> {
    let mut cases = Vec::new();
    for one in arguments(shapes[0], 0, place, None) {
        for two in arguments(shapes[1], 1, place, Some(&one)) {
            let calls = [one.call, two.call];
            let mut paths: Vec<_> = one.paths.iter().chain(&two.paths).copied().collect();
            paths.sort_unstable();
            paths.dedup();
            let is_opened = |path: Path| {
                let targets = [&one, &two].map(|made| made.target);
                targets
                    .iter()
                    .any(|target| matches!(target, Some((_, Target::File(of))) if *of == path))
            };
            let paths: Vec<_> = paths.into_iter().map(|path| (path, is_opened(path))).collect();
            for tree in trees(&paths) {
                let setup = setup([&one, &two], &paths, &tree);
                if let Some(succeeds) = model::commute(place, &setup, calls) {
                    cases.push(Case { number: 0, place, setup, calls, succeeds });
                }
            }
        }
    }
    cases
}

/// Whether the calls should not conflict: each creates, removes, renames or stats a file of its
/// own, in one directory.
pub fn is_of_different_names(case: &Case) -> bool {
    let mut paths = Vec::new();
    for call in case.calls {
        match call {
            Call::OpenNew { path, .. } | Call::Unlink { path } | Call::Stat { path } => {
                paths.push(path)
            }
            Call::Link { from, to } | Call::Rename { from, to } => paths.extend([from, to]),
            _ => return false,
        }
    }
    let is_other = |(_, step): &(Side, Call)| match *step {
        // The target of a rename is not there.
        Call::OpenNew { path, .. } => {
            case.calls.iter().any(|call| matches!(call, Call::Rename { to, .. } if *to == path))
        }
        Call::Link { .. } | Call::Mkdir { .. } => true,
        _ => false,
    };
    let count = paths.len();
    let is_one_directory = paths.iter().all(|path| path.directory == paths[0].directory);
    paths.sort_unstable();
    paths.dedup();
    paths.len() == count
        && is_one_directory
        && case.succeeds == [true; 2]
        && !case.setup.iter().any(is_other)
}

/// All cases: at most `most` of each two calls and kind of callers, evenly from all, and those of
/// [different names](is_of_different_names).
pub fn cases(most: usize) -> Vec<Case> {
    let mut all: BTreeMap<(Callers, [&str; 2]), Vec<Case>> = BTreeMap::new();
    for place in Callers::ALL {
        for (number, &one) in SHAPES.iter().enumerate() {
            for &two in &SHAPES[number..] {
                for case in of_shapes([one, two], place) {
                    all.entry((place, case.names())).or_default().push(case);
                }
            }
        }
    }
    let mut cases = Vec::new();
    for found in all.into_values() {
        let (first, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(is_of_different_names);
        let room = most.saturating_sub(first.len()).min(rest.len());
        cases.extend(first);
        cases.extend((0..room).map(|place| rest[place * rest.len() / room].clone()));
    }
    (0..).zip(&mut cases).for_each(|(number, case)| case.number = number);
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_pairs_of_calls_have_cases_and_all_commute() {
        let cases = cases(MOST);
        let pairs: std::collections::BTreeSet<_> = cases.iter().map(Case::names).collect();
        let without =
            crate::call::NAMES.iter().flat_map(|one| crate::call::NAMES.map(|two| [*one, two]));
        let without: Vec<_> =
            without.filter(|[one, two]| one < two && !pairs.contains(&[*one, *two])).collect();
        assert!(without.is_empty(), "no case of {without:?}");
        for case in &cases {
            assert_eq!(case.to_string().parse().as_ref(), Ok(case));
            assert_eq!(model::commute(case.place, &case.setup, case.calls), Some(case.succeeds));
        }
        let named = cases.iter().filter(|case| is_of_different_names(case)).count();
        assert_eq!(named, 2 * 15 - 1, "two threads that both open a file do not commute");
    }
}
