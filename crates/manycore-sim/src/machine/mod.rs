//! The simulator's description of a machine.
//!
//! It consists of plain numbers, as the engine uses them. The module that fills them in documents
//! their sources, and how certain each is. All times are in cycles of the core's clock unless a
//! field says otherwise.
//!
//! A *socket* is a group of cores that share a last-level cache. A package with several such
//! groups, as AMD's EPYC, is several sockets at a short distance, with one memory node for all of
//! them ([`Topology::sockets_per_node`]).
//!
//! A *distance* is a class: 0 within a socket, then 1, 2, ... for the distances that the machine
//! distinguishes, such as one and two hops. [`Topology::distance`] gives the class of each pair of
//! sockets, and each table of latencies has an entry for each class.

mod example;
mod topology;

pub use topology::Topology;

/// A length of time in cycles of the core's clock.
pub type Cycles = u64;

/// A machine, as the simulator uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The machine's name in reports.
    pub name: String,
    /// Sockets, cores and the distances between them.
    pub topology: Topology,
    /// The costs of an access that leaves the core, and of accesses that stay in it.
    pub latency: Latencies,
    /// How the home of a line serves requests.
    pub directory: Directory,
    /// The sizes of caches, and the costs of hits.
    pub caches: Caches,
    /// The bandwidth of memory and of the links between sockets.
    pub bandwidth: Bandwidth,
    /// Memory that keeps its contents without power.
    pub persist: Persist,
    /// The properties of a core.
    pub core: Core,
    /// The operating system.
    pub os: Os,
}

impl Machine {
    /// An assumed [`Core::clock_boundary`], for models without a measured one. Threads measure it
    /// by sending each other their counters' values. So it consists of a message's way between the
    /// two cores that are farthest apart, two reads of a counter, and the skew.
    pub fn derived_clock_boundary(&self) -> Cycles {
        let furthest = |costs: &[Cycles]| costs.iter().copied().max().unwrap_or(0);
        let message =
            furthest(&self.latency.store.modified) + furthest(&self.latency.load.modified);
        message + 2 * self.core.clock_read + self.core.clock_difference()
    }
}

impl Core {
    /// The largest difference between the time-stamp counters of two cores.
    pub fn clock_difference(&self) -> Cycles {
        let skews = || self.tsc_skew.iter().copied();
        skews().max().unwrap_or(0).abs_diff(skews().min().unwrap_or(0))
    }
}

/// The cost of an access by operation, state of the line and distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// A load that misses.
    pub load: Misses,
    /// A store that misses: the time until the line can be written. The store buffer may hide it
    /// from the thread.
    pub store: Misses,
    /// An atomic read-modify-write that misses.
    pub rmw: Misses,
    /// A store to a line that the core owns.
    pub store_hit: Cycles,
    /// An atomic read-modify-write of a line that the core owns.
    pub rmw_hit: Cycles,
}

/// The cost of a miss: by state of the line, with an entry for each class of distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Misses {
    /// Another core owns the line, modified or exclusive: by the distance to its socket.
    pub modified: Vec<Cycles>,
    /// Caches hold clean copies. For a load, by the distance to the nearest copy, so entry 0 is a
    /// hit in the socket's own last-level cache. For a store or read-modify-write, which
    /// invalidates all copies, by the distance to the farthest one.
    pub shared: Vec<Cycles>,
    /// The line is in no cache: by the distance to its memory node.
    pub uncached: Vec<Cycles>,
}

/// How the home of a line serves requests: one at a time, in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Directory {
    /// The shortest time for which a core keeps a line that it has got for writing.
    pub hold: Cycles,
    /// Whether reads are served together.
    pub combining: Combining,
    /// Whether a load of a line that another core has changed takes the line over, so that this
    /// core can change it next without a request. If not, both cores have a copy afterwards.
    pub migratory: bool,
    /// How long a load that gets a clean copy from its socket's last level keeps other cores of the
    /// socket from the same line there. Requests to the home do so for their whole duration.
    pub shared_read_occupancy: Cycles,
    /// How long a load of a line with clean copies occupies the line's home:
    /// [`AS_LONG_AS_ITS_WAY`](Self::AS_LONG_AS_ITS_WAY), less if the home serves the next request
    /// meanwhile, or more if one cache serves all reads. Where a socket's reads are combined, this
    /// is about the first of them; where they are not and only one socket has copies, a load from
    /// there takes `shared_read_occupancy`.
    pub read_occupancy: Cycles,
    /// How much longer a line takes to another socket if its home was busy at the request:
    /// colliding requests of several sockets are refused and repeated.
    pub contention: Cycles,
    /// How long an atomic read-modify-write occupies the line's home, if the home executes it. It
    /// does so unless the core owns the line. With 0, the line moves to the core instead.
    pub rmw_at_home: Cycles,
}

impl Directory {
    /// As `read_occupancy`: for the whole way of the line.
    pub const AS_LONG_AS_ITS_WAY: Cycles = 100_000;

    /// How long a load of a line with clean copies keeps its home busy, if it takes this long.
    pub(crate) fn occupied_by_read(&self, travel: Cycles, within_socket: bool) -> Cycles {
        match self.read_occupancy {
            Self::AS_LONG_AS_ITS_WAY => travel,
            occupancy if within_socket => self.shared_read_occupancy.min(occupancy),
            occupancy => occupancy,
        }
    }

