//! Cache lines that go from one CPU to another.
//!
//! One CPU writes to many lines; the other then runs through them, and each of its accesses depends
//! on the one before. On some processors a load of a changed line takes the line over, because a
//! CPU that reads changed data is likely to change it next. So after one load of each line this CPU
//! may have the only copy. Only when both CPUs have loaded the line since, do both have one.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::pair::{self, PingPong};
use super::sample::{Reading, Sample};
use super::topology::Distance;
use crate::failure::Failure;

const BATCHES: u32 = 400;
/// The number of lines in a chain: with 32 KiB they would fill a first-level cache.
const LINES: usize = 128;

/// Between two CPUs at this distance.
pub(super) fn measure(a: usize, b: usize, distance: Distance) -> Result<Vec<Reading>, Failure> {
    let kinds = [
        (Access::Load, "loads of lines that the other CPU has written to"),
        (Access::Rmw, "atomic additions to lines that the other CPU has written to"),
        (
            Access::RmwOfLoaded,
            "atomic additions to lines that the other CPU has written to and this one loaded",
        ),
        (Access::RmwOfShared, "atomic additions to lines of which both CPUs have a copy"),
    ];
    let reading = |(kind, what): (Access, &str)| {
        let name = format!("{}_{}", kind.name(), distance.name());
        chain([a, b], kind).map(|sample| sample.reading(name, what))
    };
    kinds.into_iter().map(reading).collect()
}

/// The first CPU's accesses to lines of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Load,
    Rmw,
    RmwOfLoaded,
    RmwOfShared,
}

impl Access {
    fn name(self) -> &'static str {
        match self {
            Self::Load => "load_modified",
            Self::Rmw => "rmw_modified",
            Self::RmwOfLoaded => "rmw_loaded",
            Self::RmwOfShared => "rmw_shared",
        }
    }
}

/// A cache line with the number of the next one. Two lines apart, because some CPUs fetch lines in
/// pairs.
#[repr(align(128))]
struct Link(AtomicU32);

fn links() -> Vec<Link> {
    let mut order: Vec<u32> = (0..LINES as u32).collect();
    let mut random = fastrand::Rng::with_seed(2);
    for place in (1..LINES).rev() {
        order.swap(place, random.usize(..place));
    }
    order.into_iter().map(|next| Link(AtomicU32::new(next))).collect()
}

// Relaxed throughout: the turns order one thread's accesses to the links before the other's; each
// method of `PingPong` names its partner.

/// Runs through all links; `access` gives the number of the next.
fn follow(links: &[Link], access: impl Fn(&AtomicU32) -> u32) {
    let end = (0..LINES).fold(0, |at, _| access(&links[at as usize].0));
    black_box(end);
}

fn chain(cpus: [usize; 2], kind: Access) -> Result<Sample, Failure> {
    let (links, ping_pong) = (links(), PingPong::new());
    let load = |link: &AtomicU32| link.load(Ordering::Relaxed);
    // Adds a zero that the compiler cannot know to be zero: it would make a load of such an
    // addition.
    let rmw = |link: &AtomicU32| link.fetch_add(black_box(0), Ordering::Relaxed);
    let first = || {
        let batch = |batch: u32| {
            ping_pong.wait(4 * batch + 1);
            if kind == Access::RmwOfShared {
                follow(&links, load);
            }
            ping_pong.pass(4 * batch + 2);
            ping_pong.wait(4 * batch + 3);
            if matches!(kind, Access::RmwOfLoaded | Access::RmwOfShared) {
                follow(&links, load);
            }
            let start = Instant::now();
            match kind {
                Access::Load => follow(&links, load),
                _ => follow(&links, rmw),
            }
            let ns = start.elapsed().as_nanos() as f64;
            ping_pong.pass(4 * batch + 4);
            ns / LINES as f64
        };
        (0..BATCHES).map(batch).collect()
    };
    let second = || {
        for batch in 0..BATCHES {
            ping_pong.wait(4 * batch);
            for link in &links {
                link.0.store(link.0.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            ping_pong.pass(4 * batch + 1);
            ping_pong.wait(4 * batch + 2);
            if kind == Access::RmwOfShared {
                follow(&links, load);
            }
            ping_pong.pass(4 * batch + 3);
        }
    };
    pair::run(cpus, first, second).map(Sample::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_form_one_cycle() {
        let links = links();
        let mut at = 0;
        let mut steps = 0;
        loop {
            at = links[at as usize].0.load(Ordering::Relaxed);
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, LINES);
    }
}
