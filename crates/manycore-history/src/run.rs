//! A random mix of operations on any collection, with real threads and under explored schedules.
//!
//! A test of a collection is one line:
//!
//! ```text
//! run::check_set(Native, &Mix::native(4), &LockedList::new());                 // on real threads
//! let mix = Mix::explored(3, seed);                                            // simulated
//! explore().check(|| run::check_set(Explored, &mix, &LockedList::new()));
//! ```

use manycore_sim::{backend, thread};
use manycore_traits::{ConcurrentMap, ConcurrentSet, Interval, MapHandle, ReverseMap, SetHandle};

use crate::history::Clock;
use crate::linearizable;
use crate::specification::{
    CallOf, End, Map, MapOperation, Sequence, SequenceOperation, Set, SetOperation, Specification,
};
use crate::taken_back;

/// What the threads do.
#[derive(Clone, Debug)]
pub struct Mix {
    /// How many threads.
    pub threads: u32,
    /// How many operations each does.
    pub operations: u32,
    /// The keys are those below.
    pub keys: u64,
    /// The share of insertions in percent.
    pub inserts: u32,
    /// The share of removals in percent; the other operations are look-ups.
    pub removes: u32,
    /// Which mix: the same seed, the same operations.
    pub seed: u64,
}

impl Mix {
    /// Many operations on a few keys, so that operations of real threads overlap.
    pub fn native(threads: u32) -> Self {
        Self {
            threads,
            operations: unless_interpreted(10_000, 40),
            keys: 8,
            inserts: 30,
            removes: 30,
            seed: 1,
        }
    }

    /// Some operations on three keys, so that a schedule has few enough steps.
    pub fn explored(threads: u32, seed: u64) -> Self {
        Self { threads, operations: 4, keys: 3, inserts: 40, removes: 40, seed }
    }

    /// The thread's operations.
    fn operations(&self, thread: u32) -> impl Iterator<Item = (Kind, u64)> {
        let mut random =
            fastrand::Rng::with_seed(self.seed.wrapping_mul(1 << 32) + u64::from(thread));
        let (keys, inserts, removes) = (self.keys, self.inserts, self.removes);
        std::iter::repeat_with(move || {
            let kind = match random.u32(..100) {
                share if share < inserts => Kind::Insert,
                share if share < inserts + removes => Kind::Remove,
                _ => Kind::Look,
            };
            (kind, random.u64(..keys))
        })
        .take(self.operations as usize)
    }
}

enum Kind {
    Look,
    Insert,
    Remove,
}

/// Threads to run something on.
pub trait Threads {
    /// Runs the body on this many threads, which have numbers, and returns their results.
    fn parallel<T: Send>(&self, threads: u32, body: impl Fn(u32) -> T + Sync) -> Vec<T>;

    /// Calls a function that is not part of the tested program.
    fn aside<R>(&self, does: impl FnOnce() -> R) -> R {
        does()
    }
}

/// How often a test repeats something: the interpreter Miri, which takes a thousand times as long,
/// has a number of its own.
pub const fn unless_interpreted<N: Copy>(usual: N, interpreted: N) -> N {
    if cfg!(miri) { interpreted } else { usual }
}

/// Threads of the operating system.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Threads for Native {
    fn parallel<T: Send>(&self, threads: u32, body: impl Fn(u32) -> T + Sync) -> Vec<T> {
        let start = std::sync::Barrier::new(threads as usize);
        std::thread::scope(|scope| {
            let (body, start) = (&body, &start);
            let started: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        start.wait();
                        body(thread)
                    })
                })
                .collect();
            let joined = started.into_iter().map(|thread| thread.join());
            joined.map(|result| result.unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
        })
    }
}

/// Threads of a simulation, for programs whose schedules are explored.
#[derive(Clone, Copy, Debug)]
pub struct Explored;

impl Threads for Explored {
    fn parallel<T: Send>(&self, threads: u32, body: impl Fn(u32) -> T + Sync) -> Vec<T> {
        thread::parallel(threads, body)
    }

    fn aside<R>(&self, does: impl FnOnce() -> R) -> R {
        backend::on_host(does)
    }
}

/// Runs a mix of operations on an empty set, and checks their results.
///
/// # Panics
///
/// If the history is not linearizable; the message shows the operations that contradict each other.
#[track_caller]
pub fn check_set(threads: impl Threads, mix: &Mix, set: &impl ConcurrentSet<u64>) {
    let clock = Clock::new();
    let logs = threads.parallel(mix.threads, |thread| {
        let (mut log, mut handle) = (clock.log(thread), set.handle());
        for (kind, key) in mix.operations(thread) {
            match kind {
                Kind::Look => log.call(SetOperation::Contains(key), |_| handle.contains(&key)),
                Kind::Insert => log.call(SetOperation::Insert(key), |_| handle.insert(key)),
                Kind::Remove => log.call(SetOperation::Remove(key), |_| handle.remove(&key)),
            }
        }
        log.into_calls()
    });
    judge::<Set>(&threads, &logs);
}

