//! From readings to a model of this machine.
//!
//! A cycle of the model is a tick of the time-stamp counter, so its times are those of the clock,
//! independent of the core's frequency.

use manycore_sim::machine::Directory;
use manycore_sim::model::{Constant, FIELDS, Field, Model, Origin, Provenance};

use super::walk::MORE;
use super::{Distance, Host, Reading};

/// A number with its range, in the unit of its field.
#[derive(Clone, Debug)]
struct Entry {
    value: f64,
    low: f64,
    high: f64,
    provenance: Provenance,
    note: String,
}

impl Entry {
    fn measured(value: f64, low: f64, high: f64, note: impl Into<String>) -> Self {
        Self { value, low, high, provenance: Provenance::Measured, note: note.into() }
    }

    fn exactly(value: u64, note: &str) -> Self {
        Self::measured(value as f64, value as f64, value as f64, note)
    }

    fn derived(self, note: impl Into<String>) -> Self {
        Self { provenance: Provenance::Derived, note: note.into(), ..self }
    }

    fn assumed(value: f64, low: f64, high: f64, note: &str) -> Self {
        Self { value, low, high, provenance: Provenance::Assumed, note: note.into() }
    }

    /// The sum of two entries, or their difference; its range is that of the worst cases.
    fn plus(self, other: &Self) -> Self {
        Self {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
            ..self
        }
    }

    fn minus(self, other: &Self) -> Self {
        Self {
            value: self.value - other.value,
            low: self.low - other.high,
            high: self.high - other.low,
            ..self
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            value: factor * self.value,
            low: factor * self.low,
            high: factor * self.high,
            ..self
        }
    }

    fn at_least(self, least: f64) -> Self {
        let limit = |number: f64| number.max(least);
        Self { value: limit(self.value), low: limit(self.low), high: limit(self.high), ..self }
    }
}

/// What the kernel tells about the machine.
const TOLD: &str = "as the kernel tells in sysfs";
const UNTOLD: &str = "the kernel does not tell";

impl Host {
    /// A model of this machine. It has at least two CPUs: [`measure`](super::measure) has checked
    /// that.
    pub fn model(&self, name: &str) -> Model {
        let mut constants = Vec::new();
        for field in FIELDS.iter().filter(|field| field.section.is_none()) {
            let classes = if field.per_distance { self.classes().len() } else { 1 };
            for class in 0..classes {
                let entry = self.entry(field.path, class);
                constants.push(constant(field, field.per_distance.then_some(class), entry));
            }
        }
        Model {
            name: name.to_owned(),
            summary: format!("{}, as measured", manycore_measure::Host::describe().cpu),
            sources: std::collections::BTreeMap::new(),
            distance: self.distances(),
            distance_origin: Origin {
                provenance: Provenance::Measured,
                from: None,
                note: Some(TOLD.into()),
            },
            constants,
        }
    }

    /// The measurements for each class of distance of the model.
    fn classes(&self) -> Vec<Distance> {
        let partners = self.topology.partners();
        let known = |distance: &Distance| partners.iter().any(|(known, _)| known == distance);
        let nearest = if known(&Distance::Cluster) { Distance::Cluster } else { Distance::Sibling };
        let beyond = [Distance::Socket, Distance::Remote].into_iter().filter(known);
        std::iter::once(nearest).chain(beyond).collect()
    }

    fn distances(&self) -> Vec<Vec<u8>> {
        let counts = self.topology.counts();
        let per_package = counts.clusters.div_ceil(counts.sockets).max(1);
        let farthest = (self.classes().len() - 1) as u8;
        let class = |from: usize, to: usize| match from / per_package == to / per_package {
            _ if from == to => 0,
            true => 1,
            false => farthest,
        };
        let row = |from| (0..counts.clusters).map(|to| class(from, to)).collect();
        (0..counts.clusters).map(row).collect()
    }

    /// Nanoseconds as cycles, with what they were measured by.
    fn cycles(&self, name: &str) -> Entry {
        let reading = self.reading(name).unwrap_or_else(|| panic!("`{name}` was measured"));
        let ghz = 1.0 / self.reading("tick").map_or(1.0, |tick| tick.value);
        let Reading { value, low, high, what, .. } = reading;
        Entry::measured(*value, *low, *high, what).times(ghz)
    }

    /// The entry of a kind that is measured for each distance.
    fn at(&self, kind: &str, class: usize) -> Entry {
        self.cycles(&format!("{kind}_{}", self.classes()[class].name()))
    }

