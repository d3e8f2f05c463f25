//! The goals for indexes: a B+tree of versions beside the ordered maps of others that take no lock,
//! and on a simulated machine.

use std::time::Duration;

use manycore_measure::paired::{Better, Protocol, Rounds};
use manycore_measure::{Bound, Claim, Measurement};
use manycore_sim::model;

use super::Options;
use crate::failure::Failure;
use crate::index::simulated;
use crate::index::{self, Mix, Records, Task, TaskGrid};
use crate::popularity::Popularity;
use crate::scorecard::Scorecard;
use crate::structure::{self, NativeSamples};
use crate::unjudged::{Part, UnjudgedClaim};
use crate::wait_pool::Pooled;

/// The part with few records, and that with many.
pub(super) const NATIVE: [&str; 2] = ["index", "index-1m"];

/// The part on a simulated machine.
pub(super) const SIMULATED: &str = "index-simulated";

/// Ours.
const OWN: &str = "mvrlu";

/// Ordered maps of other libraries whose readers take no lock.
const RIVALS: [&str; 4] = ["scc-tree", "skiplist", "ferntree", "congee"];

/// What chains in buckets are on a simulated machine.
const CHAINS: &str = "rcu-mcs";

/// The part of the best index's throughput that must be reached, with few records and with many.
const BARS: [(Mix, [f64; 2]); 5] = [
    (Mix::YcsbA, [0.70, 0.80]),
    (Mix::YcsbB, [0.90, 0.85]),
    (Mix::YcsbC, [1.00, 0.95]),
    (Mix::YcsbE, [1.30, 1.10]),
    (Mix::YcsbF, [0.65, 0.85]),
];

const THREADS: [u32; 2] = [1, 2];

/// Measures one of the parts [`NATIVE`], and judges it.
pub(super) fn measure(options: &Options, name: &str, time: Duration) -> Result<Scorecard, Failure> {
    let size = usize::from(name != NATIVE[0]);
    let records = Records {
        popularity: Popularity::Zipf(0.99),
        seed: options.seed,
        ..Records::of([10_000, 1_000_000][size])
    };
    let workload = TaskGrid {
        syncs: vec![OWN.to_owned()],
        mixes: BARS.map(|(mix, _)| mix).to_vec(),
        threads: THREADS.to_vec(),
        records,
        ..TaskGrid::default()
    };
    let points = workload.points();
    let settings = index::Options {
        workload,
        rounds: Rounds::Within(time),
        progress: options.progress,
        ..index::Options::new(options.worker.clone())
    };
    let subjects = [OWN].iter().chain(&RIVALS).map(|name| (*name).to_owned()).collect();
    let samples = structure::contest(&settings, points, subjects)?;
    Ok(Scorecard {
        measurements: samples.measurements()?,
        claims: judge(name, size, &samples)?,
        failures: samples.failures(),
    })
}

fn judge(part: &str, size: usize, samples: &NativeSamples<Task>) -> Result<Vec<Claim>, Failure> {
    BARS.iter().map(|(mix, bars)| over_rivals(part, *mix, bars[size], samples)).collect()
}

/// Compares with each rival, and so with the best of them.
fn over_rivals(
    part: &str,
    mix: Mix,
    bar: f64,
    samples: &NativeSamples<Task>,
) -> Result<Claim, Failure> {
    let open = UnjudgedClaim {
        id: format!("{part}-{mix}"),
        text: format!("{part}, {mix}: {OWN} over the best of {}", RIVALS.join(", ")),
        bound: Bound::AtLeast(bar),
    };
    let mut parts = Vec::new();
    let places = THREADS.len() * RIVALS.len();
    for rival in RIVALS {
        for (number, point) in samples.points.iter().enumerate().filter(|(_, p)| p.mix == mix) {
            let throughput = |sync| samples.throughput(number, sync);
            let Some((own, base)) = throughput(OWN).zip(throughput(rival)) else {
                return Ok(open.missing(&format!("{rival} was not measured")));
            };
            let place = format!("{}: {rival}", threads(point));
            parts.push(Part::new(place, places, |confidence| {
                let protocol = Protocol { confidence, ..Protocol::new(Better::Higher) };
                protocol.compare(&base, &own).map(Pooled::from)
            })?);
        }
    }
    Ok(open.everywhere(&parts))
}

fn threads(point: &Task) -> String {
    let plural = if point.threads == 1 { "" } else { "s" };
    format!("{} thread{plural}", point.threads)
}

/// Shares of upserts that are simulated, in percent.
const UPSERTS: [f64; 3] = [5.0, 20.0, 50.0];

