//! The meaning of a run's samples: each stack has a part, and each part, function and thread its
//! share.

use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use super::{Calls, Kept, MAPS_MAX, STACKS_MAX, Samples, spinning};
use crate::analyze::names::modules::Modules;
use crate::analyze::names::symbols::{Symbols, name_of};
use crate::analyze::process::ProcessStats;
use crate::profile::{
    CpuSamples, Frame, Part, SampleSource, SampledFunction, SampledStack, SampledThread, Shares,
};

/// This many are shown of each.
const THREADS_SHOWN: usize = 512;
const FUNCTIONS_SHOWN: usize = 100;
const SPINS_SHOWN: usize = 50;
const STACKS_SHOWN: usize = 250;

impl Samples {
    /// Finds the names of calls, and divides the time. `over_time` is the length of an interval in
    /// seconds, and the number of intervals.
    pub(crate) fn divide(
        self,
        stats: &[ProcessStats],
        symbols: &mut Symbols,
        over_time: (f64, usize),
    ) -> CpuSamples {
        let noted = self.noted(stats.iter().map(|one| (one.pid, &*one.modules)));
        let mut sums = vec![Sum::default(); self.stacks.len()];
        self.kept.iter().for_each(|one| sums[one.stack as usize].add(one));
        let all: f64 = sums.iter().map(|sum| sum.weight).sum();
        let mut parts = vec![Part::Program; sums.len()];
        let mut functions: HashMap<(String, String, Part), Sum> = HashMap::new();
        // Calls of one meaning together, by a hash: their addresses differ with each instruction of
        // a loop.
        let mut alike: HashMap<u64, (Part, &Calls, Sum)> = HashMap::new();
        for (calls, number) in self.stacks.iter().filter(|(_, at)| sums[**at as usize].samples > 0)
        {
            let (part, telling, frames) = self.look_up(calls, &noted, symbols);
            parts[*number as usize] = part;
            let unknown = || ("not known".to_owned(), String::new());
            let (name, module) =
                frames.get(telling).map_or_else(unknown, |f| (f.label(), f.module.clone()));
            functions.entry((name, module, part)).or_default().merge(&sums[*number as usize]);
            let mut hash = DefaultHasher::new();
            part.hash(&mut hash);
            frames.iter().for_each(|frame| frame.label().hash(&mut hash));
            let of = alike.entry(hash.finish()).or_insert((part, calls, Sum::default()));
            of.2.merge(&sums[*number as usize]);
            // One stands for all: the same each time.
            of.1 = of.1.min(calls);
        }
        let share = |sum: &Sum| sum.weight / all.max(f64::MIN_POSITIVE);
        let functions = ranked(functions.into_iter().collect()).into_iter().take(FUNCTIONS_SHOWN);
        let functions = functions.map(|((name, module, part), sum)| SampledFunction {
            name,
            module,
            part,
            samples: sum.samples,
            share: share(&sum),
        });
        let alike = alike.into_values().map(|(part, calls, sum)| ((calls, part), sum)).collect();
        let (spins, others): (Vec<_>, Vec<_>) =
            ranked(alike).into_iter().partition(|((_, part), _)| part.spins());
        let shown =
            spins.into_iter().take(SPINS_SHOWN).chain(others.into_iter().take(STACKS_SHOWN));
        let stacks = shown.map(|((calls, part), sum)| SampledStack {
            part,
            samples: sum.samples,
            share: share(&sum),
            frames: self.look_up(calls, &noted, symbols).2,
        });
        let (functions, stacks) = (functions.collect(), stacks.collect());
        let (shares, threads, intervals) = self.sums(&parts, over_time);
        CpuSamples {
            source: Some(self.source),
            rate: self.rate,
            taken: self.taken,
            lost: self.lost,
            kernel_permitted: self.kernel_permitted,
            shares,
            threads,
            intervals,
            functions,
            stacks,
            limits: self.limits(),
            refused: None,
        }
    }