/// Runs a mix of operations on an empty map, and checks their results. Each value is inserted only
/// once.
///
/// # Panics
///
/// If the history is not linearizable; the message shows the operations that contradict each other.
#[track_caller]
pub fn check_map(threads: impl Threads, mix: &Mix, map: &impl ConcurrentMap<u64, u64>) {
    let clock = Clock::new();
    let logs = threads.parallel(mix.threads, |thread| {
        let (mut log, mut handle) = (clock.log(thread), map.handle());
        for ((kind, key), number) in mix.operations(thread).zip(0..) {
            let value = u64::from(thread) << 32 | number;
            match kind {
                Kind::Look => log.call(MapOperation::Get(key), |_| handle.get(&key)),
                Kind::Insert => {
                    log.call(MapOperation::Insert(key, value), |_| handle.insert(key, value));
                }
                Kind::Remove => log.call(MapOperation::Remove(key), |_| handle.remove(&key)),
            }
        }
        log.into_calls()
    });
    judge::<Map>(&threads, &logs);
}

/// Runs a mix of operations on an empty stack or queue, and checks their results. Insertions are
/// pushes. Each removal or read is one of these operations: it pops, takes everything, or takes
/// back the thread's last push. Each value is pushed only once. `handle` makes a thread's access to
/// the sequence.
///
/// # Panics
///
/// If the history is not linearizable; the message shows the operations that contradict each other.
#[track_caller]
pub fn check_sequence<E: End, H: FnMut(SequenceOperation) -> Vec<u64>>(
    threads: impl Threads,
    mix: &Mix,
    removals: &[SequenceOperation],
    handle: impl Fn() -> H + Sync,
) {
    let clock = Clock::new();
    let logs = threads.parallel(mix.threads, |thread| {
        let (mut log, mut operate) = (clock.log(thread), handle());
        for ((kind, key), number) in mix.operations(thread).zip(0..) {
            let operation = match kind {
                Kind::Insert => SequenceOperation::Push(u64::from(thread) << 32 | number),
                Kind::Look | Kind::Remove => removals[key as usize % removals.len()],
            };
            if operation == SequenceOperation::PopSome {
                log.call_all(|| match operate(operation) {
                    none if none.is_empty() => vec![(SequenceOperation::Pop, none)],
                    some => some
                        .into_iter()
                        .map(|value| (SequenceOperation::Pop, vec![value]))
                        .collect(),
                });
            } else {
                log.call(operation, |operation| operate(*operation));
            }
        }
        log.into_calls()
    });
    let left =
        threads.aside(|| logs.into_iter().map(taken_back::leave_out).collect::<Result<_, _>>());
    let left: Vec<_> = left.unwrap_or_else(|fault| panic!("{fault}"));
    judge::<Sequence<E>>(&threads, &left);
}

/// Threads insert and remove an interval of their own, sometimes the same one again and sometimes a
/// new one, and search for intervals, in all trees or where one of them may be. The trees are
/// empty, and threads take them in turn. Checks each interval's results: a search sees everything
/// done before it, and nothing that was undone.
///
/// # Panics
///
/// If the history is not linearizable; the message shows the operations that contradict each other.
/// If a query finds an interval that does not overlap it.
#[track_caller]
pub fn check_reverse_map(threads: impl Threads, mix: &Mix, map: &impl ReverseMap) {
    let clock = Clock::new();
    let tree = |owner: u64| owner as usize % map.trees();
    let own = |owner| Interval { first: 10 * owner, order: owner, last: 10 * owner + 7 };
    let look = || {
        let mut there = vec![false; mix.threads as usize];
        for tree in 0..map.trees() {
            map.overlaps(tree, 0, u64::MAX, &mut |found| there[found.order as usize] = true);
        }
        (0..).map(SetOperation::Contains).zip(there).collect()
    };
    let look_for = |owner| {
        let (mut is_there, middle) = (false, own(owner).first + 3);
        map.overlaps(tree(owner), middle, middle + 1, &mut |found| {
            assert_eq!(found, own(owner), "found at {middle}");
            is_there = true;
        });
        vec![(SetOperation::Contains(owner), is_there)]
    };
    // A dropped interval is removed, so they are kept until all searches are done.
    let (logs, kept): (Vec<_>, Vec<_>) = threads
        .parallel(mix.threads, |thread| {
            let (mut log, key) = (clock.log(thread), u64::from(thread));
            let new = || map.interval(tree(key), own(key));
            let (mut absent, mut present) = (Some(new()), None);
            for (kind, number) in mix.operations(thread) {
                match (kind, present.take()) {
                    (Kind::Look, before) => {
                        present = before;
                        match number {
                            0 => log.call_all(look),
                            _ => log.call_all(|| look_for(number % u64::from(mix.threads))),
                        }
                    }
                    (_, None) => log.call(SetOperation::Insert(key), |_| {
                        let interval = absent.take().unwrap_or_else(new);
                        present = Some(map.insert(interval));
                        true
                    }),
                    (_, Some(interval)) => log.call(SetOperation::Remove(key), |_| {
                        absent = Some(map.remove(interval)).filter(|_| number % 2 == 0);
                        true
                    }),
                }
            }
            log.call_all(look);
            (log.into_calls(), (present, absent))
        })
        .into_iter()
        .unzip();
    judge::<Set>(&threads, &logs);
    drop(kept);
}

/// Checks what threads have logged.
///
/// # Panics
///
/// If it is not linearizable; the message shows the operations that contradict each other.
#[track_caller]
pub fn judge<S: Specification>(threads: &impl Threads, logs: &[Vec<CallOf<S>>]) {
    let verdict = threads.aside(|| linearizable::check::<S>(&logs.concat()));
    if let Err(violation) = verdict {
        panic!("not linearizable: {violation}");
    }
}