/// Simulates, and judges it.
pub(super) fn simulate(options: &Options) -> Result<Scorecard, Failure> {
    let mut found = Scorecard::default();
    let mut run = |structure: &str, sync: &str, popularity| {
        let ran = simulated_run(options, structure, sync, popularity)?;
        found.measurements.extend(ran.measurements.iter().cloned());
        found.failures.extend(ran.failures);
        Ok::<_, Failure>(ran.measurements)
    };
    let uniform = run("btree", OWN, Popularity::Uniform)?;
    let popular = run("btree", OWN, Popularity::Zipf(0.99))?;
    let chains = run("hash", CHAINS, Popularity::Zipf(0.99))?;
    for percent in UPSERTS {
        let value = |measurements: &[Measurement], threads: u32| {
            let is_meant =
                |record: &&Measurement| record.update == Some(percent) && record.threads == threads;
            measurements.iter().find(is_meant).map(|record| record.value)
        };
        let open = |id: &str, text: &str, bound| UnjudgedClaim {
            id: format!("{SIMULATED}-{id}-{percent}"),
            text: format!("simulated tree by {OWN}, {percent} % upserts: {text}"),
            bound: Bound::AtLeast(bound),
        };
        let scales = open("uniform", "448 threads over 56, all records alike", 4.0);
        let pair = value(&uniform, 448).zip(value(&uniform, 56));
        found.claims.push(of_ratio(scales, pair, OWN));
        let text = format!("over chains by {CHAINS}, 448 threads, zipf 0.99");
        let is_ahead = open("zipf", &text, 1.5);
        let pair = value(&popular, 448).zip(value(&chains, 448));
        found.claims.push(of_ratio(is_ahead, pair, &format!("{OWN} or {CHAINS}")));
    }
    Ok(found)
}

/// Simulates a mechanism with 56 and with 448 threads, with each share of updates and insertions.
fn simulated_run(
    options: &Options,
    structure: &str,
    sync: &str,
    popularity: Popularity,
) -> Result<crate::run_records::RunRecords, Failure> {
    let machine = model::find("xeon-8180-8x28x2-like")
        .map_err(|problem| Failure::Failed(problem.to_string()))?;
    simulated::run(&simulated::Options {
        workload: TaskGrid {
            structure: structure.to_owned(),
            syncs: vec![sync.to_owned()],
            mixes: UPSERTS.map(Mix::Upserts).to_vec(),
            threads: vec![56, 448],
            records: Records { popularity, seed: options.seed, ..Records::of(10_000) },
        },
        ..simulated::Options::new(machine, options.pool.clone())
    })
}

/// A claim about the ratio of two values, if both exist.
fn of_ratio(open: UnjudgedClaim, pair: Option<(f64, f64)>, what: &str) -> Claim {
    match pair {
        Some((own, base)) => {
            let ratio = own / base;
            let note = "simulated: without an interval".to_owned();
            open.once(Pooled { value: ratio, interval: Some((ratio, ratio)) }, note)
        }
        None => open.missing(&format!("{what} was not simulated")),
    }
}

#[cfg(test)]
mod tests {
    use manycore_measure::Judgement;

    use super::*;
    use crate::index::Slice;
    use crate::structure::StructureSlice;

    /// Claims about a run in which each index has these speeds, with noise of 2 %.
    fn claims(speed: impl Fn(&Task, &str) -> f64) -> Vec<Claim> {
        let mut random = fastrand::Rng::with_seed(1);
        let workload = TaskGrid {
            mixes: BARS.map(|(mix, _)| mix).to_vec(),
            threads: THREADS.to_vec(),
            ..TaskGrid::default()
        };
        let points = workload.points();
        let subjects: Vec<String> =
            [OWN].iter().chain(&RIVALS).map(|name| (*name).to_owned()).collect();
        let mut slice = |speed: f64| {
            let counts = vec![(speed * (1.0 + 0.02 * random.f64())) as u64];
            let used = StructureSlice { counts, elapsed_ns: 1e9, ..StructureSlice::default() };
            Slice { used, ..Slice::default() }
        };
        let mut at = |point: &Task| -> Vec<Vec<Slice>> {
            let of = |sync: &String| (0..20).map(|_| slice(speed(point, sync))).collect();
            subjects.iter().map(of).collect()
        };
        let slices = points.iter().map(&mut at).collect();
        judge("index", 0, &NativeSamples::<Task>::of(points, subjects.clone(), slices)).unwrap()
    }

    #[test]
    fn the_best_of_the_rivals_counts_where_it_is() {
        let claims = claims(|point, sync| match (sync, point.mix, point.threads) {
            (OWN, Mix::YcsbE, _) => 3e6,
            ("ferntree", Mix::YcsbC, 2) => 2e6,
            ("congee", Mix::YcsbA, 1) => 1.3e6,
            _ => 1e6,
        });
        let verdicts: Vec<_> = claims.iter().map(|claim| claim.verdict).collect();
        let [pass, fail] = [Judgement::Pass, Judgement::Fail];
        assert_eq!(verdicts, [pass, pass, fail, pass, pass], "{claims:?}");
        assert_eq!(
            (claims[2].id.as_str(), claims[2].note.as_str()),
            ("index-ycsb-c", "2 threads: ferntree")
        );
    }
}