    fn entry(&self, path: &str, class: usize) -> Entry {
        match path.split('.').next().unwrap_or_default() {
            "topology" => self.topology_entry(path),
            "latency" => self.latency(path, class),
            "caches" => self.cache(path),
            "core" => self.core(path),
            "os" => self.os(path),
            "bandwidth" => Entry::assumed(5.0, 1.0, 20.0, "not measured: 8 to 160 GB/s at 2.5 GHz"),
            _ => self.directory(path),
        }
    }

    fn topology_entry(&self, path: &str) -> Entry {
        let counts = self.topology.counts();
        let number = match path {
            "topology.sockets" => counts.clusters,
            "topology.cores_per_socket" => counts.cores.div_ceil(counts.clusters),
            "topology.threads_per_core" => counts.threads.div_ceil(counts.cores),
            _ => match counts.clusters.checked_rem(self.topology.nodes) {
                Some(0) => counts.clusters / self.topology.nodes,
                _ => 1,
            },
        };
        Entry::exactly(number as u64, TOLD)
    }

    fn latency(&self, path: &str, class: usize) -> Entry {
        let load = || self.at("load_modified", class);
        let farther = || load().minus(&self.at("load_modified", 0)).at_least(0.0);
        let memory = || self.cycles("load_memory");
        match path {
            "latency.load.modified" => load(),
            "latency.rmw.modified" => self.at("rmw_modified", class),
            "latency.store.modified" => {
                self.at("rmw_modified", class).derived("as the atomic operation")
            }
            "latency.load.shared" if class == 0 => self.last_level(),
            "latency.load.shared" => load().derived("as the load of a changed line"),
            "latency.rmw.shared" => self.at("rmw_shared", class),
            "latency.store.shared" => {
                self.at("rmw_shared", class).derived("as the atomic operation")
            }
            "latency.store_hit" => Entry::assumed(1.0, 0.0, 4.0, "the store buffer hides it"),
            "latency.rmw_hit" => self.cycles("rmw_own"),
            _ if class == 0 => match path {
                "latency.load.uncached" => memory(),
                _ => memory().derived("as the load"),
            },
            _ => memory().plus(&farther()).derived("memory, and the way of a changed line"),
        }
    }

    /// A load from the last level of cache.
    fn last_level(&self) -> Entry {
        match self.topology.caches.last() {
            Some(cache) => self.cycles(&format!("load_l{}", cache.level)),
            None => Entry::assumed(50.0, 30.0, 80.0, UNTOLD),
        }
    }

    fn cache(&self, path: &str) -> Entry {
        if path == "caches.same_line" {
            return self.same_line();
        }
        let caches = &self.topology.caches;
        let number = if path.contains("l1") { 0 } else { usize::from(path.contains("l2")).max(1) };
        let place = match path.contains("llc") {
            true => caches.len().saturating_sub(1),
            false => number.min(caches.len().saturating_sub(1)),
        };
        let Some(cache) = caches.get(place) else {
            return self.untold_cache(path);
        };
        match path.rsplit('.').next().unwrap_or_default() {
            "bytes" => Entry::exactly(cache.bytes, TOLD),
            "ways" if cache.ways > 0 => Entry::exactly(u64::from(cache.ways), TOLD),
            "ways" => Entry::assumed(8.0, 4.0, 16.0, UNTOLD),
            _ => self.cycles(&format!("load_l{}", cache.level)),
        }
    }

    /// A load from the nearest cache.
    fn nearest(&self) -> Entry {
        match self.reading("load_l1") {
            Some(_) => self.cycles("load_l1"),
            None => self.untold_cache("caches.l1_hit"),
        }
    }

    /// The time of each of the loads that no other one depends on.
    fn same_line(&self) -> Entry {
        if self.reading("look_l1").is_none() {
            return self.untold_cache("caches.same_line");
        }
        let more = self.cycles("look_l1").minus(&self.cycles("load_l1")).at_least(0.0);
        let note = format!("{MORE} loads more of each line of a walk, less the walk");
        more.times(1.0 / MORE as f64).derived(note)
    }

    /// Every other guess is wrong.
    fn branch_miss(&self) -> Entry {
        let random = self.cycles("branch_random").minus(&self.cycles("branch_regular"));
        let note = "twice what branches take longer that go either way at random";
        random.at_least(0.0).times(2.0).derived(note)
    }

