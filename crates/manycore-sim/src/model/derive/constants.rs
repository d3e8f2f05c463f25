//! Computes the constants of a model from measurements.

use super::bursts::{self, Burst};
use super::observed::{HandOver, Observed, Shape};
use super::spread::Spread;
use crate::machine::Machine;
use crate::model::{Constant, FIELDS, Field, Model, Origin, Problem, Provenance, find};

/// Loads and stores of a changed line, over atomic operations: Westmere-EX, at both distances
/// between sockets.
const LOAD_OVER_RMW: f64 = 0.9;
const STORE_OVER_RMW: f64 = 0.96;

/// The ratio of two loads on Westmere-EX: one of a line that other cores have clean copies of, and
/// one of a line that another core has changed.
const CLEAN_OVER_CHANGED: f64 = 0.75;

/// The largest share of the way to the nearest core for which a core keeps a line. With more,
/// nothing but the way itself would remain of a hand-over.
const MOST_HOLD: f64 = 0.3;

impl Observed {
    /// The model. `bursts` may be empty.
    pub fn model(&self, bursts: &[Burst]) -> Result<Model, Problem> {
        let like = find(&self.like)?;
        let distance = self.distance()?;
        let classes = distance.iter().flatten().max().map_or(1, |most| usize::from(*most) + 1);
        if classes != self.hand_overs.len() {
            let fault =
                format!("has {} entries for {classes} classes of distance", self.hand_overs.len());
            return Err(Problem::of_field(self.file(), "hand_over", fault, "write one for each"));
        }
        let known = |path: &str| self.known.iter().find(|constant| constant.field.path == path);
        let ghz = known("core.ghz").or_else(|| like.constant("core.ghz", 0));
        let ghz = ghz.map_or(1.0, |constant| constant.value);
        let similar = like.machine();
        let maker = Maker {
            observed: self,
            bursts,
            like: &like,
            similar: &similar,
            distance: distance.clone(),
            ghz,
        };
        let mut constants = Vec::new();
        for field in FIELDS {
            // Optional parts of a machine exist only if the file names them.
            if field.section.is_some() && known(field.path).is_none() {
                continue;
            }
            let count = if field.per_distance { classes } else { 1 };
            for class in 0..count {
                constants.push(match known(field.path) {
                    Some(constant) => constant.clone(),
                    None => maker.constant(field, class),
                });
            }
        }
        let mut sources = self.sources.clone();
        for (key, source) in &like.sources {
            sources.entry(key.clone()).or_insert_with(|| source.clone());
        }
        let from_there = |key: &String| constants.iter().any(|one| one.from.as_ref() == Some(key));
        sources.retain(|key, _| from_there(key) || *key == self.shape_from);
        let mut model = Model {
            name: self.name.clone(),
            summary: self.summary.clone(),
            sources,
            distance,
            distance_origin: Origin {
                provenance: Provenance::Cited,
                from: Some(self.shape_from.clone()),
                note: None,
            },
            constants,
        };
        set_clock_boundary(&mut model);
        // The assembled model has to be a valid file.
        Model::parse(self.file(), &model.to_toml())
    }

    fn distance(&self) -> Result<Vec<Vec<u8>>, Problem> {
        let Shape { packages, groups, distance, .. } = &self.shape;
        if let Some(distance) = distance {
            return Ok(distance.clone());
        }
        let class = |from: u32, to: u32| match from / groups == to / groups {
            _ if from == to => 0,
            true => 1,
            false => 1 + u8::from(*groups > 1),
        };
        let count = packages * groups;
        Ok((0..count).map(|from| (0..count).map(|to| class(from, to)).collect()).collect())
    }
}

/// Computes the boundary of clocks from the model's message times.
fn set_clock_boundary(model: &mut Model) {
    let of = |model: &Model, choose: fn(&Constant) -> f64| {
        model.machine_with(choose).derived_clock_boundary() as f64
    };
    let (value, low, high) =
        (of(model, |one| one.value), of(model, |one| one.low), of(model, |one| one.high));
    let is_boundary = |one: &&mut Constant| one.field.path == "core.clock_boundary";
    if let Some(constant) = model.constants.iter_mut().find(is_boundary) {
        (constant.value, constant.low, constant.high) = (value, low.min(value), high.max(value));
        constant.provenance = Provenance::Derived;
        constant.from = None;
        constant.note = Some(
            "none is published: a store to and a load of a line at the greatest distance, two reads of the counter, and the skew".into(),
        );
    }
}

