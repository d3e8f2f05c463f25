//! A profile as pprof's own: protocol buffers, compressed, which `go tool pprof`, speedscope,
//! Pyroscope and Parca read.
//!
//! Values of a sample: waits and the time waited, under the names in Go's profiles of contention;
//! and CPU time, where stacks were sampled on the CPU. The innermost call of a wait is the lock,
//! `[lock]`, so a list of functions is also a list of locks.

mod messages;

use std::collections::HashMap;
use std::hash::Hash;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::command::joined;
use crate::profile::{Frame, Part, Profile};
use crate::render::stacks::{counts, stacks};
use crate::safe;
use messages::{Function, Label, Line, Location, Mapping, Sample, ValueType};

/// The profile, as a file has it.
pub fn pprof(profile: &Profile) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.text("");
    builder.waits(profile);
    builder.kernel_waits(profile);
    builder.cpu_samples(profile);
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed
        .write_all(&builder.finish(profile).encode_to_vec())
        .and_then(|()| compressed.finish())
        .expect("memory takes all that is written to it")
}

/// What is told apart, with its number.
#[derive(Debug)]
struct Numbers<T>(HashMap<T, u64>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Numbers<T> {
    /// The number of this, and whether it is new. The first is 1.
    fn of(&mut self, what: T) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(what).or_insert(next);
        (number, number == next)
    }
}

#[derive(Default)]
struct Builder {
    out: messages::Profile,
    texts: Numbers<String>,
    modules: Numbers<i64>,
    functions: Numbers<(i64, i64)>,
    locations: Numbers<(u64, u64, u64, i64)>,
}

impl Builder {
    fn text(&mut self, text: &str) -> i64 {
        let (number, is_new) = self.texts.of(text.to_owned());
        if is_new {
            // A reader may print it on a terminal.
            self.out.strings.push(safe(text));
        }
        number as i64 - 1
    }

    fn waits(&mut self, profile: &Profile) {
        let stacks = stacks(profile);
        for (one, count) in stacks.iter().zip(counts(profile, &stacks)) {
            let lock = &profile.locks[one.lock];
            let labels = [("lock", &lock.name[..]), ("kind", &lock.kind)];
            let leaf = format!("[{}]", lock.title());
            self.sample(Some(&leaf), one.frames, [count, one.ns, 0], &labels);
        }
    }

    fn kernel_waits(&mut self, profile: &Profile) {
        for lock in &profile.kernel_locks {
            let leaf = format!("[{}]", lock.title());
            for stack in &lock.stacks {
                let cgroup = stack.cgroup.iter().map(|cgroup| ("cgroup", &cgroup[..]));
                let labels =
                    [("lock", &lock.name[..]), ("kind", &lock.kind), ("task", &stack.task)];
                let labels: Vec<_> = labels.into_iter().chain(cgroup).collect();
                self.sample(Some(&leaf), &stack.frames, [stack.waits, stack.wait_ns, 0], &labels);
            }
        }
    }

    fn cpu_samples(&mut self, profile: &Profile) {
        let Some(samples) = &profile.cpu_samples else { return };
        for stack in &samples.stacks {
            let ns = stack.samples.saturating_mul(1_000_000_000) / u64::from(samples.rate.max(1));
            let doing = match stack.part {
                Part::Program => "program",
                Part::Kernel => "kernel",
                Part::SpinProgram | Part::SpinLibrary | Part::SpinKernel => "spinning",
            };
            self.sample(None, &stack.frames, [0, 0, ns], &[("doing", doing)]);
        }
    }

    /// `leaf` is the lock for which the calls, innermost first, wait.
    fn sample(
        &mut self,
        leaf: Option<&str>,
        frames: &[Frame],
        values: [u64; 3],
        labels: &[(&str, &str)],
    ) {
        let leaf = leaf.map(|lock| self.location("", 0, lock, None, 0));
        let calls = frames.iter().map(|frame| {
            let line = frame.line.unwrap_or_default();
            let file = frame.file.as_deref();
            self.location(&frame.module, frame.address, &frame.label(), file, line)
        });
        let calls: Vec<u64> = calls.collect();
        let labels =
            labels.iter().map(|(key, text)| Label { key: self.text(key), text: self.text(text) });
        let labels = labels.collect();
        self.out.samples.push(Sample {
            locations: leaf.into_iter().chain(calls).collect(),
            values: values.map(|value| i64::try_from(value).unwrap_or(i64::MAX)).to_vec(),
            labels,
        });
    }

    /// The number of a call. An inlined function is a call of its own, at the same address.
    fn location(
        &mut self,
        module: &str,
        address: u64,
        name: &str,
        file: Option<&str>,
        line: u32,
    ) -> u64 {
        let mapping = self.mapping(module);
        let function = self.function(name, file.unwrap_or_default());
        let line = i64::from(line);
        let (id, is_new) = self.locations.of((mapping, address, function, line));
        if is_new {
            let lines = vec![Line { function, line }];
            self.out.locations.push(Location { id, mapping, address, lines });
        }
        id
    }

    fn mapping(&mut self, module: &str) -> u64 {
        let file = self.text(module);
        if file == 0 {
            return 0;
        }
        let (id, is_new) = self.modules.of(file);
        if is_new {
            self.out.mappings.push(Mapping { id, file, has_functions: true });
        }
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, file) = (self.text(name), self.text(file));
        let (id, is_new) = self.functions.of((name, file));
        if is_new {
            self.out.functions.push(Function { id, name, file });
        }
        id
    }

    fn finish(mut self, profile: &Profile) -> messages::Profile {
        let types = [("contentions", "count"), ("delay", "nanoseconds"), ("cpu", "nanoseconds")];
        self.out.sample_types = types
            .map(|(name, unit)| ValueType { name: self.text(name), unit: self.text(unit) })
            .into();
        self.out.default_sample_type = self.text("delay");
        let said = [joined(&profile.command), profile.finding.clone()];
        self.out.comments = said.iter().map(|text| self.text(text)).collect();
        self.out.duration_nanos = (profile.wall * 1e9) as i64;
        self.out
    }
}
