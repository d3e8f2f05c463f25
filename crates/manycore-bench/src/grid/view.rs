//! The samples of a grid as one user of the locks sees them: as a library, or through the preload
//! library.

use manycore_measure::{Bound, duration};

use crate::campaign::{BASE, values};
use crate::contender;
use crate::lock::Point;
use crate::lock::campaign::Samples;
use crate::slice::Slice;
use crate::unjudged::UnjudgedClaim;
use crate::wait_pool::{Draw, Pooled, WaitPool};
use crate::worker::Through;
use manycore_measure::paired::{Better, Comparison, Median, Protocol, Unusable};

/// The samples of the peers, and of manycore's locks that were built in one way.
pub(super) struct View<'a> {
    samples: &'a Samples,
    way: Through,
}

impl<'a> View<'a> {
    pub fn new(samples: &'a Samples, way: Through) -> Self {
        Self { samples, way }
    }

    /// The name of the way.
    pub fn name(&self) -> &'static str {
        self.way.name()
    }

    pub fn points(&self) -> &'a [Point] {
        &self.samples.points
    }

    /// A claim about this way.
    pub fn open(&self, id: String, text: String, bound: Bound) -> UnjudgedClaim {
        let way = self.name();
        UnjudgedClaim { id: format!("{id}-{way}"), text: format!("{text}, {way}"), bound }
    }

    /// A point in words.
    pub fn label(&self, point: usize) -> String {
        let Point { threads, section, .. } = self.points()[point];
        let plural = if threads == 1 { "" } else { "s" };
        format!("{threads} thread{plural}, {}", duration(section.mean_ns).trim_end())
    }

    /// A lock that was measured without failure.
    pub fn lock(&self, name: &str) -> Option<usize> {
        self.locks().find(|subject| self.samples.candidates[*subject].lock == name)
    }

    /// The locks of this way, peers included.
    pub fn locks(&self) -> impl Iterator<Item = usize> {
        let seen = |subject: &usize| {
            let of = &self.samples.candidates[*subject];
            of.through == self.way || !contender::is_ours(&of.lock)
        };
        let measured = |subject: &usize| self.samples.at(0, *subject).is_some();
        (0..self.samples.candidates.len()).filter(seen).filter(measured)
    }

    /// A lock's name.
    pub fn name_of(&self, subject: usize) -> &'a str {
        &self.samples.candidates[subject].lock
    }

    /// Why a lock is not there.
    pub fn absent(&self, lock: &str) -> String {
        format!("{lock} is not in this run")
    }

    /// The points of each section length, fewest threads first.
    pub fn sections(&self) -> Vec<Vec<usize>> {
        let mut sections: Vec<Vec<usize>> = Vec::new();
        for (index, point) in self.points().iter().enumerate() {
            match sections
                .iter_mut()
                .find(|members| self.points()[members[0]].section == point.section)
            {
                Some(members) => members.push(index),
                None => sections.push(vec![index]),
            }
        }
        for members in &mut sections {
            members.sort_by_key(|point| self.points()[*point].threads);
        }
        sections
    }

    /// The length of a section in words, and its point with the most threads.
    pub fn section(&self, members: &[usize]) -> (String, usize) {
        let most = members[members.len() - 1];
        (duration(self.points()[most].section.mean_ns).trim_end().to_string(), most)
    }

    /// The one of these points at which a lock has its highest throughput.
    pub fn peak(&self, members: &[usize], subject: usize) -> usize {
        let median = |point: &usize| self.median(*point, subject, |_| true);
        let highest = members.iter().copied().max_by(|a, b| median(a).total_cmp(&median(b)));
        highest.unwrap_or(members[0])
    }

    fn slices(&self, point: usize, subject: usize) -> &'a [Slice] {
        self.samples.at(point, subject).unwrap_or_default()
    }

    /// Sections a second, by round.
    pub fn throughput(&self, point: usize, subject: usize) -> Vec<f64> {
        values(self.slices(point, subject), Slice::throughput)
    }

    /// The median of these rounds' throughput.
    pub fn median(&self, point: usize, subject: usize, rounds: impl Fn(usize) -> bool) -> f64 {
        let all = self.throughput(point, subject).into_iter().enumerate();
        let chosen: Vec<f64> =
            all.filter(|(round, _)| rounds(*round)).map(|(_, value)| value).collect();
        Median::of(&chosen).map_or(0.0, |median| median.value)
    }

    /// A lock's fairness over that of the base line.
    pub fn fairness_ratio(
        &self,
        point: usize,
        subject: usize,
        confidence: f64,
    ) -> Result<Comparison, Unusable> {
        let fairness = |subject| values(self.slices(point, subject), Slice::fairness);
        let protocol = Protocol { confidence, ..Protocol::new(Better::Lower) };
        protocol.compare(&fairness(BASE), &fairness(subject))
    }

    /// A lock's 99.9th percentile of waits over that of the base line.
    pub fn wait_ratio(&self, point: usize, subject: usize, confidence: f64) -> Option<Pooled> {
        let draw = Draw { confidence, seed: self.samples.seed };
        let pool = |subject| WaitPool::new(self.slices(point, subject));
        pool(subject).ratio(&pool(BASE), 0.999, draw)
    }
}