    /// For a kernel that says nothing about caches.
    fn untold_cache(&self, path: &str) -> Entry {
        let bytes = if path.contains("l1") {
            32e3
        } else if path.contains("l2") {
            512e3
        } else {
            16e6
        };
        match path.rsplit('.').next().unwrap_or_default() {
            "bytes" => Entry::assumed(bytes, bytes / 2.0, bytes * 4.0, UNTOLD),
            "ways" => Entry::assumed(8.0, 4.0, 16.0, UNTOLD),
            "l1_hit" => Entry::assumed(4.0, 3.0, 5.0, UNTOLD),
            "same_line" => Entry::assumed(1.0, 0.0, 4.0, UNTOLD),
            _ => Entry::assumed(14.0, 10.0, 20.0, UNTOLD),
        }
    }

    fn core(&self, path: &str) -> Entry {
        match path {
            "core.ghz" => {
                let tick = self.cycles("tick");
                let ghz = 1.0 / self.reading("tick").map_or(1.0, |tick| tick.value);
                Entry::measured(ghz, ghz, ghz, tick.note)
            }
            "core.fence" => self.cycles("fence"),
            "core.prefetches" => Entry::assumed(10.0, 6.0, 24.0, "as CPUs of these years have"),
            "core.branch_miss" => self.branch_miss(),
            "core.pause" => self.cycles("pause"),
            "core.clock_read" => self.cycles("clock_read"),
            "core.smt_slowdown"
                if self.topology.counts().threads == self.topology.counts().cores =>
            {
                Entry::measured(1.0, 1.0, 1.0, "one thread a core, as the kernel tells")
            }
            "core.smt_slowdown" => Entry::assumed(1.5, 1.1, 1.9, "not measured"),
            "core.store_buffer" => Entry::assumed(48.0, 16.0, 72.0, "as CPUs of these years have"),
            "core.tsc_skew" => {
                Entry::assumed(0.0, 0.0, 200.0, "not measured; within a socket counters agree")
            }
            _ => self.clock_boundary(),
        }
    }

    /// As [`derived_clock_boundary`](manycore_sim::Machine::derived_clock_boundary), with its
    /// range.
    fn clock_boundary(&self) -> Entry {
        let farthest = self.classes().len() - 1;
        let message = self
            .latency("latency.store.modified", farthest)
            .plus(&self.at("load_modified", farthest));
        let reads = self.cycles("clock_read").times(2.0);
        let skew = self.core("core.tsc_skew").times(2.0);
        let note = "a store to and a load of a line at the greatest distance, two reads of the counter, and the skew";
        message.plus(&reads).plus(&skew).derived(note)
    }

    fn directory(&self, path: &str) -> Entry {
        match path {
            "directory.hold" => self.hold(),
            "directory.combining" => {
                Entry::assumed(1.0, 0.0, 1.0, "not visible with few cores; both are to be tried")
            }
            "directory.migratory" => self.migratory(),
            "directory.shared_read_occupancy" => {
                let low = 0.1 * self.last_level().value;
                let note = "not measured; a part of a hit in the last level";
                Entry::assumed(2.5 * low, low, 10.0 * low, note)
            }
            "directory.read_occupancy" => {
                let note = "not measured: as long as the way";
                let way = Directory::AS_LONG_AS_ITS_WAY as f64;
                Entry::assumed(way, 0.0, way, note)
            }
            "directory.contention" => {
                Entry::assumed(0.0, 0.0, 300.0, "not measured: it takes many CPUs of two sockets")
            }
            "directory.rmw_at_home" if cfg!(target_arch = "x86_64") => Entry::exactly(0, "")
                .derived("x86 processors execute atomic operations in the core's own cache"),
            "directory.rmw_at_home" => {
                Entry::assumed(0.0, 0.0, 30.0, "not measured: bursts of many cores tell")
            }
            _ => unreachable!("a constant of machines that is not measured: {path}"),
        }
    }

    /// Whether a core that loads a changed line can change it next without a request.
    fn migratory(&self) -> Entry {
        let asks = self.at("rmw_shared", 0).value;
        let loaded = self.at("rmw_loaded", 0);
        let taken_over = f64::from(loaded.value < asks / 2.0);
        Entry::measured(taken_over, taken_over, taken_over, "").derived(format!(
            "atomic additions to lines of the other CPU, after a load of each, take {:.0} cycles, and {asks:.0} if both have copies",
            loaded.value
        ))
    }