    /// Whether a write does not wait for reads that the home has yet to serve. Bursts on both
    /// machines for which there are any show it: one write takes as long beside 47 readers as
    /// beside one.
    pub(crate) fn writes_overtake_reads(&self) -> bool {
        self.read_occupancy != Self::AS_LONG_AS_ITS_WAY
    }
}

/// Which reads of a line are served together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combining {
    /// None: each is served by itself.
    None,
    /// Reads of a socket: a core that requests a line while another core of the socket is being
    /// served gets a copy of that core's answer.
    Socket,
}

/// Caches. Lines have 64 bytes everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Caches {
    /// A core's first level.
    pub l1: Capacity,
    /// A load that hits the first level.
    pub l1_hit: Cycles,
    /// A load from the same line as the load before it: its address is known as early, so it does
    /// not wait for that load.
    pub same_line: Cycles,
    /// A core's second level.
    pub l2: Capacity,
    /// A load that hits the second level.
    pub l2_hit: Cycles,
    /// A socket's last level; a hit costs `latency.load.shared[0]`.
    pub llc: Capacity,
}

/// The size of a cache. Replacement is least recently used within a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Its size in bytes, at least `ways` lines. The number of sets need not be a power of two.
    pub bytes: u64,
    /// Lines a set.
    pub ways: u32,
}

/// The bandwidth of memory and links: how long one line occupies each.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    /// The time for which reading or writing back a line occupies a memory node. 0: without limit.
    pub memory_occupancy: Cycles,
    /// The time for which a line occupies the link between two sockets, in one direction. 0:
    /// without limit.
    pub link_occupancy: Cycles,
}

/// Memory that keeps its contents without power: a changed line is safe some time after an
/// instruction, such as x86's `clwb`, has written it back. All zeros if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persist {
    /// The cost of that instruction, beside a load that hits.
    pub flush: Cycles,
    /// The time from then on until the line is safe in the memory of its core's node. 0: there is
    /// no such memory.
    pub latency: Cycles,
    /// How long a line occupies the memory of a node; it is safe at the start of that time.
    pub occupancy: Cycles,
}

impl Persist {
    /// Whether the machine has such memory.
    pub fn is_there(&self) -> bool {
        self.latency > 0
    }
}

/// The properties of a core.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// Frequency, to convert cycles to seconds.
    pub ghz: f64,
    /// The frequency of the time-stamp counter; none if it counts cycles, as in all models.
    pub counter_ghz: Option<f64>,
    /// The most pending stores before a core has to wait for the oldest. 0: the core waits for each
    /// store.
    pub store_buffer: u32,
    /// The cost of a fence, beside the wait for pending stores.
    pub fence: Cycles,
    /// The number of prefetched lines that may be on their way at a time, for all of its hardware
    /// threads. With 0, none is prefetched.
    pub prefetches: u32,
    /// The cost of a mispredicted branch.
    pub branch_miss: Cycles,
    /// One iteration of a polling loop: the pause instruction.
    pub pause: Cycles,
    /// The cost of reading the time-stamp counter.
    pub clock_read: Cycles,
    /// The factor by which a hardware thread computes more slowly while a sibling computes as well.
    /// At least 1.
    pub smt_slowdown: f64,
    /// For each core, how far its time-stamp counter is ahead of true time; empty if all agree.
    pub tsc_skew: Vec<i64>,
    /// The largest difference between the counters of two cores, as measured by threads. This is
    /// Ordo's boundary, the time to wait where an order of times matters. It is no less than the
    /// real difference.
    pub clock_boundary: Cycles,
}

/// The operating system's scheduler and system calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Os {
    /// How long a thread may run while others wait for its CPU.
    pub time_slice: Cycles,
    /// The cost of a switch from one thread to another on the same CPU.
    pub context_switch: Cycles,
    /// A thread's additional cost when it first runs on another CPU than before.
    pub migration: Cycles,
    /// `futex` wait: the time from the call until the CPU is free for others; also the cost of a
    /// wait that does not sleep.
    pub futex_wait: Cycles,
    /// `futex` wake that finds no sleeping thread.
    pub futex_wake: Cycles,
    /// The additional cost of `futex` wake to its caller, for each thread woken on another CPU.
    pub wake_thread: Cycles,
    /// The time from waking a thread to the moment at which its CPU can switch to it. If that is
    /// the waking thread's own CPU, the caller pays this, and not `wake_thread`.
    pub wake_path: Cycles,
    /// The additional time that a CPU without a thread takes to leave its idle state.
    pub idle_exit: Cycles,
    /// `sched_yield` that finds no other thread to run.
    pub yield_call: Cycles,
    /// The delay with which a sleeping thread is woken (Linux: the timer slack).
    pub timer_slack: Cycles,
}

impl Os {
    /// The time that a CPU takes to leave its idle state, if it has been without a thread for this
    /// long. While it switches to its idle task it is not in an idle state yet, and notices a new
    /// thread by itself.
    pub fn idle_exit(&self, idle_for: Cycles) -> Cycles {
        if idle_for < self.context_switch { 0 } else { self.idle_exit }
    }
}
