//! Cache coherence: the cost of an access, and the time at which it takes effect.
//!
//! Each line has a *home* that serves requests one at a time, in order of arrival. If its core's
//! caches cannot satisfy an access, it reserves the next free time at the home. It *takes effect
//! when its service starts*: until then the core that has the line may continue to use it, and to
//! retry. The access completes when the line has arrived.
//!
//! That point in time matters more than any latency. If requests took effect at once, the owner of
//! a line could never retry locally. If plain stores did not queue, the store that releases a lock
//! would overtake the waiting requests, and no lock would collapse.
//!
//! Where bursts were measured, a write does not wait for reads that queue: it takes as long as with
//! one reader. Those reads take effect after it.
//!
//! Reads need not queue if their socket has a copy, or will soon get one: see [`Combining`].

mod cache;
mod line;
mod placement;
mod traffic;

use self::cache::{Cache, Copy, Put};
use self::line::CoreId;
pub(crate) use self::line::Lines;
pub use self::placement::MemoryPolicy;
pub use self::traffic::Messages;
use self::traffic::Traffic;
use crate::machine::{Combining, Cycles, Machine, Misses};

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    /// A load for whose result no thread waits.
    Prefetch,
    Store,
    /// An atomic operation that a line's home may execute: an addition, an exchange.
    Rmw,
    /// An atomic operation that a core executes, since its result decides what the core does next.
    CompareAndSwap,
}

impl Kind {
    /// Whether the access only reads.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Load | Self::Prefetch)
    }

    /// Whether it is an atomic read-modify-write.
    pub(crate) fn is_atomic(self) -> bool {
        matches!(self, Self::Rmw | Self::CompareAndSwap)
    }
}

/// A reserved time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// The time at which the access takes effect.
    pub(crate) start: Cycles,
    /// The time at which it is complete.
    pub(crate) done: Cycles,
    /// For a load: whether its core will own the line, since no other core has it.
    exclusive: bool,
    /// For a load: whether another core will have to share the line.
    downgrades: bool,
    /// For a load: whether another core will lose the line.
    pub(crate) takes_over: bool,
    /// For an atomic operation: whether the home executes it.
    pub(crate) at_home: bool,
}

impl Service {
    /// For a load that gets a copy which other caches have as well.
    fn of_copy(start: Cycles, done: Cycles) -> Self {
        Self { start, done, exclusive: false, downgrades: false, takes_over: false, at_home: false }
    }
}

/// A read for which a socket waits.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    start: Cycles,
    done: Cycles,
    /// The time at which the socket's last level can give a copy to the next core.
    next: Cycles,
}

/// The number of a socket's reads of different lines that are known at a time; a thread that
/// requests a forgotten line pays a hit in the last-level cache.
const PENDING: usize = 16;

/// A socket: its last-level cache, and the reads for which it waits, in a ring.
#[derive(Debug)]
struct Socket {
    llc: Cache,
    /// The lines that are read, or [`NO_LINE`]; `pending` has the rest of each read's data.
    lines: [u32; PENDING],
    pending: [Pending; PENDING],
    next: usize,
}

const NO_LINE: u32 = u32::MAX;

#[derive(Debug)]
struct Private {
    l1: Cache,
    l2: Cache,
}

/// The caches, the directory and the memory of a machine.
#[derive(Debug)]
pub(crate) struct Coherence {
    machine: Machine,
    pub(crate) lines: Lines,
    cores: Vec<Private>,
    sockets: Vec<Socket>,
    /// The socket of each core.
    socket_of: Vec<u32>,
    /// The class of distance of each pair of sockets, row by row.
    classes: Vec<u8>,
    traffic: Traffic,
    /// The time of the last request.
    now: Cycles,
    pub(crate) policy: MemoryPolicy,
}

impl Coherence {
    pub(crate) fn new(machine: &Machine, lines: Lines) -> Self {
        let (topology, caches) = (&machine.topology, &machine.caches);
        let private = |_| Private { l1: Cache::new(caches.l1), l2: Cache::new(caches.l2) };
        let socket = |_| Socket {
            llc: Cache::new(caches.llc),
            lines: [NO_LINE; PENDING],
            pending: [Pending::default(); PENDING],
            next: 0,
        };
        Self {
            lines,
            cores: (0..topology.cores()).map(private).collect(),
            sockets: (0..topology.sockets).map(socket).collect(),
            socket_of: (0..topology.cores()).map(|core| topology.socket_of(core)).collect(),
            classes: topology.distance.iter().flatten().copied().collect(),
            traffic: Traffic::new(machine),
            now: 0,
            policy: MemoryPolicy::FirstTouch,
            machine: machine.clone(),
        }
    }

    pub(crate) fn messages(&self) -> &Messages {
        &self.traffic.messages
    }

