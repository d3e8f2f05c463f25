//! Cache lines that go from one CPU to another.
//!
//! In a ping-pong the one that waits polls with loads. Each message then costs two transfers: the writer takes the line
//! from the poller, who has a copy, and the poller's next load takes it back. So the reading is half of one way, and
//! a quarter of the round trip.
//!
//! The chains tell the kinds of transfers apart. One CPU writes to many lines; the other then runs through them, each
//! access depending on the one before it.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::pair::{self, Turns};
use super::sample::{Reading, Sample};
use super::topology::Distance;
use crate::failure::Failure;

const BATCHES: u32 = 400;
/// Round trips of a batch of the ping-pong.
const TRIPS: u32 = 500;
/// Lines of a chain: 32 KiB would be a whole first-level cache.
const LINES: usize = 128;

/// Between two CPUs at this distance.
pub(super) fn measure(a: usize, b: usize, distance: Distance) -> Result<Vec<Reading>, Failure> {
    let name = |what: &str| format!("{what}_{}", distance.name());
    let ping_pong = ping_pong([a, b])?;
    let mut readings = vec![ping_pong.reading(
        name("transfer"),
        format!("a quarter of a round trip of a ping-pong, {}", distance.describe()),
    )];
    for (kind, what) in [
        (Access::Load, "loads of lines that the other CPU has written to"),
        (Access::Rmw, "atomic additions to lines that the other CPU has written to"),
        (Access::Upgrade, "atomic additions to lines of which both CPUs have a copy"),
    ] {
        let sample = chain([a, b], kind)?;
        readings.push(sample.reading(name(kind.name()), what));
    }
    Ok(readings)
}

fn ping_pong(cpus: [usize; 2]) -> Result<Sample, Failure> {
    let turns = Turns::new();
    let all = 2 * TRIPS * BATCHES;
    let first = || {
        let batch = |batch: u32| {
            let start = Instant::now();
            for trip in batch * TRIPS..(batch + 1) * TRIPS {
                turns.wait(2 * trip);
                turns.pass(2 * trip + 1);
            }
            start.elapsed().as_nanos() as f64 / f64::from(4 * TRIPS)
        };
        let values = (0..BATCHES).map(batch).collect();
        turns.wait(all);
        values
    };
    let second = || {
        for turn in (1..all).step_by(2) {
            turns.wait(turn);
            turns.pass(turn + 1);
        }
    };
    pair::run(cpus, first, second).map(Sample::of)
}

/// What the first CPU does to lines of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Load,
    Rmw,
    Upgrade,
}

impl Access {
    fn name(self) -> &'static str {
        match self {
            Self::Load => "load_modified",
            Self::Rmw => "rmw_modified",
            Self::Upgrade => "rmw_shared",
        }
    }
}

/// A cache line that says which is next. Two lines apart, because some CPUs fetch lines in pairs.
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

// Relaxed throughout: the turns order what one thread does to the links before what the other does; each `Turns` method
// names its partner.

/// Runs through all links; `access` gives the number of the next.
fn follow(links: &[Link], access: impl Fn(&AtomicU32) -> u32) {
    let end = (0..LINES).fold(0, |at, _| access(&links[at as usize].0));
    black_box(end);
}

fn chain(cpus: [usize; 2], kind: Access) -> Result<Sample, Failure> {
    let (links, turns) = (links(), Turns::new());
    let load = |link: &AtomicU32| link.load(Ordering::Relaxed);
    let rmw = |link: &AtomicU32| link.fetch_add(0, Ordering::Relaxed);
    let first = || {
        let batch = |batch: u32| {
            turns.wait(2 * batch + 1);
            if kind == Access::Upgrade {
                follow(&links, load);
            }
            let start = Instant::now();
            match kind {
                Access::Load => follow(&links, load),
                Access::Rmw | Access::Upgrade => follow(&links, rmw),
            }
            let ns = start.elapsed().as_nanos() as f64;
            turns.pass(2 * batch + 2);
            ns / LINES as f64
        };
        (0..BATCHES).map(batch).collect()
    };
    let second = || {
        for batch in 0..BATCHES {
            turns.wait(2 * batch);
            for link in &links {
                link.0.store(link.0.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            turns.pass(2 * batch + 1);
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
