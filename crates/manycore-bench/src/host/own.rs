//! Operations of a single CPU on lines in its own cache.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use manycore::sync::{CachePadded, clock, hint};

use super::sample::{Reading, Sample, batches, ns_per_tick};
use super::{not_pinned, walk};
use crate::cpus;
use crate::failure::Failure;

const BATCHES: usize = 300;
const OPERATIONS: u32 = 4_096;

/// On the given CPU.
pub(super) fn measure(cpu: usize) -> Result<Vec<Reading>, Failure> {
    let run = move || {
        cpus::pin(cpu).map_err(not_pinned)?;
        Ok(readings())
    };
    walk::on_its_own_thread(run)
}

fn readings() -> Vec<Reading> {
    let line = CachePadded(AtomicU64::new(0));
    let repeat = |operation: &dyn Fn()| {
        batches(BATCHES, OPERATIONS, || (0..OPERATIONS).for_each(|_| operation()))
    };
    // Relaxed throughout: one thread.
    let rmw = repeat(&|| _ = black_box(line.fetch_add(1, Ordering::Relaxed)));
    // SeqCst: the fence is what is measured; it orders nothing here.
    let fences = repeat(&|| fence(Ordering::SeqCst));
    let pause = repeat(&hint::spin_loop);
    let now = repeat(&|| _ = black_box(clock::now()));
    let random = branches(|random, _| random.bool());
    let regular = branches(|_, place| place % 2 == 0);
    let per_tick = ns_per_tick();
    let tick = Reading {
        name: "tick".into(),
        value: per_tick,
        low: per_tick,
        high: per_tick,
        what: "the counter against the monotonic clock, over 50 ms".into(),
    };
    vec![
        rmw.reading("rmw_own", "4096 atomic additions to a line that only this CPU uses"),
        fences.reading("fence", "4096 fences without a store on its way"),
        pause.reading("pause", "4096 turns of `spin_loop`"),
        now.reading("clock_read", "4096 reads of the counter"),
        random.reading("branch_random", "branches that go one way or the other at random"),
        regular.reading("branch_regular", "branches that go one way and the other in turns"),
        tick,
    ]
}

/// Branches whose directions are read from memory, a byte for each. There are more of them than a
/// core can learn.
fn branches(way: impl Fn(&mut fastrand::Rng, usize) -> bool) -> Sample {
    const BRANCHES: usize = 1 << 16;
    let mut random = fastrand::Rng::with_seed(1);
    let ways: Vec<bool> = (0..BRANCHES).map(|place| way(&mut random, place)).collect();
    batches(BATCHES / 5, BRANCHES as u32, || {
        for way in &ways {
            if *way {
                black_box(()); // so that it is a branch
            }
        }
    })
}
