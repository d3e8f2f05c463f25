//! The goals.

use manycore_measure::{Bound, Claim, Measurement};

use super::parts::{GROWING, RIVALS};
use crate::failure::Failure;
use crate::set::peers::is_foreign;
use crate::set::{Popularity, Task};
use crate::structure::NativeSamples;
use crate::unjudged::{Part, UnjudgedClaim};
use crate::wait_pool::Pooled;
use manycore_measure::paired::{Better, Protocol};

/// The results of MV-RLU's own implementation with 2 threads on a machine like the one on which the
/// goals were set, in operations a second: structure, updates in percent, throughput.
const ORIGINAL: [(&str, f64, f64); 6] = [
    ("list", 2.0, 0.57e6),
    ("list", 20.0, 0.36 * 0.84e6),
    ("list", 80.0, 0.44 * 0.53e6),
    ("hash", 2.0, 0.25 * 24e6),
    ("hash", 20.0, 0.14 * 20e6),
    ("hash", 80.0, 0.20 * 16e6),
];

/// Judges all claims about a part.
pub(super) fn judge(part: &str, samples: &NativeSamples<Task>) -> Result<Vec<Claim>, Failure> {
    let judge = Judge { part, samples };
    match part {
        "list" => {
            let mut claims = judge.against_rcu(&[(2.0, 0.8), (20.0, 0.7)])?;
            claims.push(judge.over("harris", "crossbeam-harris", 1.0, "", |_| true)?);
            Ok(claims)
        }
        "hash" => judge.against_rcu(&[(2.0, 0.7), (20.0, 0.5)]),
        "zipf" => Ok(vec![judge.popular()?]),
        _ => Ok(vec![judge.rivals()?]),
    }
}

/// The samples of a part.
struct Judge<'a> {
    part: &'a str,
    samples: &'a NativeSamples<Task>,
}

/// Throughputs to compare, round by round: the point, the base line's values, the candidate's
/// values.
type Pair = (String, Vec<f64>, Vec<f64>);

