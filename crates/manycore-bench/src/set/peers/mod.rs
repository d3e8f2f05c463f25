//! Sets of other libraries, as peers to compare with: what a program would use otherwise.
//!
//! | name | what it is |
//! |---|---|
//! | `papaya`, `scc`, `scc-index`, `dashmap` | `HashMap`, `HashSet`, `HashIndex`, `DashSet` |
//! | `scc-tree`, `crossbeam-skiplist` | ordered: scc's `TreeIndex`, crossbeam's skip list |
//! | `parking_lot-mutex`, `parking_lot-rwlock` | std's `HashSet` or `BTreeSet` under a lock |
//! | `crossbeam-epoch` | the [`chain`] of `rcu`, in a domain of crossbeam-epoch |
//! | `crossbeam-harris` | Harris' list, in a domain of crossbeam-epoch |
//!
//! The sets of C libraries are in a program of their own, so that this one builds without those
//! libraries: [`FOREIGN`].
//!
//! Each set is used as its documentation says, but with the hash function of `hasher`. The default
//! hash functions withstand keys that an attacker chooses, and take longer than a look-up.

pub mod chain;
mod epoch;
mod exercise;
mod harris;
mod hasher;
mod maps;
mod skiplist;

pub use exercise::exercise;

use super::contenders::AnySet;
use super::task::Task;
use crate::failure::Failure;

/// A set of another library.
pub struct Peer {
    /// Its name for `--against`.
    pub name: &'static str,
    /// The structures with which it can compete.
    pub structures: &'static [&'static str],
    /// Makes an empty set.
    pub make: fn(&Task) -> Box<dyn AnySet>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Peer").field(&self.name).finish()
    }
}

/// The peers of this crate.
pub(crate) const PEERS: &[Peer] = &[
    Peer { name: "papaya", structures: &["hash"], make: maps::papaya },
    Peer { name: "scc", structures: &["hash"], make: maps::scc },
    Peer { name: "scc-index", structures: &["hash"], make: maps::scc_index },
    Peer { name: "dashmap", structures: &["hash"], make: maps::dashmap },
    Peer { name: "scc-tree", structures: &["list", "bst", "btree"], make: maps::scc_tree },
    Peer {
        name: "crossbeam-skiplist",
        structures: &["list", "bst", "btree"],
        make: skiplist::list,
    },
    Peer {
        name: "parking_lot-mutex",
        structures: &["hash", "bst", "btree"],
        make: maps::under_mutex,
    },
    Peer {
        name: "parking_lot-rwlock",
        structures: &["hash", "bst", "btree"],
        make: maps::under_rwlock,
    },
    Peer { name: "crossbeam-epoch", structures: &["list", "hash"], make: epoch::chained },
    Peer { name: "crossbeam-harris", structures: &["list"], make: harris::list },
];

/// The peers from C libraries, with the structures with which they can compete. The program
/// `manycore-bench-peers` has them.
pub const FOREIGN: &[(&str, &[&str])] = &[
    ("urcu-memb", &["list", "hash"]),
    ("urcu-qsbr", &["list", "hash"]),
    ("urcu-lfht", &["hash"]),
    ("ck-epoch", &["list", "hash"]),
    ("ck-ht", &["hash"]),
];

/// The end of the message if that program is missing.
const FOREIGN_MISSING: &str = "is of a C library, and the program manycore-bench-peers is not beside this one: run \
    `apt-get install liburcu-dev libck-dev`, then `cargo build --release -p manycore-bench-peers --features c-libraries`";

/// Whether a name is that of a set of a C library.
pub(crate) fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|(foreign, _)| *foreign == name)
}

/// Makes an empty set of a peer of this crate or of `more`; `None` if no peer fits the task.
pub(crate) fn make(task: &Task, more: &[Peer]) -> Option<Box<dyn AnySet>> {
    let stands_for =
        |peer: &&Peer| peer.name == task.sync && peer.structures.contains(&task.structure.as_str());
    PEERS.iter().chain(more).find(stands_for).map(|peer| (peer.make)(task))
}

/// The names of all peers of a structure, those of C libraries included.
pub(crate) fn names(structure: &str) -> Vec<&'static str> {
    let all = PEERS.iter().map(|peer| (peer.name, peer.structures)).chain(FOREIGN.iter().copied());
    all.filter(|(_, structures)| structures.contains(&structure)).map(|(name, _)| name).collect()
}

/// Checks that the benchmark can compare a structure with these peers.
pub(crate) fn check(wanted: &[String], structure: &str, foreign: bool) -> Result<(), Failure> {
    let known = names(structure);
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(Failure::Usage(format!(
            "no {structure} of others is called `{unknown}`: choose from {known}"
        )));
    }
    match wanted.iter().find(|name| is_foreign(name) && !foreign) {
        Some(name) => Err(Failure::Usage(format!("{name} {FOREIGN_MISSING}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_a_set_for_many_threads() {
        PEERS.iter().for_each(exercise);
    }

    #[test]
    fn errors_name_peers_that_cannot_be_measured() {
        let refusal =
            |name: &str, structure, foreign| match check(&[name.into()], structure, foreign) {
                Err(Failure::Usage(fault)) => fault,
                other => panic!("{other:?}"),
            };
        let unknown = refusal("papaia", "hash", true);
        assert!(unknown.contains("`papaia`") && unknown.contains("papaya, scc"), "{unknown}");
        assert!(refusal("papaya", "list", true).contains("crossbeam-harris"));
        assert!(refusal("urcu-qsbr", "list", false).contains("apt-get install liburcu-dev"));
        assert!(check(&["urcu-qsbr".into()], "list", true).is_ok());
    }
}