    /// While two CPUs change a line by compare-and-swap, each stay of the line at a CPU begins with
    /// a failure, because the other CPU has come between its load and its swap; the later attempts
    /// of the stay succeed. So a share `s` of successes means that a stay has `s / (1 - s)`
    /// successes.
    fn hold(&self) -> Entry {
        let name = format!("cas_success_{}", self.classes()[0].name());
        let Some(success) = self.reading(&name) else {
            return Entry::assumed(50.0, 0.0, 150.0, "not measured");
        };
        let turn = self.cycles("rmw_own").value + self.nearest().value;
        let stay = |percent: f64| turn * percent / (100.0 - percent).max(1.0);
        let entry = Entry::measured(stay(success.value), stay(success.low), stay(success.high), "");
        entry.derived(format!(
            "{:.0} % of compare-and-swaps succeed against another CPU: a stay of {:.1} of them",
            success.value,
            success.value / (100.0 - success.value).max(1.0)
        ))
    }

    /// A sleep of zero length ends late by the slack. Then the CPU, which was idle, has to wake up
    /// and to switch.
    fn timer_slack(&self) -> Entry {
        let after = self.os("os.idle_exit").plus(&self.os("os.context_switch"));
        let note = "a sleep of no time, less the end of idleness and a switch";
        self.cycles("sleep_zero").minus(&after).at_least(0.0).derived(note)
    }

    fn os(&self, path: &str) -> Entry {
        let wait = || self.cycles("futex_wait_refused");
        let wake = || self.cycles("futex_wake_nobody");
        let switch = || {
            let both = self.cycles("yield_switch");
            both.minus(&self.cycles("yield"))
                .at_least(0.0)
                .derived("a yield with a switch, less one without")
        };
        let wake_local = || {
            let rest =
                self.cycles("futex_message_local").minus(&wake()).minus(&wait()).minus(&switch());
            rest.at_least(0.0).derived(
                "a message on one CPU, less a wake without a sleeper, a refused wait and a switch",
            )
        };
        let wake_remote = || self.cycles("futex_wake_call").minus(&wake()).at_least(0.0);
        let way = || {
            let rest = self.cycles("futex_message").minus(&wake()).minus(&switch());
            rest.at_least(0.0)
        };
        match path {
            "os.time_slice" => self.cycles("slice"),
            "os.context_switch" => switch(),
            "os.migration" => {
                Entry::assumed(2_600.0, 500.0, 10_000.0, "not measured: about a microsecond")
            }
            "os.futex_wait" => wait(),
            "os.futex_wake" => wake(),
            "os.wake_thread" => wake_remote().derived(
                "a wake of a thread that sleeps on another CPU, less one without a sleeper",
            ),
            "os.wake_path" => wake_local(),
            "os.idle_exit" => {
                let note = "a message between CPUs, less a wake without a sleeper, a switch and the way on one CPU";
                way().minus(&wake_local()).at_least(0.0).derived(note)
            }
            "os.yield_call" => self.cycles("yield"),
            _ => self.timer_slack(),
        }
    }
}

