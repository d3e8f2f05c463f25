//! Calls that commute share no cache line that one of them writes: counted exactly.
//!
//! Two threads, on two CPUs, do a call each, one after the other. What they share follows from the
//! lines that each has read and written.

extern crate khronos_fs_simulated as khronos_fs;

use khronos_fs::{At, Cx, Fs, Open, Options, Rename, Sync};
use manycore::sync::atomic::{AtomicU32, Ordering};
use manycore::sync::hint;
use manycore_sim::{Footprint, Machine, Simulation, thread};

/// Calls on names of the thread's own, in a directory of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Create,
    Unlink,
    Rename,
    Link,
    Stat,
    Symlink,
    Mkdir,
    Rmdir,
    Missing,
}

use Call::{Create, Link, Missing, Mkdir, Rename as Renames, Rmdir, Stat, Symlink, Unlink};

const CALLS: [Call; 9] = [Create, Unlink, Renames, Link, Stat, Symlink, Mkdir, Rmdir, Missing];

/// Each pair of calls is tried this many times, with other names, and the least number of shared
/// lines counts: rare sharing does not, as when memory comes from a common store, or two names fall
/// into one chain.
const TRIES: u32 = 4;

fn at<'a>(fs: &'a Fs, path: &'a str) -> At<'a> {
    At { directory: fs.root(), path: path.as_bytes() }
}

/// What is there before the call.
fn prepare(cx: &mut Cx<'_>, call: Call, name: &str) {
    let fs = cx.fs();
    match call {
        Unlink | Renames | Link | Stat => {
            let file = cx.open(at(fs, name), Open::NEW, 0o644).unwrap();
            cx.close(file);
        }
        Rmdir => cx.mkdir(at(fs, name), 0o755).unwrap(),
        Create | Symlink | Mkdir | Missing => {}
    }
}

fn act(cx: &mut Cx<'_>, call: Call, name: &str, other: &str) {
    let fs = cx.fs();
    match call {
        Create => {
            let file = cx.open(at(fs, name), Open::NEW, 0o644).unwrap();
            cx.close(file);
        }
        Unlink => cx.unlink(at(fs, name)).unwrap(),
        Renames => cx.rename(at(fs, name), at(fs, other), Rename::Replace).unwrap(),
        Link => cx.link(at(fs, name), at(fs, other), false).unwrap(),
        Stat => _ = cx.stat(at(fs, name), false).unwrap(),
        Symlink => cx.symlink(b"somewhere", at(fs, name)).unwrap(),
        Mkdir => cx.mkdir(at(fs, name), 0o755).unwrap(),
        Rmdir => cx.rmdir(at(fs, name)).unwrap(),
        Missing => assert!(cx.stat(at(fs, name), false).is_err()),
    }
}

/// Lines that two calls share, of which one writes it: the fewest of some tries.
fn shared(sync: Sync, calls: [Call; 2]) -> usize {
    let report = Simulation::new(&Machine::example()).run(|| {
        let fs = Fs::new(Options { chains: 256, ..Options::new(sync) });
        fs.context().mkdir(at(&fs, "d"), 0o755).unwrap();
        let name = |thread: usize, number: u32| format!("d/{thread}-{number}");
        let turn = AtomicU32::new(0);
        // One thread does all of its part before the other goes on.
        let footprints = thread::parallel(2, |me| {
            let (me, mut cx) = (me as usize, fs.context());
            let mut footprints: Vec<Footprint> = Vec::new();
            for number in 0..TRIES + 1 {
                let [name, other] = [name(me, 2 * number), name(me, 2 * number + 1)];
                for part in 0..2 {
                    let mine = (number * 2 + part) * 2 + me as u32;
                    // Acquire, and Release below: what the other has done.
                    while turn.load(Ordering::Acquire) != mine {
                        hint::spin_loop();
                    }
                    if part == 0 {
                        prepare(&mut cx, calls[me], &name);
                    } else {
                        let done = || act(&mut cx, calls[me], &name, &other);
                        footprints.push(thread::footprint(done).1);
                    }
                    turn.store(mine + 1, Ordering::Release);
                }
            }
            footprints
        });
        fs.context().check_all().unwrap();
        let pairs = footprints[0].iter().zip(&footprints[1]);
        // The first is for memory that each thread takes once.
        pairs.skip(1).map(|(one, two)| one.conflicts(two)).min().unwrap()
    });
    report.unwrap().result
}

/// Prints a table with `--nocapture`.
fn table(sync: Sync) -> Vec<(Call, Call, usize)> {
    let mut all = Vec::new();
    for (number, one) in CALLS.iter().enumerate() {
        for two in &CALLS[number..] {
            let lines = shared(sync, [*one, *two]);
            println!("{sync}: {one:?}, {two:?}: {lines}");
            all.push((*one, *two, lines));
        }
    }
    all
}

fn nothing_is_shared(sync: Sync, but: Option<Call>) {
    let met: Vec<_> = table(sync)
        .into_iter()
        .filter(|(one, two, lines)| *lines > 0 && but != Some(*one) && but != Some(*two))
        .collect();
    assert!(met.is_empty(), "{sync}: {met:?}");
}

/// But where a directory is removed: that frees the roots of all its chains, which are more
/// versions than a thread has before it looks for a grace period, at the lines of all others.
#[test]
fn different_names_of_a_directory_do_not_meet_under_mvrlu() {
    nothing_is_shared(Sync::MvRlu, Some(Rmdir));
}

#[test]
fn different_names_of_a_directory_do_not_meet_under_rcu() {
    nothing_is_shared(Sync::Rcu, None);
}

/// So that the count is one: a lock for the directory is met.
#[test]
fn who_takes_a_lock_for_a_directory_meets_there() {
    assert!(shared(Sync::DirLock, [Create, Unlink]) > 0);
    assert!(shared(Sync::Lock, [Stat, Stat]) > 0);
    assert_eq!(shared(Sync::DirLock, [Stat, Stat]), 0);
}