struct Maker<'a> {
    observed: &'a Observed,
    bursts: &'a [Burst],
    like: &'a Model,
    similar: &'a Machine,
    distance: Vec<Vec<u8>>,
    ghz: f64,
}

impl Maker<'_> {
    fn constant(&self, field: &'static Field, class: usize) -> Constant {
        let Shape { packages, groups, cores, threads, groups_per_node, .. } = self.observed.shape;
        match field.path {
            "topology.sockets" => self.exactly(field, packages * groups),
            "topology.cores_per_socket" => self.exactly(field, cores),
            "topology.threads_per_core" => self.exactly(field, threads),
            "topology.sockets_per_node" => self.exactly(field, groups_per_node.unwrap_or(groups)),
            "latency.rmw.modified" | "latency.rmw.shared" => self.transfer(field, class, 1.0),
            "latency.store.modified" | "latency.store.shared" => {
                self.transfer(field, class, STORE_OVER_RMW)
            }
            "latency.load.modified" => self.transfer(field, class, LOAD_OVER_RMW),
            "latency.load.shared" if class > 0 => {
                self.transfer(field, class, LOAD_OVER_RMW * CLEAN_OVER_CHANGED)
            }
            "latency.load.uncached" | "latency.store.uncached" | "latency.rmw.uncached" => {
                self.memory(field, class)
            }
            "latency.load.shared" => self.last_level(field),
            "directory.hold" => self.hold(field),
            "directory.combining" => {
                self.combining(field).unwrap_or_else(|| self.of_similar(field, class))
            }
            "directory.contention" => {
                self.contention(field).unwrap_or_else(|| self.of_similar(field, class))
            }
            "directory.rmw_at_home" => self.rmw_at_home(field),
            _ => self.of_bursts(field).unwrap_or_else(|| self.of_similar(field, class)),
        }
    }

    fn exactly(&self, field: &'static Field, count: u32) -> Constant {
        let value = f64::from(count);
        Constant {
            field,
            class: None,
            value,
            low: value,
            high: value,
            provenance: Provenance::Cited,
            from: Some(self.observed.shape_from.clone()),
            note: None,
        }
    }

    /// How long a core keeps a line, if the description does not say it. It is the difference
    /// between many additions of a group and one; or the similar machine's value, if that leaves a
    /// way.
    fn kept(&self) -> f64 {
        let is_hold = |constant: &&Constant| constant.field.path == "directory.hold";
        if let Some(known) = self.observed.known.iter().find(is_hold) {
            return known.value;
        }
        let nearest = self.observed.hand_overs[0].ns.value * self.ghz;
        match self.near_service() {
            Some(service) => (service - nearest).clamp(0.0, MOST_HOLD * nearest).round(),
            None => (self.similar.directory.hold as f64).min(MOST_HOLD * nearest).round(),
        }
    }

    /// How long an atomic addition occupies a line, when all cores of a group add to it.
    fn near_service(&self) -> Option<f64> {
        let group = self.observed.shape.cores;
        bursts::service(self.bursts, |cores| cores <= group)
    }

    fn hold(&self, field: &'static Field) -> Constant {
        let similar = self.of_similar(field, 0);
        let value = self.kept();
        let (low, high) = (similar.low.min(value), similar.high.max(value));
        match self.near_service() {
            Some(service) => Constant {
                value,
                low,
                high,
                provenance: Provenance::Derived,
                from: self.bursts_source(),
                note: Some(format!(
                    "bursts: an addition keeps a line for {service:.0} cycles that all cores of a group want, less the way"
                )),
                ..similar
            },
            None => Constant {
                value,
                low,
                high,
                note: Some(format!(
                    "as {}, at most a third of the way to the nearest core",
                    self.like.name
                )),
                ..similar
            },
        }
    }

    /// How long an addition occupies a line beyond the ways between random cores, when all cores
    /// add to it.
    fn contention(&self, field: &'static Field) -> Option<Constant> {
        let group = self.observed.shape.cores;
        let service = bursts::service(self.bursts, |cores| cores > group)?;
        let pairs: Vec<usize> =
            self.distance.iter().flatten().map(|class| usize::from(*class)).collect();
        let way = |class: usize| self.observed.hand_overs[class].ns.value * self.ghz;
        let mean = pairs.iter().map(|class| way(*class)).sum::<f64>() / pairs.len() as f64;
        let far = pairs.iter().filter(|class| **class > 0).count() as f64 / pairs.len() as f64;
        let value = ((service - mean - self.kept()) / far.max(0.01)).max(0.0).round();
        let note = format!(
            "an addition keeps a line for {service:.0} cycles that all cores want, the ways between their sockets take {mean:.0}"
        );
        Some(self.burst_constant(field, value, around(value), &note))
    }

    /// How long an addition occupies the home of a line, if the home executes it. Additions by all
    /// cores then take turns in less time than a line needs from core to core.
    ///
    /// A core that gets the line and adds to it several times looks the same, unless there are
    /// bursts in which each core adds once. Where the similar machine's value is exact, its kind
    /// of processor never lets the home do it.
    fn rmw_at_home(&self, field: &'static Field) -> Constant {
        let similar = self.of_similar(field, 0);
        let without_end = bursts::service_without_end(self.bursts);
        let Some(service) = without_end.filter(|_| similar.low < similar.high) else {
            return similar;
        };
        let nearest = self.observed.hand_overs[0].ns.value * self.ghz;
        let slowest =
            bursts::service(self.bursts, |_| true).map_or(service, |one| service.max(one));
        let (value, what) = match slowest < nearest / 2.0 {
            true => (service.round(), "the line stays at its home"),
            false => (0.0, "the line moves"),
        };
        let note = format!(
            "additions by all cores follow each other after {service:.0} cycles, and a hand-over takes {nearest:.0}: {what}"
        );
        self.burst_constant(field, value, around(value), &note)
    }

    /// Whether reads of a group are combined. If they were, reads of a freshly written line by all
    /// cores would take little more than a group's reads and one way.
    fn combining(&self, field: &'static Field) -> Option<Constant> {
        let group = self.observed.shape.cores;
        let (all, within) =
            (bursts::all_reads(self.bursts, group)?, bursts::read_occupancy(self.bursts, group)?);
        let (value, what) = match all > within / 2.0 {
            true => (0.0, "not together"),
            false => (1.0, "together"),
        };
        let note = format!(
            "each of all cores that read a line adds {all:.0} cycles, each of a group {within:.0}: reads are served {what}"
        );
        Some(self.burst_constant(field, value, (0.0, 1.0), &note))
    }

    /// A constant that follows from bursts: its value, and the least and the largest that it may
    /// be.
    fn burst_constant(
        &self,
        field: &'static Field,
        value: f64,
        (low, high): (f64, f64),
        note: &str,
    ) -> Constant {
        Constant {
            field,
            class: None,
            value,
            low,
            high,
            provenance: Provenance::Derived,
            from: self.bursts_source(),
            note: Some(format!("bursts: {note}")),
        }
    }

    /// The key of the source of bursts, if the description names one.
    fn bursts_source(&self) -> Option<String> {
        self.observed.sources.contains_key("bursts").then(|| "bursts".to_owned())
    }

    /// The rest of a hand-over without the time for which a core keeps the line. `share` is that of
    /// an atomic operation.
    fn transfer(&self, field: &'static Field, class: usize, share: f64) -> Constant {
        let HandOver { ns, alone, from, note } = &self.observed.hand_overs[class];
        let kept = if *alone { 0.0 } else { self.kept() };
        let cycles = |ns: f64| (share * (ns * self.ghz - kept)).max(1.0).round();
        let Spread { value, low, high } = *ns;
        let what = match share {
            1.0 => String::new(),
            share => format!(", times {share:.3}: the ratio to atomic operations on Westmere-EX"),
        };
        let more = note.as_ref().map_or(String::new(), |note| format!("; {note}"));
        let less = match alone {
            true => "an atomic operation that no other core contends with".to_owned(),
            false => format!("one way of a hand-over, less {kept} cycles for which a line is kept"),
        };
        let note = format!("{value} ns at {} GHz, {less}{what}{more}", self.ghz);
        Constant {
            field,
            class: Some(class),
            value: cycles(value),
            low: cycles(low),
            high: cycles(high),
            provenance: Provenance::Derived,
            from: Some(from.clone()),
            note: Some(note),
        }
    }

    /// The distance to memory within a node is that of the similar machine; a farther node adds the
    /// way of a changed line.
    fn memory(&self, field: &'static Field, class: usize) -> Constant {
        let near = self.of_similar(field, 0);
        let hand_over = |class: usize| self.observed.hand_overs[class].ns.value * self.ghz;
        let farther = (hand_over(class) - hand_over(0)).max(0.0).round();
        let farther = if self.shares_node(class) { 0.0 } else { farther };
        let note = match farther {
            0.0 => near.note,
            farther => Some(format!(
                "as {} within a socket, and {farther} cycles of the way of a changed line",
                self.like.name
            )),
        };
        Constant {
            class: Some(class),
            value: near.value + farther,
            low: near.low + farther,
            high: near.high + farther,
            note,
            ..near
        }
    }

    /// Whether groups at this distance share memory.
    fn shares_node(&self, class: usize) -> bool {
        let Shape { groups, groups_per_node, .. } = self.observed.shape;
        class == 1 && groups > 1 && groups_per_node.unwrap_or(groups) > 1
    }

    /// A hit in the last level costs no more than a changed line of a neighbour.
    fn last_level(&self, field: &'static Field) -> Constant {
        let similar = self.of_similar(field, 0);
        let most = self.transfer(field, 0, LOAD_OVER_RMW).value;
        let value = similar.value.min(most);
        Constant { value, low: similar.low.min(value), ..similar }
    }

    /// A constant that bursts determine.
    fn of_bursts(&self, field: &'static Field) -> Option<Constant> {
        let group = self.observed.shape.cores;
        let (value, what) = match field.path {
            "latency.rmw_hit" => (bursts::rmw_hit(self.bursts)?, "atomic additions to own lines"),
            "directory.shared_read_occupancy" => (
                bursts::read_occupancy(self.bursts, group)?,
                "what each further core of a group adds to reads of a line that was just written",
            ),
            "directory.read_occupancy" => (
                bursts::all_reads(self.bursts, group)?,
                "what each of all cores adds to reads of a line that was just written",
            ),
            _ => return None,
        };
        let value = value.round().clamp(field.least, field.most);
        let range = ((0.7 * value).round().max(field.least), (1.4 * value).round().min(field.most));
        Some(self.burst_constant(field, value, range, what))
    }

    /// A value of the similar machine. Times that pass outside of the core are the same in
    /// nanoseconds.
    fn of_similar(&self, field: &'static Field, class: usize) -> Constant {
        let classes = self.similar.topology.distances();
        let there = self.like.constant(field.path, class.min(classes - 1));
        let there = there.expect("a model has all constants").clone();
        let outside = ["os.", "latency.load", "latency.store.", "latency.rmw.", "bandwidth."];
        let is_time = outside.iter().any(|start| field.path.starts_with(start));
        let scale = if is_time { self.ghz / self.similar.core.ghz } else { 1.0 };
        let scaled = |number: f64| match (is_time, field.unit.is_whole()) {
            (true, true) => (number * scale).round().clamp(field.least, field.most),
            _ => number,
        };
        let (value, low, high) = (scaled(there.value), scaled(there.low), scaled(there.high));
        let provenance = match there.provenance {
            Provenance::Cited | Provenance::Unverified => there.provenance,
            // Exact on the similar machine, and a guess on this one.
            _ if low == high => Provenance::Derived,
            _ => Provenance::Assumed,
        };
        let before = there.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
        Constant {
            field,
            class: field.per_distance.then_some(class),
            value,
            low,
            high,
            provenance,
            from: there.from.clone(),
            note: Some(format!("as {}{before}", self.like.name)),
        }
    }
}

