//! Crashes of a set by Romulus at every line that is written back and every wait, with any of the
//! lines on their way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use manycore_durable_simulated::persistence::{Line, Persistence, Simulated, WORDS};
use manycore_durable_simulated::romulus::Romulus;
use manycore_durable_simulated::romulus::copies::Copies;
use manycore_simulated::sync::atomic::Ordering;
use manycore_traits::{ConcurrentSet, SetHandle};

type Words = [u64; WORDS];
/// Lines by their addresses.
type Image = BTreeMap<usize, Words>;

/// Keeps the safe lines and those on their way, and the states that crashes would have left.
#[derive(Default)]
struct Recorder(Mutex<State>);

struct State {
    safe: Image,
    on_their_way: Vec<(usize, Words)>,
    images: Vec<Image>,
    random: fastrand::Rng,
}

impl Default for State {
    fn default() -> Self {
        let random = fastrand::Rng::with_seed(1);
        Self { safe: Image::new(), on_their_way: Vec::new(), images: Vec::new(), random }
    }
}

impl State {
    /// The possible states after a crash now: the safe lines, and any of those on their way.
    fn crash(&mut self) {
        for share in [0.0, 0.5, 1.0] {
            let mut image = self.safe.clone();
            for (line, words) in &self.on_their_way {
                if self.random.f64() < share {
                    image.insert(*line, *words);
                }
            }
            self.images.push(image);
        }
    }
}

impl Persistence for Recorder {
    fn write_back(&self, line: &Line) {
        let mut state = self.0.lock().unwrap();
        state.on_their_way.push((std::ptr::from_ref(line).addr(), line.words()));
        state.crash();
    }

    fn wait(&self) {
        let mut state = self.0.lock().unwrap();
        let on_their_way = std::mem::take(&mut state.on_their_way);
        state.safe.extend(on_their_way);
        state.crash();
    }
}

/// The lines of a set, as an image has them.
fn lines(set: &Romulus<Recorder>, image: &Image) -> Box<[Line]> {
    let of_line = |line: &Line| {
        let found = image.get(&std::ptr::from_ref(line).addr()).copied().unwrap_or_default();
        let new = Line::default();
        (0..WORDS).for_each(|word| new.0[word].store(found[word], Ordering::Relaxed));
        new
    };
    set.copies.lines().iter().map(of_line).collect()
}

/// The state after a crash; both copies are equal then.
fn recovered(set: &Romulus<Recorder>, image: &Image) -> BTreeSet<u64> {
    let copies = Copies::recover(lines(set, image), Simulated);
    let (_, both) = copies.lines().split_at(1);
    let (first, second) = both.split_at(both.len() / 2);
    assert!(first.iter().zip(second).all(|(a, b)| a.words() == b.words()), "the copies differ");
    set.chains.keys(&copies).into_iter().collect()
}

/// The same after crashes in the recovery.
fn recovered_twice(set: &Romulus<Recorder>, image: &Image) {
    let copies = Copies::recover(lines(set, image), Recorder::default());
    let found = set.chains.keys(&copies);
    for again in std::mem::take(&mut copies.persistence.0.lock().unwrap().images) {
        let left = lines(set, image);
        for (old, new) in left.iter().zip(copies.lines()) {
            let words = again.get(&std::ptr::from_ref(new).addr()).copied();
            let words = words.unwrap_or_else(|| old.words());
            (0..WORDS).for_each(|word| old.0[word].store(words[word], Ordering::Relaxed));
        }
        let twice = Copies::recover(left, Simulated);
        assert_eq!(set.chains.keys(&twice), found, "recovered twice");
    }
}

#[test]
fn a_crash_leaves_all_of_an_operation_or_nothing() {
    let set = Romulus::<Recorder>::new(3, 40, 1);
    let mut handle = ConcurrentSet::handle(&set);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut before, mut seen, mut images) = (BTreeSet::new(), [0, 0], 0);
    for step in 0..40 {
        let (key, inserts) = (random.u64(..20), random.bool());
        let mut after = before.clone();
        let expected = if inserts { after.insert(key) } else { after.remove(&key) };
        let changed = if inserts { handle.insert(key) } else { handle.remove(&key) };
        assert_eq!(changed, expected);
        let found = std::mem::take(&mut set.copies.persistence.0.lock().unwrap().images);
        images += found.len();
        for (place, image) in found.iter().enumerate() {
            let found_there = recovered(&set, image);
            assert!(found_there == before || found_there == after, "{place}: {found_there:?}");
            seen[usize::from(found_there == after)] += usize::from(before != after);
            if place % 16 == step % 16 {
                recovered_twice(&set, image);
            }
        }
        // What has returned stays.
        assert_eq!(recovered(&set, found.last().unwrap()), after);
        before = after;
    }
    assert!(images > 800 && seen[0] > 150 && seen[1] > 150, "{images} {seen:?}");
}
