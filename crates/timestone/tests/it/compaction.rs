//! Compacting a store: the same contents, in less room.

use std::sync::Arc;

use fastrand::Rng;
use timestone::device::Simulated;
use timestone::{
    Durability, Error, Map, Options, OrderedMap, Queue, ReadOnly, Set, Store, offline,
};

use crate::store::{open, options};

/// One structure of each kind.
struct Structures {
    map: Map<u64, [u64; 5]>,
    ordered: OrderedMap<[u64; 2], u32>,
    set: Set<u16>,
    queue: Queue<u64>,
}

/// What is in them.
type Contents = (Vec<(u64, [u64; 5])>, Vec<([u64; 2], u32)>, Vec<u16>, Vec<u64>);

impl Structures {
    fn of(store: &Store) -> Self {
        Self {
            map: store.map("map").unwrap(),
            ordered: store.ordered_map("ordered").unwrap(),
            set: store.set("set").unwrap(),
            queue: store.queue("queue").unwrap(),
        }
    }

    fn change(&self, store: &Store, rng: &mut Rng, keys: u64, one_in: u64) {
        let mut me = store.register().unwrap();
        for key in 0..keys {
            let stays = rng.u64(0..one_in) == 0;
            me.run_with(Durability::EVENTUAL, |tx| {
                self.map.insert(tx, key, [key; 5])?;
                self.ordered.insert(tx, [key, 1], key as u32)?;
                self.set.insert(tx, key as u16)?;
                self.queue.push(tx, key)
            })
            .unwrap();
            if !stays {
                me.run_with(Durability::EVENTUAL, |tx| {
                    self.map.remove(tx, &key)?;
                    self.ordered.remove(tx, &[key, 1])?;
                    self.set.remove(tx, &(key as u16))?;
                    self.queue.pop(tx).map(drop)
                })
                .unwrap();
            }
        }
    }

    fn contents(disk: &Simulated) -> Contents {
        let store = ReadOnly::open_on(Arc::new(disk.clone()), options()).unwrap();
        let (mut map, mut set) = (Vec::new(), Vec::new());
        store.map("map").unwrap().for_each(&store, |key, value| map.push((key, value)));
        store.set("set").unwrap().for_each(&store, |key| set.push(key));
        map.sort_unstable();
        set.sort_unstable();
        let ordered: OrderedMap<_, _> = store.ordered_map("ordered").unwrap();
        let queue: Queue<_> = store.queue("queue").unwrap();
        (map, ordered.range(&store, ..).collect(), set, queue.iter(&store).collect())
    }
}

fn store(keys: u64, one_in: u64) -> Simulated {
    let disk = Simulated::new();
    let store = open(&disk);
    Structures::of(&store).change(&store, &mut Rng::with_seed(keys), keys, one_in);
    store.close().unwrap();
    disk
}

#[test]
fn a_compacted_store_has_the_same_contents_and_goes_on() {
    for (keys, one_in) in [(0, 1), (1, 1), (300, 1), (3000, 30), (3000, 4000)] {
        let disk = store(keys, one_in);
        let before = Structures::contents(&disk);
        let (from, to) = offline::compact_on(Arc::new(disk.clone())).unwrap();
        assert!(to.objects <= from.objects && to.heap_bytes <= from.heap_bytes, "{from:?} {to:?}");
        if one_in == 30 {
            assert!(to.objects < from.objects, "{from:?} {to:?}");
        }
        assert_eq!(Structures::contents(&disk), before, "{keys}");
        let again = offline::compact_on(Arc::new(disk.clone())).unwrap();
        assert_eq!(again, (to, to), "nothing is left to be done");
        let store = open(&disk);
        let structures = Structures::of(&store);
        let len = store.register().unwrap().read(|now| structures.map.len(now));
        assert_eq!(len, before.0.len());
        structures.change(&store, &mut Rng::with_seed(7), 500, 3);
        store.close().unwrap();
        let (map, ordered, ..) = Structures::contents(&disk);
        assert!(map.len() == ordered.len() && map.len() >= before.0.len() / 2);
    }
}

#[test]
fn a_cut_while_a_store_is_compacted_leaves_its_contents() {
    let disk = store(60, 4).survivor();
    let before = Structures::contents(&disk);
    offline::compact_on(Arc::new(disk.clone())).unwrap();
    let mut rng = Rng::with_seed(1);
    disk.recording().cuts(0, |_, cut| {
        cut.images(&mut rng, 40, true, |left| assert_eq!(Structures::contents(&left), before));
    });
}

#[test]
fn a_directory_is_compacted_and_copied() {
    let directory = tempfile::tempdir().unwrap();
    let [path, copy] = ["store", "copy"].map(|name| directory.path().join(name));
    assert!(matches!(offline::compact(&path), Err(Error::Io { .. })), "no store");
    assert!(matches!(offline::backup(&path, &copy), Err(Error::Io { .. })), "no store");
    assert!(!copy.exists(), "nothing is made");
    let store = Store::open_with(&path, options()).unwrap();
    let map: Map<u64, [u64; 100]> = store.map("values").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..300 {
        me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, key, [key; 100])).unwrap();
    }
    store.checkpoint().unwrap();
    for key in (0..300).filter(|key| key % 30 != 7) {
        me.run_with(Durability::EVENTUAL, |tx| map.remove(tx, &key)).unwrap();
    }
    assert!(matches!(offline::compact(&path), Err(Error::Locked(_))));
    drop(me);
    store.close().unwrap();
    let (from, to) = offline::compact(&path).unwrap();
    assert!(to.heap_bytes < from.heap_bytes, "{from:?} {to:?}");
    assert_eq!(offline::backup(&path, &copy).unwrap(), to);
    let existing = offline::backup(&path, &copy).unwrap_err().to_string();
    assert!(existing.contains("where a store is"), "{existing}");
    for path in [path, copy] {
        let store = Store::open_with(&path, Options::default()).unwrap();
        let map: Map<u64, [u64; 100]> = store.map("values").unwrap();
        let found = store.register().unwrap().read(|now| (map.len(now), map.get(now, &7)));
        assert_eq!(found, (10, Some([7; 100])));
    }
}

#[test]
fn objects_of_the_programs_own_are_not_moved() {
    let disk = Simulated::new();
    let store = open(&disk);
    store.root::<[u64; 3]>("own").unwrap();
    store.close().unwrap();
    let error = offline::compact_on(Arc::new(disk)).unwrap_err();
    assert!(matches!(&error, Error::Schema { name, .. } if name == "own"), "{error}");
}