    /// The library's notes about processes that ended before the command read them. A process that
    /// ran several programs is left out, except for the program that has statistics.
    fn noted<'stats>(
        &self,
        stats: impl Iterator<Item = (u32, &'stats Modules)> + Clone,
    ) -> HashMap<u32, &'stats Modules> {
        let of_stacks = self.stacks.keys().map(|calls| (calls.process, calls.program));
        let programs: HashSet<_> = of_stacks.chain(self.maps.keys().copied()).collect();
        let mut counts: HashMap<u32, [u32; 2]> = HashMap::new();
        programs.iter().for_each(|(process, _)| counts.entry(*process).or_default()[0] += 1);
        stats.clone().for_each(|(process, _)| counts.entry(process).or_default()[1] += 1);
        let is_one = |(process, _): &(u32, _)| {
            counts[process] == [1, 1] && !self.was_other_programs(*process)
        };
        stats.filter(is_one).collect()
    }

    /// A thread's activity according to these calls, the call that shows it, and the names of the
    /// calls.
    fn look_up(
        &self,
        calls: &Calls,
        noted: &HashMap<u32, &Modules>,
        symbols: &mut Symbols,
    ) -> (Part, usize, Vec<Frame>) {
        let Calls { process, program, kernel, user } = calls;
        let noted = || noted.get(process).copied();
        let nothing = Modules::default();
        let modules = self.maps.get(&(*process, *program)).or_else(noted).unwrap_or(&nothing);
        let stack = symbols.stack(user, modules);
        let user = symbols.frames(stack);
        let frame = |call: &u64| {
            let unknown = || Frame {
                module: "kernel".to_owned(),
                address: *call,
                function: None,
                offset: None,
                file: None,
                line: None,
            };
            self.kernel.get(call).cloned().unwrap_or_else(unknown)
        };
        let kernel: Vec<Frame> = kernel.iter().map(frame).collect();
        let library = self.library.as_deref().map(name_of);
        let (part, telling) = spinning::part(&kernel, &user, library.as_deref());
        (part, telling, [kernel, user].concat())
    }

    /// The sums of all parts, by thread and over time.
    fn sums(
        &self,
        parts: &[Part],
        (interval, intervals): (f64, usize),
    ) -> (Shares, Vec<SampledThread>, Vec<Shares>) {
        let mut whole = Sums::default();
        let mut by_thread: HashMap<u32, Sums> = HashMap::new();
        let mut over_time = vec![Sums::default(); intervals];
        for one in &self.kept {
            let part = parts[one.stack as usize];
            let at = f64::from(one.at) / 1e3 - self.start;
            let slot = (at / interval.max(f64::MIN_POSITIVE)).max(0.0) as usize;
            let slot = over_time.get_mut(slot.min(intervals.saturating_sub(1)));
            let sums = [&mut whole, by_thread.entry(one.thread).or_default()];
            sums.into_iter().chain(slot).for_each(|sums| sums.0[part as usize].add(one));
        }
        let known: HashMap<u32, _> =
            self.threads.iter().map(|(key, (number, name))| (*number, (key, name))).collect();
        let mut sorted: Vec<_> = by_thread.into_iter().collect();
        // Those without a number of their own come last.
        sorted.sort_by_key(|(number, sums)| (*number == 0, Reverse(sums.samples()), *number));
        let mut threads = Vec::new();
        let mut others = Sums::default();
        for (number, sums) in sorted {
            match known.get(&number).filter(|_| threads.len() < THREADS_SHOWN) {
                Some(((pid, tid), name)) => {
                    let (name, shares) = ((*name).clone(), self.shares(&sums));
                    threads.push(SampledThread { pid: *pid, tid: *tid, name, shares });
                }
                None => others.0.iter_mut().zip(&sums.0).for_each(|(sum, more)| sum.merge(more)),
            }
        }
        if others.samples() > 0 {
            let (name, shares) = ("(more threads)".to_owned(), self.shares(&others));
            threads.push(SampledThread { pid: 0, tid: 0, name, shares });
        }
        (self.shares(&whole), threads, over_time.iter().map(|sums| self.shares(sums)).collect())
    }

    fn shares(&self, sums: &Sums) -> Shares {
        let all: f64 = sums.0.iter().map(|sum| sum.weight).sum();
        let share = |part: Part| sums.0[part as usize].weight / all.max(f64::MIN_POSITIVE);
        let told = self.kernel_permitted && !self.kernel.is_empty();
        Shares {
            samples: sums.samples(),
            program: share(Part::Program),
            kernel: self.kernel_permitted.then(|| share(Part::Kernel)),
            spin_program: share(Part::SpinProgram),
            spin_library: share(Part::SpinLibrary),
            spin_kernel: told.then(|| share(Part::SpinKernel)),
        }
    }

    fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if !self.kernel_permitted {
            limits.push(
                "the kernel's side is not sampled, and shares are of the time outside of it: run as root, or grant \
                 CAP_PERFMON, or set kernel.perf_event_paranoid to 1 or less"
                    .to_owned(),
            );
        } else if self.kernel.is_empty() && self.stacks.keys().any(|calls| !calls.kernel.is_empty())
        {
            limits.push(
                "whether the kernel spins is not known: /proc/kallsyms hides its functions (run as root, or set \
                 kernel.kptr_restrict to 0)"
                    .to_owned(),
            );
        }
        if self.source == SampleSource::CpuClock && self.kernel_permitted {
            limits.push(
                "this machine has no counter of cycles: what the kernel does with interrupts disabled, spinning too, is \
                 seen where it enables them again"
                    .to_owned(),
            );
        }
        if self.period > 1 {
            limits.push(format!("one sample in {} was kept", self.period));
        }
        if self.has_unmapped {
            limits.push(format!(
                "calls of programs beyond the first {MAPS_MAX} have no names, unless the library is in them"
            ));
        }
        if self.stacks.len() >= STACKS_MAX {
            limits.push("of many stacks only the innermost calls were kept".to_owned());
        }
        limits
    }
}

