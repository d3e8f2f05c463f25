//! Tests that a peer's set must pass before the benchmark measures it.

use std::collections::BTreeSet;

use super::Peer;
use crate::set::{Keys, Task};

const KEYS: u64 = 64;

/// Tests a peer in each of its structures. Crates with peers of their own call it in a test.
///
/// # Panics
///
/// If the peer is not a set.
pub fn exercise(peer: &Peer) {
    for structure in peer.structures {
        let task = Task {
            structure: (*structure).to_owned(),
            sync: peer.name.to_owned(),
            threads: 4,
            update: 100.0,
            keys: Keys::of(KEYS / 2),
        };
        alone(peer, &task);
        together(peer, &task);
    }
}

/// Checks that with one thread the set gives the same answers as the standard library's.
fn alone(peer: &Peer, task: &Task) {
    let (set, mut model) = ((peer.make)(task), BTreeSet::new());
    let mut handle = set.handle();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let key = random.u64(..KEYS);
        let (found, expected) = match random.u8(..3) {
            0 => (handle.insert(key), model.insert(key)),
            1 => (handle.remove(&key), model.remove(&key)),
            _ => (handle.contains(&key), model.contains(&key)),
        };
        assert_eq!(found, expected, "{} as {}: {key}", peer.name, task.structure);
    }
}

/// Checks threads that insert and remove the same few keys: each key was inserted as often as it
/// was removed, or once more.
fn together(peer: &Peer, task: &Task) {
    let set = (peer.make)(task);
    let work = |seed| {
        let (mut handle, mut random) = (set.handle(), fastrand::Rng::with_seed(seed));
        let mut change = [0_i64; KEYS as usize];
        for _ in 0..5_000 {
            let key = random.u64(..KEYS);
            change[key as usize] += match random.bool() {
                true => i64::from(handle.insert(key)),
                false => -i64::from(handle.remove(&key)),
            };
        }
        change
    };
    let changes: Vec<_> = std::thread::scope(|scope| {
        let start = |seed| scope.spawn(move || work(seed));
        let threads: Vec<_> = (0..u64::from(task.threads)).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no peer panics")).collect()
    });
    let mut handle = set.handle();
    for key in 0..KEYS {
        let sum: i64 = changes.iter().map(|change| change[key as usize]).sum();
        let found = i64::from(handle.contains(&key));
        assert_eq!(sum, found, "{} as {}: {key}", peer.name, task.structure);
    }
}