    /// The cost of an access that the core's own caches satisfy.
    #[inline]
    pub(crate) fn hit(&mut self, line: u32, kind: Kind, core: u32) -> Option<Cycles> {
        let record = self.lines.get(line);
        let latency = &self.machine.latency;
        if kind.reads() {
            let copy = Copy { line, version: record.version };
            let private = &mut self.cores[core as usize];
            if private.l1.touch(copy) {
                return Some(self.machine.caches.l1_hit);
            }
            if !private.l2.touch(copy) {
                return None;
            }
            private.l1.put(copy);
            return Some(self.machine.caches.l2_hit);
        }
        if record.holder != CoreId::new(core) {
            return None;
        }
        record.writes = record.writes.wrapping_add(1);
        record.dirty = true;
        record.changed |= record.owner == record.holder;
        let version = record.version;
        let cost = if kind == Kind::Store { latency.store_hit } else { latency.rmw_hit };
        self.fill(line, core, version);
        Some(cost)
    }

    /// Reserves the next free time at the home of a line, for an access that has missed.
    pub(crate) fn reserve(&mut self, line: u32, kind: Kind, core: u32, now: Cycles) -> Service {
        self.now = now;
        if kind.reads() { self.read(line, core, now) } else { self.write(line, kind, core, now) }
    }

    fn read(&mut self, line: u32, core: u32, now: Cycles) -> Service {
        let socket = self.socket_of[core as usize];
        let record = self.lines.get(line);
        let (at_home, in_socket) = (record.at_home, record.sharers & 1 << socket != 0);
        if in_socket && !at_home && self.machine.directory.combining == Combining::Socket {
            return self.read_with_socket(line, socket, now);
        }
        let (owner, sharers) = (record.owner.get(), record.sharers);
        let start = record.busy.max(now);
        let changed = record.changed && owner.is_some_and(|owner| owner != core);
        let takes_over = changed && self.machine.directory.migratory;
        let travel = self.travel(line, Kind::Load, core, now);
        let hold = if takes_over { self.machine.directory.hold } else { 0 };
        let is_clean = owner.is_none() && sharers != 0;
        let directory = &self.machine.directory;
        let occupied = match is_clean {
            true => directory.occupied_by_read(travel, sharers == 1 << socket),
            false => travel + hold,
        };
        let is_overtaken = is_clean && directory.writes_overtake_reads();
        let record = self.lines.get(line);
        let exclusive = takes_over || owner.is_none() && (sharers == 0 || at_home);
        record.busy = start + occupied;
        record.at_home = false;
        if !is_overtaken {
            record.held = record.busy;
        }
        record.changed = false;
        if exclusive {
            record.owner = CoreId::new(core);
            record.sharers = 0;
        } else {
            let others = owner.map_or(sharers, |owner| 1 << self.socket_of[owner as usize]);
            record.sharers = others | 1 << socket;
            record.owner = CoreId::NONE;
            let (done, occupancy) = (start + travel, self.machine.directory.shared_read_occupancy);
            let pending = Pending { start, done, next: done + occupancy };
            self.sockets[socket as usize].push(line, pending);
        }
        let downgrades = owner.is_some() && !takes_over;
        let done = start + travel;
        Service { start, done, exclusive, downgrades, takes_over, at_home: false }
    }

    /// A read of a line of which the socket has a copy, or will have one after a read that is under
    /// way.
    fn read_with_socket(&mut self, line: u32, socket: u32, now: Cycles) -> Service {
        let hit = self.machine.latency.load.shared[0];
        let occupancy = self.machine.directory.shared_read_occupancy;
        let socket = &mut self.sockets[socket as usize];
        let Some(pending) = socket.pending(line) else {
            self.traffic.messages.transfers[0] += 1;
            socket.llc.touch(Copy { line, version: 0 });
            return Service::of_copy(now, now + hit);
        };
        // One core after the other gets a copy. The first core gets it when the line has arrived.
        let (start, done) = if pending.done > now {
            self.traffic.messages.combined += 1;
            (pending.start.max(now), pending.next)
        } else {
            self.traffic.messages.transfers[0] += 1;
            (now, pending.next.max(now + hit))
        };
        pending.next = done + occupancy;
        Service::of_copy(start, done)
    }