/// How far a number of cycles that was computed from bursts may be off.
fn around(value: f64) -> (f64, f64) {
    ((0.7 * value).floor(), (1.4 * value).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        "schema = 1\nname = 'm'\nsummary = 's'\nlike = 'xeon-e5-2699v4-2x22'\n[sources]\nbursts = 'b'\nhere = 'h'\n\
         [topology]\npackages = 2\ngroups = 1\ncores = 10\nthreads = 1\nfrom = 'here'\n\
         [[hand_over]]\nns = 50\nlow = 40\nhigh = 60\nfrom = 'here'\n[[hand_over]]\nns = 150.0\nlow = 140\nhigh = 170\nfrom = 'here'\n\
         [constants]\n'core.ghz' = { value = 2.4, low = 2.4, high = 2.4, provenance = 'cited', from = 'here' }\n"
            .replace('\'', "\"")
    }

    #[test]
    fn additions_that_follow_each_other_fast_are_executed_at_home() {
        let at_home = |like: &str, bursts: &str| {
            let bursts = Burst::table("b", &format!("accesses,cores,cycles\n{bursts}")).unwrap();
            let text = text().replace("xeon-e5-2699v4-2x22", like);
            let model = Observed::parse("o", &text).unwrap().model(&bursts).unwrap();
            model.constant("directory.rmw_at_home", 0).unwrap().value
        };
        let of_arm = |bursts| at_home("graviton-64", bursts);
        assert_eq!(of_arm("add-without-end,10,200\n"), 20.0);
        assert_eq!(of_arm("add-without-end,10,1000\n"), 0.0);
        assert_eq!(of_arm(""), 0.0);
        // Each core adds several times while it has the line.
        assert_eq!(of_arm("add-without-end,10,200\nwrite-one,10,600\n"), 0.0);
        assert_eq!(of_arm("add-without-end,10,200\nwrite-one,10,100\n"), 20.0);
        assert_eq!(at_home("xeon-4x6", "add-without-end,10,200\n"), 0.0);
    }

    #[test]
    fn each_constant_names_its_origin() {
        let bursts =
            "accesses,cores,cycles\nwrite-own,1,30\nread-written,2,90\nread-written,10,250\n";
        let bursts = Burst::table("b", bursts).unwrap();
        let model = Observed::parse("o", &text()).unwrap().model(&bursts).unwrap();
        let value = |path: &str, class| model.constant(path, class).unwrap().value;
        // 50 ns are 120 cycles; a core keeps a line for 36 of these.
        assert_eq!(value("directory.hold", 0), 36.0);
        assert_eq!(value("latency.rmw.modified", 0), 84.0);
        assert_eq!(value("latency.rmw.modified", 1), 324.0);
        assert_eq!(value("latency.rmw_hit", 0), 30.0);
        assert_eq!(value("directory.shared_read_occupancy", 0), 40.0);
        assert_eq!(model.constant("latency.rmw_hit", 0).unwrap().from.as_deref(), Some("bursts"));
        let slice = model.constant("os.time_slice", 0).unwrap();
        assert!(slice.note.as_ref().unwrap().starts_with("as xeon-e5-2699v4"), "{slice:?}");
        assert_eq!(slice.value, 9_600_000.0);
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |from: &str, to: &str, word: &str| {
            let text = text().replace(from, to);
            let model = Observed::parse("o.toml", &text).and_then(|observed| observed.model(&[]));
            let message = model.unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        };
        refused("packages = 2", "packages = 3.5", "topology.packages");
        refused("groups = 1", "groups = 2", "hand_over");
        refused("low = 40", "low = 55", "outside of");
        refused("from = \"here\"\n[[", "from = \"there\"\n[[", "there");
        refused("xeon-e5-2699v4-2x22", "vax", "vax");
        refused("core.ghz", "core.hz", "core.hz");
        refused("cores = 10", "cores = 10\nshape = 1", "shape");
    }
}