impl Judge<'_> {
    fn open(&self, id: &str, text: &str, bound: f64) -> UnjudgedClaim {
        UnjudgedClaim {
            id: format!("{}-{id}", self.part),
            text: format!("{}: {text}", self.part),
            bound: Bound::AtLeast(bound),
        }
    }

    fn label(point: &Task) -> String {
        let plural = if point.threads == 1 { "" } else { "s" };
        format!("{} thread{plural}, {} % updates", point.threads, point.update)
    }

    /// The throughputs of a mechanism and of another one, at the points for which `is_meant`
    /// returns true.
    fn pairs(&self, own: &str, base: &str, is_meant: impl Fn(&Task) -> bool) -> Vec<Pair> {
        let points = self.samples.points.iter().enumerate();
        let pair = |(number, point): (usize, &Task)| {
            let throughput = |sync| self.samples.throughput(number, sync);
            let place = format!("{}: {base}", Self::label(point));
            Some((place, throughput(base)?, throughput(own)?))
        };
        points.filter(|(_, point)| is_meant(point)).filter_map(pair).collect()
    }

    /// A claim that must hold for all of these pairs.
    fn close(&self, open: UnjudgedClaim, names: &[&str], pairs: &[Pair]) -> Result<Claim, Failure> {
        if let Some(name) = names.iter().find(|name| self.samples.throughput(0, name).is_none()) {
            let needs = if is_foreign(name) { ", and needs manycore-bench-peers" } else { "" };
            return Ok(open.missing(&format!("{name} was not measured{needs}")));
        }
        let part = |(place, base, own): &Pair| {
            Part::new(place.clone(), pairs.len(), |confidence| {
                let protocol = Protocol { confidence, ..Protocol::new(Better::Higher) };
                protocol.compare(base, own).map(Pooled::from)
            })
        };
        Ok(open.everywhere(&pairs.iter().map(part).collect::<Result<Vec<_>, _>>()?))
    }

    fn over(
        &self,
        own: &str,
        base: &str,
        bound: f64,
        place: &str,
        is_meant: impl Fn(&Task) -> bool,
    ) -> Result<Claim, Failure> {
        let id = format!("{own}-over-{base}{}", place.replace([' ', '%', ','], ""));
        let open = self.open(&id, &format!("{own} over {base}{place}"), bound);
        self.close(open, &[own, base], &self.pairs(own, base, is_meant))
    }

    /// Claims for lists and hash tables. The numbers are shares of updates, and the part of RCU's
    /// throughput that MV-RLU has to reach there.
    fn against_rcu(&self, shares: &[(f64, f64)]) -> Result<Vec<Claim>, Failure> {
        let mut claims = Vec::new();
        for peer in ["crossbeam-epoch", "urcu-memb", "urcu-qsbr"] {
            claims.push(self.over("rcu", peer, 1.0, "", |_| true)?);
        }
        for (update, bound) in shares {
            let place = format!(", {update} % updates");
            claims
                .push(self.over("mvrlu", "rcu", *bound, &place, |point| point.update == *update)?);
        }
        let crowded = |point: &Task| point.update == 80.0 && point.threads == 8;
        claims.push(self.over("mvrlu", "rcu", 1.2, ", 80 % updates, 8 threads", crowded)?);
        claims.push(self.original()?);
        claims.push(self.crowd_keeps("rlu")?);
        Ok(claims)
    }

    /// MV-RLU with 2 threads, relative to the known results of its own implementation.
    fn original(&self) -> Result<Claim, Failure> {
        let text = "mvrlu, 2 threads, over the original in C";
        let open = self.open("mvrlu-over-original", text, 2.5);
        let mut pairs = Vec::new();
        for (structure, update, known) in ORIGINAL {
            let is_meant = |point: &Task| {
                point.structure == structure && point.update == update && point.threads == 2
            };
            for (_, _, own) in self.pairs("mvrlu", "mvrlu", is_meant) {
                pairs.push((format!("{update} % updates"), vec![known; own.len()], own));
            }
        }
        self.close(open, &["mvrlu"], &pairs)
    }

    /// With 8 threads on fewer CPUs, at least half of the throughput with 2 threads.
    fn crowd_keeps(&self, sync: &str) -> Result<Claim, Failure> {
        let open = self.open(
            &format!("{sync}-crowd"),
            &format!("{sync} with 8 threads over itself with 2"),
            0.5,
        );
        let of = |threads| self.pairs(sync, sync, move |point| point.threads == threads);
        let pair = |((place, two, _), (_, eight, _)): (Pair, Pair)| (place, two, eight);
        let pairs: Vec<Pair> = of(2).into_iter().zip(of(8)).map(pair).collect();
        self.close(open, &[sync], &pairs)
    }

    /// A few of the keys get most of the requests.
    fn popular(&self) -> Result<Claim, Failure> {
        let open = self.open("mvrlu", "mvrlu with zipf keys over itself with uniform ones", 0.7);
        let of = |uniform| {
            let is_meant =
                move |point: &Task| (point.keys.popularity == Popularity::Uniform) == uniform;
            self.pairs("mvrlu", "mvrlu", is_meant)
        };
        let pair = |((place, uniform, _), (_, zipf, _)): (Pair, Pair)| (place, uniform, zipf);
        let pairs: Vec<Pair> = of(true).into_iter().zip(of(false)).map(pair).collect();
        self.close(open, &["mvrlu"], &pairs)
    }

    /// Compares with each rival, and so with the best of them.
    fn rivals(&self) -> Result<Claim, Failure> {
        let text = format!("{GROWING} over the best of {}", RIVALS.join(", "));
        let open = self.open("mvrlu-over-rivals", &text, 0.8);
        let pairs: Vec<Pair> =
            RIVALS.iter().flat_map(|rival| self.pairs(GROWING, rival, |_| true)).collect();
        self.close(open, &[GROWING, RIVALS[0], RIVALS[1], RIVALS[2]], &pairs)
    }
}