    fn write(&mut self, line: u32, kind: Kind, core: u32, now: Cycles) -> Service {
        let directory = &self.machine.directory;
        let (hold, rmw_at_home) = (directory.hold, directory.rmw_at_home);
        let record = self.lines.get(line);
        let start = record.held.max(now);
        let at_home = kind == Kind::Rmw && rmw_at_home > 0 && record.owner.get() != Some(core);
        let is_alone = record.at_home && record.sharers != 0;
        let travel = self.travel(line, kind, core, now);
        // The home waits for copies elsewhere, but not for its answer's way to the core.
        let occupied = match at_home {
            true if is_alone => rmw_at_home,
            true => travel,
            false => travel + hold,
        };
        let home = if at_home { self.home_socket(line, core) } else { 0 };
        let record = self.lines.get(line);
        record.held = start + occupied;
        // Reads that it overtakes are served all the same.
        record.busy = record.busy.max(start) + occupied;
        record.owner = if at_home { CoreId::NONE } else { CoreId::new(core) };
        record.changed = !at_home;
        record.sharers = if at_home { 1 << home } else { 0 };
        record.at_home = at_home;
        let done = start + travel;
        Service { start, done, exclusive: !at_home, downgrades: false, takes_over: false, at_home }
    }

    /// The socket whose last level is the home of a line.
    fn home_socket(&mut self, line: u32, core: u32) -> u32 {
        let socket = self.socket_of[core as usize];
        let node = self.home(line, socket);
        self.socket_at(node, socket)
    }

    /// The time that a line takes to a core, from where it will be after all requests so far.
    fn travel(&mut self, line: u32, kind: Kind, core: u32, now: Cycles) -> Cycles {
        let socket = self.socket_of[core as usize];
        let record = self.lines.get(line);
        let (from, modified) = match record.owner.get() {
            Some(owner) if owner != core => (self.socket_of[owner as usize], true),
            // The line was evicted, or sibling threads have requested it twice.
            Some(_) => (socket, false),
            None if record.sharers == 0 => return self.travel_from_memory(line, kind, socket, now),
            None => {
                let sharers = record.sharers;
                (self.copy_to_wait_for(sharers, kind, socket), false)
            }
        };
        let class = self.class(socket, from);
        let costs = self.costs(kind);
        let cost = if modified { costs.modified[class] } else { costs.shared[class] };
        let waited = class > 0 && self.lines.get(line).busy > now;
        let contention = if waited { self.machine.directory.contention } else { 0 };
        self.traffic.messages.transfers[class] += 1;
        cost + contention + self.traffic.link(from, socket, now)
    }

    fn travel_from_memory(&mut self, line: u32, kind: Kind, socket: u32, now: Cycles) -> Cycles {
        let node = self.home(line, socket);
        let from = self.socket_at(node, socket);
        let class = self.class(socket, from);
        self.traffic.messages.from_memory[class] += 1;
        let cost = self.costs(kind).uncached[class];
        cost + self.traffic.memory(node, now) + self.traffic.link(from, socket, now)
    }

    /// A socket at a node: this one if it is there.
    fn socket_at(&self, node: u32, socket: u32) -> u32 {
        let topology = &self.machine.topology;
        match topology.node_of(socket) == node {
            true => socket,
            false => (node * topology.sockets_per_node).min(topology.sockets - 1),
        }
    }

    /// The time at which a line will be safe in persistent memory. Its core has written it back at
    /// `now`, and keeps its copy.
    pub(crate) fn persisted(&mut self, line: u32, core: u32, now: Cycles) -> Cycles {
        let socket = self.socket_of[core as usize];
        let node = self.home(line, socket);
        let at = self.socket_at(node, socket);
        let uncached = &self.machine.latency.load.uncached;
        let farther = uncached[self.class(socket, at)].saturating_sub(uncached[0]);
        let way = self.machine.persist.latency + farther + self.traffic.link(socket, at, now);
        now + way + self.traffic.persist(node, now)
    }

    /// Of the sockets with clean copies, the nearest, from which a load gets the line, or the
    /// farthest, whose copy a write invalidates last.
    fn copy_to_wait_for(&self, sharers: u64, kind: Kind, socket: u32) -> u32 {
        let class = |other: &u32| self.class(socket, *other);
        let chosen = match kind {
            Kind::Load | Kind::Prefetch => bits(sharers).min_by_key(class),
            Kind::Store | Kind::Rmw | Kind::CompareAndSwap => bits(sharers).max_by_key(class),
        };
        chosen.unwrap_or(socket)
    }

    fn costs(&self, kind: Kind) -> &Misses {
        let latency = &self.machine.latency;
        match kind {
            Kind::Load | Kind::Prefetch => &latency.load,
            Kind::Store => &latency.store,
            Kind::Rmw | Kind::CompareAndSwap => &latency.rmw,
        }
    }

    /// The class of distance between two sockets.
    fn class(&self, a: u32, b: u32) -> usize {
        usize::from(self.classes[a as usize * self.sockets.len() + b as usize])
    }

