//! The constants of a machine.

use crate::machine::{Combining, Machine};

/// One constant, or one for each class of distance.
pub struct Field {
    /// Its name in a file.
    pub path: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its meaning, in one line.
    pub what: &'static str,
    /// Whether there is one for each class of distance.
    pub per_distance: bool,
    /// The optional part of a machine to which it belongs. A file has all fields of such a section,
    /// or none.
    pub section: Option<&'static str>,
    /// The smallest valid value.
    pub least: f64,
    /// The largest valid value.
    pub most: f64,
    place: fn(&mut Machine, usize) -> FieldRef<'_>,
}

/// The unit of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things, such as cores or ways.
    Count,
    /// Bytes.
    Bytes,
    /// Cycles of the core's clock.
    Cycles,
    /// Cycles a nanosecond.
    Gigahertz,
    /// A ratio.
    Factor,
    /// One of `CHOICES`.
    Choice,
}

/// The names of the choices, in the order of their numbers.
pub const CHOICES: [&str; 2] = ["none", "socket"];

impl Unit {
    /// Its name in tables; empty for a unit without a name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Cycles => "cycles",
            Self::Gigahertz => "GHz",
            Self::Count | Self::Factor | Self::Choice => "",
        }
    }

    /// Whether only whole numbers are valid.
    pub fn is_whole(self) -> bool {
        !matches!(self, Self::Gigahertz | Self::Factor)
    }
}