fn constant(field: &'static Field, class: Option<usize>, entry: Entry) -> Constant {
    let fit = |number: f64| {
        let number =
            if field.unit.is_whole() { number.round() } else { (number * 1e3).round() / 1e3 };
        number.clamp(field.least, field.most)
    };
    let (value, mut low, mut high) = (fit(entry.value), fit(entry.low), fit(entry.high));
    // An assumed constant has a range, even where a small number was rounded.
    if entry.provenance == Provenance::Assumed && low == high {
        low = field.least;
        high = (value + 1.0).min(field.most);
    }
    Constant {
        field,
        class,
        value,
        low: low.min(value),
        high: high.max(value),
        provenance: entry.provenance,
        from: None,
        note: Some(entry.note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manycore_placement::Cache;

    use crate::host::topology::{Cpu, Topology};

    fn reading(name: &str, value: f64) -> Reading {
        Reading {
            name: name.into(),
            value,
            low: 0.9 * value,
            high: 1.2 * value,
            what: "told".into(),
        }
    }

    /// A machine of two packages with two caches of two cores each, and a counter of 2 GHz.
    fn host() -> Host {
        let cpu = |number: usize| Cpu {
            number,
            package: number / 4,
            core: number % 4,
            cluster: number / 2 * 2,
        };
        let caches = [(1, 32 << 10, 8), (2, 1 << 20, 8), (3, 32 << 20, 16)];
        let cache = |(level, bytes, ways)| Cache { level, bytes, ways };
        let topology = Topology {
            cpus: (0..8).map(cpu).collect(),
            caches: caches.map(cache).to_vec(),
            nodes: 2,
        };
        let of_distances = [("cluster", 30.0), ("socket", 80.0), ("remote", 200.0)];
        let kinds = [
            ("load_modified", 1.0),
            ("rmw_modified", 1.1),
            ("rmw_loaded", 0.2),
            ("rmw_shared", 0.8),
        ];
        let transfers = of_distances.iter().flat_map(|(distance, ns)| {
            kinds.map(|(kind, share)| reading(&format!("{kind}_{distance}"), share * ns))
        });
        let others = [
            ("tick", 0.5),
            ("rmw_own", 8.0),
            ("fence", 10.0),
            ("pause", 20.0),
            ("clock_read", 10.0),
            ("load_l1", 2.0),
            ("look_l1", 3.0),
            ("branch_random", 6.0),
            ("branch_regular", 1.0),
            ("load_l2", 5.0),
            ("load_l3", 15.0),
            ("load_memory", 100.0),
            ("cas_success_cluster", 75.0),
            ("yield", 200.0),
            ("yield_switch", 900.0),
            ("futex_wake_nobody", 200.0),
            ("futex_wait_refused", 300.0),
            ("futex_message_local", 1_500.0),
            ("futex_message", 5_000.0),
            ("futex_wake_call", 1_200.0),
            ("sleep_zero", 55_000.0),
            ("slice", 3e6),
        ];
        let others = others.iter().map(|(name, ns)| reading(name, *ns));
        Host { topology, readings: transfers.chain(others).collect() }
    }

    #[test]
    fn readings_become_a_model_that_can_be_read_back() {
        let model = host().model("here");
        let again = Model::parse("here.toml", &model.to_toml()).unwrap();
        assert_eq!(again, model);
        let machine = model.machine();
        assert_eq!(machine.topology.cpus(), 8);
        assert_eq!(machine.topology.distance[0], [0, 1, 2, 2]);
        assert_eq!(machine.topology.sockets_per_node, 2);
        assert_eq!(machine.core.ghz, 2.0);
    }

    #[test]
    fn a_kernel_may_tell_little_of_caches_or_nothing() {
        for (told, level) in [(0..0, "nothing"), (1..2, "the second level")] {
            let mut host = host();
            let caches = host.topology.caches[told].to_vec();
            let measured = |reading: &Reading| match reading.name.strip_prefix("load_l") {
                Some(number) => caches.iter().any(|cache| cache.level.to_string() == number),
                None => reading.name != "look_l1",
            };
            host.readings.retain(measured);
            host.topology.caches = caches;
            let model = host.model("here");
            assert_eq!(Model::parse("here.toml", &model.to_toml()).unwrap(), model, "{level}");
            let same_line = model.constant("caches.same_line", 0).unwrap();
            assert_eq!((same_line.value, same_line.low, same_line.high), (1.0, 0.0, 4.0));
            assert_eq!(same_line.provenance, Provenance::Assumed);
        }
    }

    #[test]
    fn constants_by_hand() {
        let model = host().model("here");
        let value = |path: &str, class| model.constant(path, class).unwrap().value;
        assert_eq!(value("latency.load.modified", 2), 400.0);
        assert_eq!(value("latency.store.shared", 0), 48.0);
        assert_eq!(value("directory.migratory", 0), 1.0);
        assert_eq!(value("latency.load.uncached", 1), 2.0 * (100.0 + 50.0));
        // Three of four succeed: three iterations of an atomic operation and a load.
        assert_eq!(value("directory.hold", 0), 3.0 * 20.0);
        assert_eq!(value("directory.rmw_at_home", 0), 0.0);
        assert_eq!(value("os.context_switch", 0), 1_400.0);
        // Five nanoseconds for every other branch.
        assert_eq!(value("core.branch_miss", 0), 20.0);
        // One nanosecond for four loads, rounded to whole cycles.
        assert_eq!(value("caches.same_line", 0), 1.0);
        // 220 ns to the farthest and 200 back, and twice 10 ns for the counter.
        assert_eq!(value("core.clock_boundary", 0), 880.0);
        assert_eq!(
            value("core.clock_boundary", 0),
            model.machine().derived_clock_boundary() as f64
        );
        assert_eq!(value("os.wake_path", 0), 600.0);
        assert_eq!(value("os.idle_exit", 0), 10_000.0 - 400.0 - 1_400.0 - 600.0);
    }
}
