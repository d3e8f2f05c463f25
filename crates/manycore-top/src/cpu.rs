//! CPU time of a program whose processes come and go.
//!
//! A process' own time ends with it, except for the time that its parent takes over by waiting for
//! it, including its children's time. So differences are computed for each process. If a parent has
//! taken over time of a process that was itself followed, only the part that was not seen before
//! counts. A process' activity after its last sample stays unknown if no parent takes its time
//! over.

use std::collections::HashMap;
use std::path::Path;

use manycore_profile::record::process_tree::Usage;

/// In user space and in the kernel, in seconds.
pub type Seconds = (f64, f64);

/// The CPU time of a program's processes.
#[derive(Default)]
pub struct CpuTimes {
    /// At the last sample.
    last: HashMap<u32, Usage>,
    total: Seconds,
}

impl CpuTimes {
    /// Samples the processes. One of them may be known to have ended with this CPU time. Returns
    /// the total until now, which never decreases.
    pub fn sample(&mut self, pids: &[u32], ended: Option<(u32, Seconds)>) -> Seconds {
        let mut now = readings(pids);
        // The children's part of it is unknown: it may be all of it.
        now.extend(ended.map(|(pid, all)| (pid, Usage { parent: 0, all, of_children: all })));
        self.take(now)
    }

    fn take(&mut self, now: HashMap<u32, Usage>) -> Seconds {
        let taken_over = self.taken_over(&now);
        let never = Usage::default();
        for (pid, usage) in &now {
            let last = self.last.get(pid).unwrap_or(&never);
            let known = taken_over.get(pid).copied().unwrap_or_default();
            let grown = |part: fn(Seconds) -> f64| {
                let children = (part(usage.of_children) - part(last.of_children)).max(0.0);
                (part(usage.all) - part(last.all) - part(known).min(children)).max(0.0)
            };
            self.total.0 += grown(|time| time.0);
            self.total.1 += grown(|time| time.1);
        }
        self.last = now;
        self.total
    }

    /// The last observations of processes that no longer exist, by the nearest ancestor that does.
    fn taken_over(&self, now: &HashMap<u32, Usage>) -> HashMap<u32, Seconds> {
        let mut sums: HashMap<u32, Seconds> = HashMap::new();
        for (_, gone) in self.last.iter().filter(|(pid, _)| !now.contains_key(pid)) {
            let mut ancestor = gone.parent;
            // Numbers that were used again could make a circle.
            for _ in 0..self.last.len() {
                match self.last.get(&ancestor) {
                    Some(usage) if !now.contains_key(&ancestor) => ancestor = usage.parent,
                    _ => break,
                }
            }
            let sum = sums.entry(ancestor).or_default();
            *sum = (sum.0 + gone.all.0, sum.1 + gone.all.1);
        }
        sums
    }
}

/// Reads all CPU times of one moment, so that no time is read both of a process and of the parent
/// that has taken it over.
fn readings(pids: &[u32]) -> HashMap<u32, Usage> {
    let mut pids = pids.to_vec();
    loop {
        let read = pids.iter().filter_map(|pid| Some((*pid, Usage::of(*pid)?))).collect();
        let before = pids.len();
        pids.retain(|pid| Path::new(&format!("/proc/{pid}")).exists());
        if pids.len() == before {
            return read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process with its parent, its own seconds outside of the kernel, and those of its children
    /// that have ended.
    fn process(pid: u32, parent: u32, own: f64, of_children: f64) -> (u32, Usage) {
        let usage =
            Usage { parent, all: (own + of_children, 0.0), of_children: (of_children, 0.0) };
        (pid, usage)
    }

    fn samples(samples: &[&[(u32, Usage)]]) -> Vec<f64> {
        let mut times = CpuTimes::default();
        samples.iter().map(|now| times.take(now.iter().copied().collect()).0).collect()
    }

    #[test]
    fn what_a_parent_takes_over_counts_once() {
        let grown = samples(&[
            &[process(1, 0, 1.0, 0.0), process(2, 1, 5.0, 0.0)],
            &[process(1, 0, 2.0, 7.0)],
            &[process(1, 0, 3.0, 7.0)],
        ]);
        assert_eq!(grown, [6.0, 9.0, 10.0], "two of the child's seconds were not seen before");
    }

    #[test]
    fn time_that_nobody_takes_over_holds_up_nobody_else() {
        let grown = samples(&[
            &[process(1, 0, 1.0, 0.0), process(2, 99, 50.0, 0.0), process(3, 1, 4.0, 0.0)],
            &[process(1, 0, 2.0, 0.0)],
            &[process(1, 0, 3.0, 0.0)],
        ]);
        assert_eq!(grown, [55.0, 56.0, 57.0]);
    }

    #[test]
    fn grandchildren_come_by_way_of_children() {
        let grown = samples(&[
            &[process(1, 0, 1.0, 0.0), process(2, 1, 1.0, 0.0), process(3, 2, 1.0, 0.0)],
            &[process(1, 0, 1.0, 4.0)],
        ]);
        assert_eq!(grown, [3.0, 5.0], "two seconds more of both together");
    }

    #[test]
    fn a_program_that_has_ended_has_what_is_known_of_it() {
        let mut times = CpuTimes::default();
        let (pid, first) = process(1, 0, 1.0, 0.0);
        times.take([(pid, first), process(2, 1, 2.0, 0.0)].into());
        // Both have gone; the first took over the second.
        assert_eq!(times.sample(&[], Some((1, (4.5, 1.5)))), (4.5, 1.5));
        assert_eq!(times.sample(&[], None), (4.5, 1.5));
        let mut unseen = CpuTimes::default();
        assert_eq!(unseen.sample(&[], Some((1, (4.5, 1.5)))), (4.5, 1.5));
    }
}