/// Judges the claims about reverse maps, from records with their ratios to the base line.
pub(super) fn of_reverse_maps(measurements: &[Measurement]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for sync in ["ldu", "ldu-per-core"] {
        for (update, bound) in [(100.0, 1.5), (50.0, 0.8)] {
            let open = UnjudgedClaim {
                id: format!("rmap-{sync}-{update}"),
                text: format!("rmap: {sync} over lock:adaptive, 8 threads, {update} % updates"),
                bound: Bound::AtLeast(bound),
            };
            let is_meant = |record: &&Measurement| {
                record.mechanism.name() == sync && record.update == Some(update)
            };
            let ratio = measurements.iter().find(is_meant).and_then(|r| r.metrics.get("ratio"));
            claims.push(match ratio {
                Some(ratio) => {
                    let interval = ratio.low.zip(ratio.high);
                    open.once(Pooled { value: ratio.value, interval }, "fresh objects".to_owned())
                }
                None => open.missing(&format!("{sync} was not measured")),
            });
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use manycore_measure::Judgement;

    use super::*;
    use crate::goals::parts;
    use crate::structure::StructureSlice;

    /// The claim about a run of a part with these speeds, in operations a second, and noise of 2 %.
    fn claim(part: &str, id: &str, speed: impl Fn(&Task, &str) -> f64) -> Claim {
        let plan = parts::of_sets(part, false);
        let mut random = fastrand::Rng::with_seed(1);
        let mut slice = |speed: f64| StructureSlice {
            counts: vec![(speed * (1.0 + 0.02 * random.f64())) as u64],
            elapsed_ns: 1e9,
            ..StructureSlice::default()
        };
        let mut at = |point: &Task| -> Vec<Vec<StructureSlice>> {
            let of = |sync: &String| (0..20).map(|_| slice(speed(point, sync))).collect();
            plan.mechanisms.iter().map(of).collect()
        };
        let slices = plan.points.iter().map(&mut at).collect();
        let samples =
            NativeSamples::<Task>::of(plan.points.clone(), plan.mechanisms.clone(), slices);
        let mut claims = judge(part, &samples).unwrap().into_iter();
        claims.find(|claim| claim.id == id).unwrap_or_else(|| panic!("no claim {id}"))
    }

    #[test]
    fn one_bad_point_breaks_a_goal_about_all() {
        let slow_at_8 = |point: &Task, sync: &str| match (sync, point.threads) {
            ("rcu", 8) => 0.5e6,
            _ => 1e6,
        };
        let broken = claim("list", "list-rcu-over-crossbeam-epoch", slow_at_8);
        assert_eq!(broken.verdict, Judgement::Fail, "{broken:?}");
        assert!(broken.note.starts_with("8 threads"), "{broken:?}");
        let kept = claim("list", "list-harris-over-crossbeam-harris", |_, sync| {
            if sync == "harris" { 2e6 } else { 1e6 }
        });
        assert_eq!(kept.verdict, Judgement::Pass, "{kept:?}");
    }

    #[test]
    fn the_best_of_the_rivals_counts() {
        let speed =
            |best: f64| move |_: &Task, sync: &str| if sync == "papaya" { best } else { 1e6 };
        assert_eq!(claim("100k", "100k-mvrlu-over-rivals", speed(1.1e6)).verdict, Judgement::Pass);
        let beaten = claim("100k", "100k-mvrlu-over-rivals", speed(2e6));
        assert_eq!(beaten.verdict, Judgement::Fail);
        assert!(beaten.note.ends_with("papaya"), "{beaten:?}");
    }

    #[test]
    fn what_is_not_there_is_not_judged() {
        let absent = claim("hash", "hash-rcu-over-urcu-qsbr", |_, _| 1e6);
        assert_eq!((absent.verdict, absent.value), (Judgement::Undecided, None));
        assert!(absent.note.contains("manycore-bench-peers"), "{absent:?}");
    }

    #[test]
    fn the_original_is_two_and_a_half_times_slower() {
        let verdict = |times: f64| {
            let known = move |point: &Task| {
                let of_point = |(structure, update, _): &&(&str, f64, f64)| {
                    point.structure == *structure && point.update == *update
                };
                ORIGINAL.iter().find(of_point).map_or(1e6, |(_, _, known)| *known)
            };
            claim("hash", "hash-mvrlu-over-original", move |point, _| times * known(point)).verdict
        };
        assert_eq!((verdict(2.6), verdict(2.3)), (Judgement::Pass, Judgement::Fail));
    }
}
