//! What threads that contend for locks do: a grid of points, for every machine alike.

use crate::campaign::Point;
use crate::failure::Failure;
use crate::work::Length;

/// The most threads that a point may have.
pub(crate) const MOST_THREADS: u32 = 4_096;

/// A grid of points.
pub(crate) struct Workload<'a> {
    pub threads: &'a [u32],
    pub lock_count: u32,
    pub sections: &'a [Length],
    /// Time between two sections; `None` means exponential with twice the mean of the section.
    pub outside: Option<Length>,
    pub reads: f64,
}

impl Workload<'_> {
    /// Whether it makes sense.
    pub fn check(&self) -> Result<(), Failure> {
        let lengths = || self.sections.iter().chain(&self.outside);
        let faults = [
            (self.threads.is_empty(), "no thread counts: give some, such as 1,2,4".to_string()),
            (
                self.threads.iter().any(|count| !(1..=MOST_THREADS).contains(count)),
                format!("a thread count is not between 1 and {MOST_THREADS}"),
            ),
            (
                self.sections.is_empty(),
                "no section lengths: give some, such as 50ns,1us".to_string(),
            ),
            (
                lengths().any(|length| !(0.0..=1e9).contains(&length.mean_ns)),
                "a section or outside length is not between 0 and one second".to_string(),
            ),
            (
                !(0.0..=100.0).contains(&self.reads),
                "the read share is not between 0 and 100 %".to_string(),
            ),
            (
                !(1..=1_000_000).contains(&self.lock_count),
                "the number of locks is not between 1 and a million".to_string(),
            ),
        ];
        match faults.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, fault)) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    /// Each section with each number of threads.
    pub fn points(&self) -> Vec<Point> {
        let point = |section: &Length, threads: &u32| Point {
            threads: *threads,
            locks: self.lock_count,
            section: *section,
            outside: self.outside.unwrap_or(Length::exponential(2.0 * section.mean_ns)),
            reads: self.reads,
        };
        let of_section = |section| self.threads.iter().map(move |threads| point(section, threads));
        self.sections.iter().flat_map(of_section).collect()
    }
}