/// Samples.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    samples: u64,
    weight: f64,
}

/// Samples of each part.
#[derive(Clone, Debug, Default)]
struct Sums([Sum; 5]);

impl Sum {
    fn add(&mut self, one: &Kept) {
        self.merge(&Self { samples: 1, weight: one.weight.into() });
    }

    fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.weight += other.weight;
    }
}

impl Sums {
    fn samples(&self) -> u64 {
        self.0.iter().map(|sum| sum.samples).sum()
    }
}

/// Most first, and in the same order each time.
fn ranked<K: Ord>(mut all: Vec<(K, Sum)>) -> Vec<(K, Sum)> {
    all.sort_by(|(a, of_a), (b, of_b)| of_b.weight.total_cmp(&of_a.weight).then_with(|| a.cmp(b)));
    all
}

impl Part {
    /// Whether it is spinning.
    pub fn spins(self) -> bool {
        matches!(self, Self::SpinProgram | Self::SpinLibrary | Self::SpinKernel)
    }
}

impl CpuSamples {
    /// None, for this reason.
    pub(crate) fn refused(why: String) -> Self {
        Self { refused: Some(why), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CUT_STACKS_MAX, THREADS_MAX};
    use super::*;

    const MAPS: &str = "1000-2000 r-xp 00000000 00:00 7 /nonexistent/program\n";

    fn calls(kernel: &[u64], user: &[u64]) -> Calls {
        Calls { process: 7, program: 0, kernel: kernel.to_vec(), user: user.to_vec() }
    }

    fn samples() -> Samples {
        let mut samples = Samples::new(SampleSource::CpuClock, 100, true);
        samples.note_maps(7, 0, MAPS.as_bytes());
        samples.note_maps(7, 0, b"");
        let frame = |address, function: &str| Frame {
            module: "kernel".to_owned(),
            address,
            function: Some(function.to_owned()),
            offset: Some(1),
            file: None,
            line: None,
        };
        samples.kernel = [(0xf1, "osq_lock"), (0xf2, "vfs_read")]
            .into_iter()
            .map(|(address, name)| (address, frame(address, name)))
            .collect();
        samples
    }

    fn divided(samples: Samples, over_time: (f64, usize)) -> CpuSamples {
        samples.divide(&[], &mut Symbols::default(), over_time)
    }

    #[test]
    fn what_the_library_noted_is_for_processes_that_were_one_program() {
        let mut samples = samples();
        let sampled = [(6, 1), (7, 1), (8, 3), (9, 2), (9, 3), (10, 4)];
        for (process, program) in sampled {
            samples.take(process, "", 0, 1.0, Calls { process, program, ..Calls::default() });
        }
        let modules = Modules::default();
        samples.note_other_program(10);
        // The maps of process 7 were read when it was another program, and process 8 has noted two
        // programs.
        let stats = [5, 6, 7, 8, 8, 9, 10].map(|process| (process, &modules));
        let noted = samples.noted(stats.into_iter());
        assert_eq!(noted.into_keys().collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn shares_are_by_weight_and_by_thread_and_over_time() {
        let mut samples = samples();
        samples.start = 0.5;
        samples.take(8, "early", 100, 1.0, calls(&[], &[0x1010]));
        samples.take(8, "named", 900, 1.0, calls(&[0xf2], &[0x1020]));
        samples.take(9, "spins", 1200, 2.0, calls(&[0xf1, 0xf2], &[0x1020]));
        // Just ending.
        samples.take(9, "", 9900, 0.0, calls(&[], &[0x1010]));
        let seen = divided(samples, (0.5, 2));
        let Shares { samples, program, kernel, spin_kernel, .. } = seen.shares;
        assert_eq!((samples, program, kernel, spin_kernel), (4, 0.25, Some(0.25), Some(0.5)));
        let threads: Vec<_> = seen
            .threads
            .iter()
            .map(|one| (one.tid, one.name.as_str(), one.shares.program))
            .collect();
        assert_eq!(threads, [(8, "named", 0.5), (9, "spins", 0.0)]);
        // Samples before the beginning or after the end count for the first and the last.
        let parts: Vec<_> = seen.intervals.iter().map(|one| (one.samples, one.kernel)).collect();
        assert_eq!(parts, [(2, Some(0.5)), (2, Some(0.0))]);
        let first = &seen.functions[0];
        assert_eq!(
            (first.name.as_str(), first.part, first.share),
            ("osq_lock", Part::SpinKernel, 0.5)
        );
        let stacks: Vec<_> = seen.stacks.iter().map(|one| (one.part, one.frames.len())).collect();
        assert_eq!(
            stacks,
            [(Part::SpinKernel, 3), (Part::Program, 1), (Part::Kernel, 2)],
            "those that spin come first"
        );
        assert_eq!(seen.limits.len(), 1, "{:?}", seen.limits);
    }

    #[test]
    fn of_too_many_samples_every_second_one_is_kept() {
        let mut samples = samples();
        samples.most = 8;
        // Half of each, whatever is dropped.
        for number in 0..1000_u64 {
            let user = if number / 10 % 2 == 0 { 0x1010 } else { 0x1020 };
            samples.take(8, "", number as u32, 1.0, calls(&[], &[user]));
        }
        assert!(samples.kept.len() <= 8 && samples.period >= 128, "{}", samples.period);
        let seen = divided(samples, (1.0, 1));
        assert_eq!((seen.taken, seen.lost), (1000, 0));
        assert!(seen.limits.iter().any(|limit| limit.starts_with("one sample in ")), "{seen:?}");
    }

    #[test]
    fn of_too_many_stacks_the_innermost_calls_are_kept_and_then_none() {
        let mut samples = samples();
        samples.most = usize::MAX;
        for number in 0..STACKS_MAX as u64 + 10 {
            let kernel = [1, 2, 3, 4, 5, number];
            samples.take(8, "", 0, 1.0, calls(&kernel, &[0x1010]));
        }
        assert_eq!((samples.stacks.len(), samples.lost), (STACKS_MAX + 1, 0));
        let cut = calls(&[1, 2, 3, 4], &[0x1010]);
        assert!(samples.stacks.contains_key(&cut));
        for number in 0..CUT_STACKS_MAX as u64 {
            samples.take(8, "", 0, 1.0, calls(&[number + 10], &[]));
        }
        assert_eq!(samples.stacks.len(), CUT_STACKS_MAX);
        assert_eq!(samples.lost, STACKS_MAX as u64 + 1);
        assert!(samples.limits().iter().any(|limit| limit.contains("innermost")));
    }

    #[test]
    fn what_is_not_permitted_or_hidden_is_null() {
        let take = |mut samples: Samples| {
            samples.take(8, "", 0, 1.0, calls(&[0xf1], &[]));
            divided(samples, (0.0, 0))
        };
        let mut hidden = samples();
        hidden.kernel.clear();
        let hidden = take(hidden);
        assert_eq!((hidden.shares.kernel, hidden.shares.spin_kernel), (Some(1.0), None));
        assert!(hidden.limits[0].contains("kallsyms"), "{hidden:?}");
        let outside = take(Samples::new(SampleSource::CpuClock, 100, false));
        assert_eq!((outside.shares.kernel, outside.shares.spin_kernel), (None, None));
        assert!(outside.limits[0].contains("perf_event_paranoid"), "{outside:?}");
        assert_eq!((outside.intervals.len(), outside.threads.len()), (0, 1));
    }

    #[test]
    fn threads_beyond_the_first_are_one() {
        let mut samples = samples();
        for thread in 0..THREADS_MAX as u32 + 5 {
            samples.take(thread, "name", 0, 1.0, calls(&[], &[0x1010]));
        }
        let seen = divided(samples, (1.0, 1));
        assert_eq!(seen.threads.len(), THREADS_SHOWN + 1);
        let last = seen.threads.last().unwrap();
        let others = (THREADS_MAX + 5 - THREADS_SHOWN) as u64;
        assert_eq!((last.tid, last.shares.samples), (0, others), "{last:?}");
    }
}