/// The field of a machine that a number sets.
enum FieldRef<'a> {
    Wide(&'a mut u64),
    Narrow(&'a mut u32),
    Real(&'a mut f64),
    Flag(&'a mut bool),
    Combining(&'a mut Combining),
    /// A skew for each core, drawn from the number.
    Skew(&'a mut Machine),
}

impl Field {
    /// Whether it is the cost of moving a line from one cache to another or from memory: a sweep
    /// over latencies scales these.
    pub fn is_transfer(&self) -> bool {
        self.per_distance
    }

    /// Stores a number in a machine.
    pub fn set(&self, machine: &mut Machine, class: usize, value: f64) {
        match (self.place)(machine, class) {
            FieldRef::Wide(place) => *place = value.round() as u64,
            FieldRef::Narrow(place) => *place = value.round() as u32,
            FieldRef::Real(place) => *place = value,
            FieldRef::Flag(place) => *place = value != 0.0,
            FieldRef::Combining(place) => {
                *place = if value == 0.0 { Combining::None } else { Combining::Socket };
            }
            FieldRef::Skew(machine) => machine.core.tsc_skew = skew(machine, value),
        }
    }
}

/// Sockets start their counters at different times; the cores of one socket agree. The golden ratio
/// spreads the sockets' offsets evenly from `-most` to `most`, so they are the same in every run.
fn skew(machine: &Machine, most: f64) -> Vec<i64> {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let topology = &machine.topology;
    if most == 0.0 || topology.sockets < 2 {
        return Vec::new();
    }
    let of_socket = |socket: u32| {
        let place = (f64::from(socket) * GOLDEN).fract();
        ((2.0 * place - 1.0) * most).round() as i64
    };
    (0..topology.cores()).map(|core| of_socket(topology.socket_of(core))).collect()
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

/// The section of a field that belongs to an optional part of a machine.
const fn section(path: &str) -> Option<&'static str> {
    match path.as_bytes() {
        [b'p', b'e', b'r', b's', b'i', b's', b't', b'.', ..] => Some("persist"),
        _ => None,
    }
}

macro_rules! fields {
    ($($unit:ident $path:literal, $least:literal to $most:literal, $what:literal
        => $kind:ident $($part:ident).* $([$class:ident])?;)*) => {
        /// All fields, in the order of a file.
        pub const FIELDS: &[Field] = &[$(Field {
            path: $path,
            unit: Unit::$unit,
            what: $what,
            per_distance: fields!(@per_distance $($class)?),
            section: section($path),
            least: $least as f64,
            most: $most as f64,
            place: |machine, _class| {
                $(let $class = _class;)?
                FieldRef::$kind(&mut (*machine)$(.$part)* $([$class])?)
            },
        }),*];
    };
    (@per_distance) => { false };
    (@per_distance $class:ident) => { true };
}

fields! {
    Count "topology.sockets", 1 to 64, "groups of cores that share a last-level cache" => Narrow topology.sockets;
    Count "topology.cores_per_socket", 1 to 1024, "cores of such a group" => Narrow topology.cores_per_socket;
    Count "topology.threads_per_core", 1 to 8, "hardware threads of a core" => Narrow topology.threads_per_core;
    Count "topology.sockets_per_node", 1 to 64, "such groups that share a memory node" => Narrow topology.sockets_per_node;
    Gigahertz "core.ghz", 0.1 to 10, "frequency" => Real core.ghz;
    Count "core.store_buffer", 0 to 1_000, "stores that may be on their way" => Narrow core.store_buffer;
    Cycles "core.fence", 0 to 10_000, "a fence, beside waiting for stores" => Wide core.fence;
    Count "core.prefetches", 0 to 1_000, "lines asked for ahead that may be on their way" => Narrow core.prefetches;
    Cycles "core.branch_miss", 0 to 1_000, "a branch that is guessed wrong" => Wide core.branch_miss;
    Cycles "core.pause", 0 to 10_000, "the pause instruction" => Wide core.pause;
    Cycles "core.clock_read", 0 to 10_000, "reading the time-stamp counter" => Wide core.clock_read;
    Factor "core.smt_slowdown", 1 to 8, "by what factor a thread computes more slowly beside a busy sibling" => Real core.smt_slowdown;
    Cycles "core.tsc_skew", 0 to 1e9, "how far a socket's time-stamp counter is from true time, at most" => Skew;
    Cycles "core.clock_boundary", 1 to 1e9, "by how much threads find two counters to differ, at most: what Ordo waits out" => Wide core.clock_boundary;
    Cycles "latency.store_hit", 0 to 1_000, "store to a line that the core owns" => Wide latency.store_hit;
    Cycles "latency.rmw_hit", 1 to 1_000, "atomic operation on a line that the core owns" => Wide latency.rmw_hit;
    Cycles "latency.load.modified", 1 to 100_000, "load of a line that another core has changed" => Wide latency.load.modified[class];
    Cycles "latency.load.shared", 1 to 100_000, "load of a line of which caches have clean copies; within the socket: a hit in the last level" => Wide latency.load.shared[class];
    Cycles "latency.load.uncached", 1 to 100_000, "load from memory" => Wide latency.load.uncached[class];
    Cycles "latency.store.modified", 1 to 100_000, "store to a line that another core has changed" => Wide latency.store.modified[class];
    Cycles "latency.store.shared", 1 to 100_000, "store to a line of which others have copies" => Wide latency.store.shared[class];
    Cycles "latency.store.uncached", 1 to 100_000, "store to a line in memory" => Wide latency.store.uncached[class];
    Cycles "latency.rmw.modified", 1 to 100_000, "atomic operation on a line that another core has changed" => Wide latency.rmw.modified[class];
    Cycles "latency.rmw.shared", 1 to 100_000, "atomic operation on a line of which others have copies" => Wide latency.rmw.shared[class];
    Cycles "latency.rmw.uncached", 1 to 100_000, "atomic operation on a line in memory" => Wide latency.rmw.uncached[class];
    Cycles "directory.hold", 0 to 10_000, "how long a core keeps a line that it has got for writing, at least" => Wide directory.hold;
    Choice "directory.combining", 0 to 1, "whether reads by the cores of a socket are served together" => Combining directory.combining;
    Count "directory.migratory", 0 to 1, "1: a load of a line that another core has changed takes it over; 0: both have a copy then" => Flag directory.migratory;
    Cycles "directory.shared_read_occupancy", 0 to 10_000, "how long a load of a clean line keeps its home busy" => Wide directory.shared_read_occupancy;
    Cycles "directory.read_occupancy", 0 to 100_000, "how long a load of a clean line that is not combined keeps its home busy; 100000: as long as its way" => Wide directory.read_occupancy;
    Cycles "directory.contention", 0 to 10_000, "how much longer a line takes to another socket if it was waited for" => Wide directory.contention;
    Cycles "directory.rmw_at_home", 0 to 10_000, "how long an atomic operation on a line that its core does not own keeps the home busy, which executes it; 0: the line moves to the core" => Wide directory.rmw_at_home;
    Cycles "caches.l1_hit", 1 to 100, "load that hits the first level" => Wide caches.l1_hit;
    Cycles "caches.same_line", 0 to 100, "load of the line that the load before it was of" => Wide caches.same_line;
    Cycles "caches.l2_hit", 1 to 1_000, "load that hits the second level" => Wide caches.l2_hit;
    Bytes "caches.l1.bytes", 1_024 to 1e9, "a core's first-level data cache" => Wide caches.l1.bytes;
    Count "caches.l1.ways", 1 to 1_024, "its lines a set" => Narrow caches.l1.ways;
    Bytes "caches.l2.bytes", 1_024 to 1e9, "a core's second-level cache" => Wide caches.l2.bytes;
    Count "caches.l2.ways", 1 to 1_024, "its lines a set" => Narrow caches.l2.ways;
    Bytes "caches.llc.bytes", 1_024 to 1e11, "a socket's last-level cache" => Wide caches.llc.bytes;
    Count "caches.llc.ways", 1 to 1_024, "its lines a set" => Narrow caches.llc.ways;
    Cycles "bandwidth.memory_occupancy", 0 to 10_000, "how long a line occupies a memory node" => Wide bandwidth.memory_occupancy;
    Cycles "bandwidth.link_occupancy", 0 to 10_000, "how long a line occupies a link between sockets" => Wide bandwidth.link_occupancy;
    Cycles "persist.flush", 0 to 10_000, "writing a line back to persistent memory, beside a load that hits" => Wide persist.flush;
    Cycles "persist.latency", 1 to 100_000, "from then on until the line is safe" => Wide persist.latency;
    Cycles "persist.occupancy", 0 to 10_000, "how long a line occupies the persistent memory of a node" => Wide persist.occupancy;
    Cycles "os.time_slice", 1_000 to 1e11, "how long a thread runs while others wait for its CPU" => Wide os.time_slice;
    Cycles "os.context_switch", 0 to 1e9, "from one thread to another on a CPU" => Wide os.context_switch;
    Cycles "os.migration", 0 to 1e9, "what a thread pays when it first runs on another CPU" => Wide os.migration;
    Cycles "os.futex_wait", 0 to 1e9, "the call that waits, until the CPU is free" => Wide os.futex_wait;
    Cycles "os.futex_wake", 0 to 1e9, "the call that wakes, if no thread waits" => Wide os.futex_wake;
    Cycles "os.wake_thread", 0 to 1e9, "what it takes more for each thread that it wakes" => Wide os.wake_thread;
    Cycles "os.wake_path", 0 to 1e9, "from the wake to the moment at which the other CPU can switch" => Wide os.wake_path;
    Cycles "os.idle_exit", 0 to 1e9, "what an idle CPU takes more" => Wide os.idle_exit;
    Cycles "os.yield_call", 0 to 1e9, "a yield while no other thread wants the CPU" => Wide os.yield_call;
    Cycles "os.timer_slack", 0 to 1e11, "how much longer a sleep takes than asked for" => Wide os.timer_slack;
}