    /// The service of a load starts: the core gets a copy.
    pub(crate) fn loaded(&mut self, line: u32, core: u32, service: &Service) {
        let record = self.lines.get(line);
        if service.exclusive {
            record.version = record.version.wrapping_add(u32::from(service.takes_over));
            record.holder = CoreId::new(core);
        } else if service.downgrades {
            if let Some(before) = record.holder.get() {
                let socket = self.socket_of[before as usize];
                self.share(line, socket);
            }
            self.lines.get(line).holder = CoreId::NONE;
        } else if let Some(writer) = record.holder.get()
            && self.machine.directory.writes_overtake_reads()
        {
            self.downgrade_overtaker(line, writer, core);
        }
        if !service.exclusive {
            self.share(line, self.socket_of[core as usize]);
        }
        let version = self.lines.get(line).version;
        self.fill(line, core, version);
    }

    /// A read that a write has overtaken gets its copy from the writer, which shares the line then.
    fn downgrade_overtaker(&mut self, line: u32, writer: u32, reader: u32) {
        let [of_writer, of_reader] = [writer, reader].map(|core| self.socket_of[core as usize]);
        self.share(line, of_writer);
        let record = self.lines.get(line);
        if record.owner == record.holder {
            record.owner = CoreId::NONE;
            record.sharers |= 1 << of_writer | 1 << of_reader;
        }
        record.holder = CoreId::NONE;
    }

    /// The service of a write starts: from now on it is the core's line, or no core's if the home
    /// executes it.
    pub(crate) fn written(&mut self, line: u32, core: u32, service: &Service) {
        let record = self.lines.get(line);
        record.holder = if service.at_home { CoreId::NONE } else { CoreId::new(core) };
        record.version = record.version.wrapping_add(1);
        record.writes = record.writes.wrapping_add(1);
        record.dirty = true;
        let version = record.version;
        if service.at_home {
            let home = self.home_socket(line, core);
            self.share(line, home);
        } else {
            self.fill(line, core, version);
        }
    }

    /// Puts a line into a core's own caches.
    #[inline]
    fn fill(&mut self, line: u32, core: u32, version: u32) {
        let copy = Copy { line, version };
        let private = &mut self.cores[core as usize];
        if private.l1.put(copy) == Put::Present {
            return;
        }
        if let Put::New(Some(gone)) = private.l2.put(copy) {
            self.evict_private(gone, core);
        }
    }

    /// A line leaves a core's own caches. If no other core had it, the socket keeps it.
    fn evict_private(&mut self, gone: Copy, core: u32) {
        let record = self.lines.get(gone.line);
        let own = CoreId::new(core);
        // If another request has reserved the line already, its owner is about to lose it.
        if record.version != gone.version || record.holder != own || record.owner != own {
            return;
        }
        let socket = self.socket_of[core as usize];
        record.holder = CoreId::NONE;
        record.owner = CoreId::NONE;
        record.sharers = 1 << socket;
        self.share(gone.line, socket);
    }

    /// Puts a line into a socket's last-level cache.
    fn share(&mut self, line: u32, socket: u32) {
        // There is one copy a socket, whatever its version: the directory knows whether it counts.
        let put = self.sockets[socket as usize].llc.put(Copy { line, version: 0 });
        let Put::New(Some(gone)) = put else { return };
        let record = self.lines.get(gone.line);
        record.sharers &= !(1 << socket);
        if record.sharers == 0 && record.owner == CoreId::NONE && record.dirty {
            record.dirty = false;
            self.traffic.messages.write_backs += 1;
            let node = self.home(gone.line, socket);
            self.traffic.memory(node, self.now);
        }
    }

    /// The memory node of a line; the first access to its page chooses it.
    fn home(&mut self, line: u32, socket: u32) -> u32 {
        let (toucher, nodes) =
            (self.machine.topology.node_of(socket), self.machine.topology.nodes());
        let policy = self.policy;
        let home = self.lines.page_home(line);
        if *home == 0 {
            *home = policy.node(line, toucher, nodes) as u8 + 1;
        }
        u32::from(*home) - 1
    }
}

impl Socket {
    fn push(&mut self, line: u32, pending: Pending) {
        self.lines[self.next] = line;
        self.pending[self.next] = pending;
        self.next = (self.next + 1) % PENDING;
    }

    /// The last read of a line by this socket.
    fn pending(&mut self, line: u32) -> Option<&mut Pending> {
        // Requests for a line are served in the order of their arrival, so the last read is the one
        // that came last.
        let mut latest_first = (0..PENDING).map(|back| (self.next + PENDING - 1 - back) % PENDING);
        let place = latest_first.find(|place| self.lines[*place] == line)?;
        Some(&mut self.pending[place])
    }
}

/// The numbers of the bits that are set, in ascending order.
fn bits(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros());
        set &= set.wrapping_sub(1);
        first
    })
}
