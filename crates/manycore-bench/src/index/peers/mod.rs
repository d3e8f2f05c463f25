//! Indexes of other projects, for comparison with the library's: the ones that a program would use
//! otherwise.
//!
//! | structure | name | what it is |
//! |---|---|---|
//! | `btree` | `scc-tree` | scc's `TreeIndex` |
//! | `btree` | `skiplist` | crossbeam's `SkipMap` |
//! | `btree` | `ferntree` | ferntree's `Tree`, a B+tree with optimistic readers |
//! | `btree`, `art` | `congee` | congee's tree over the bytes of keys (ART), likewise |
//! | `btree` | `rwlock` | the standard library's `BTreeMap` under `parking_lot`'s `RwLock` |
//! | `btree` | `shards` | 64 of these, each for a part of the keys |
//! | `hash` | `papaya`, `scc`, `dashmap` | the hash maps of these crates |
//!
//! Each is used as its documentation describes; hash maps use foldhash, like manycore's.

mod hashed;
mod locked;
mod ordered;

use super::any_index::{Abilities, Contender, for_kinds};

/// All of them.
pub(crate) const CONTENDERS: &[Contender] = &[
    Contender {
        name: "scc-tree",
        structure: "btree",
        abilities: Abilities::ALL.in_two_steps(),
        make: |task| for_kinds!(task, K, V => ordered::SccTree::<K, V>::default()),
    },
    Contender {
        name: "skiplist",
        structure: "btree",
        // https://github.com/crossbeam-rs/crossbeam/issues/1023
        abilities: Abilities { misses: true, ..Abilities::ALL.in_two_steps() },
        make: |task| for_kinds!(task, K, V => ordered::Skiplist::<K, V>::default()),
    },
    Contender {
        name: "ferntree",
        structure: "btree",
        abilities: Abilities { fields: false, ..Abilities::ALL },
        make: ordered::ferntree,
    },
    Contender {
        name: "congee",
        structure: "btree",
        abilities: Abilities::ALL.of_numbers(),
        make: |_| Box::new(ordered::Congee::default()),
    },
    Contender {
        name: "congee",
        structure: "art",
        abilities: Abilities::ALL.of_numbers(),
        make: |_| Box::new(ordered::Congee::default()),
    },
    Contender {
        name: "rwlock",
        structure: "btree",
        abilities: Abilities::ALL,
        make: |task| for_kinds!(task, K, V => locked::Locked::<K, V, 1>::default()),
    },
    Contender {
        name: "shards",
        structure: "btree",
        abilities: Abilities::ALL,
        make: |task| for_kinds!(task, K, V => locked::Locked::<K, V, 64>::default()),
    },
    Contender {
        name: "papaya",
        structure: "hash",
        abilities: Abilities::UNORDERED,
        make: |task| for_kinds!(task, K, V => hashed::Papaya::<K, V>::new(task)),
    },
    Contender {
        name: "scc",
        structure: "hash",
        abilities: Abilities::UNORDERED,
        make: |task| for_kinds!(task, K, V => hashed::Scc::<K, V>::new(task)),
    },
    Contender {
        name: "dashmap",
        structure: "hash",
        abilities: Abilities::UNORDERED,
        make: |task| for_kinds!(task, K, V => hashed::Dash::<K, V>::new(task)),
    },
];
