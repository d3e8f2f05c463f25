//! A worker of `manycore bench set --against`, with the sets of liburcu and Concurrency Kit.
//!
//! `manycore` starts it for one of [`PEERS`], and finds it in its own directory. The sets that are
//! read without a lock are the [chains](manycore_bench::set::peers::chain) that are also used to
//! compare manycore's `rcu` with crossbeam-epoch: only the reclamation differs.

mod ck;
mod lfht;
mod urcu;

use std::ffi::c_void;

use manycore_bench::set::peers::Peer;
use manycore_bench::set::peers::chain::chained;
use manycore_bench::{set, worker};

/// The sets.
const PEERS: &[Peer] = &[
    Peer { name: "urcu-memb", structures: &["list", "hash"], make: chained::<urcu::Memb> },
    Peer { name: "urcu-qsbr", structures: &["list", "hash"], make: chained::<urcu::Qsbr> },
    Peer { name: "urcu-lfht", structures: &["hash"], make: lfht::table },
    Peer { name: "ck-epoch", structures: &["list", "hash"], make: chained::<ck::Epoch> },
    Peer { name: "ck-ht", structures: &["hash"], make: ck::table },
];

/// What a library needs in each node: two words.
#[derive(Default)]
#[repr(C)]
pub struct Header([usize; 2]);

/// Something of a library, which it synchronises itself.
#[derive(Clone, Copy)]
struct Opaque(*mut c_void);

// SAFETY: it is used through functions that any thread may call.
unsafe impl Send for Opaque {}
// SAFETY: the library synchronises accesses to its data, so several threads may use it at a time.
unsafe impl Sync for Opaque {}

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1) {
        Some(_) => worker::serve(vec![set::executor(PEERS)]),
        None => {
            eprintln!("manycore-bench-peers is started by `manycore bench set --against`");
            std::process::exit(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use manycore_bench::set::peers::{FOREIGN, exercise};

    use super::*;

    #[test]
    fn every_peer_is_a_set_for_many_threads() {
        PEERS.iter().for_each(exercise);
    }

    #[test]
    fn the_command_knows_them() {
        let own: Vec<_> = PEERS.iter().map(|peer| (peer.name, peer.structures)).collect();
        assert_eq!(own, FOREIGN);
    }
}
