//! AIM7: processes that make processes. All come from one ancestor, so they share the locks of its
//! `anon_vma`s, its mapped files, and the log that was open when they were made.

use manycore_sim::thread;

use super::locks::{Kernel, Line, Mutex, Semaphore, Site, Spin, Tally, read, write};
use super::numbers::Numbers;
use super::run_queues::RunQueues;
use crate::simulated::Window;
use manycore_simulated::sync::CachePadded;
use manycore_traits::RawRwLock;

/// A tree of mappings, with a node in it for each process.
struct Tree {
    lock: Semaphore,
    nodes: Vec<Line>,
}

impl Tree {
    fn new(processes: u32) -> Self {
        Self {
            lock: CachePadded(RawRwLock::new()),
            nodes: (0..processes).map(|_| Line::default()).collect(),
        }
    }

    fn any(&self, random: &mut fastrand::Rng) -> &Line {
        &self.nodes[random.usize(..self.nodes.len())]
    }

    /// Descends from the top to the position of a node.
    fn descend(&self, random: &mut fastrand::Rng) {
        (0..self.nodes.len().ilog2()).for_each(|_| read(self.any(random)));
    }

    /// Links a process's node to a neighbour, or unlinks it.
    fn link(&self, me: u32, random: &mut fastrand::Rng) {
        write(self.any(random));
        write(&self.nodes[me as usize]);
    }
}

/// What the processes share.
pub(super) struct Processes<'a> {
    numbers: &'a Numbers,
    ghz: f64,
    window: Window,
    anonymous: Vec<Tree>,
    files: Vec<Tree>,
    log: (Mutex, Line),
    task_list: (Spin, Line),
}

impl<'a> Processes<'a> {
    pub fn new(numbers: &'a Numbers, ghz: f64, window: Window, processes: u32) -> Self {
        let trees = |name| (0..numbers.count(name)).map(|_| Tree::new(processes)).collect();
        Self {
            numbers,
            ghz,
            window,
            anonymous: trees("roots"),
            files: trees("files"),
            log: (CachePadded(manycore_simulated::lock::Futex::new()), Line::default()),
            task_list: (CachePadded(manycore_simulated::lock::Ticket::new()), Line::default()),
        }
    }

    fn compute(&self, ns: f64) {
        thread::compute((ns * self.ghz) as u64);
    }

    /// A process' share of the work of a job: making one process, which ends, and a line in the
    /// log.
    pub fn operation(
        &self,
        me: u32,
        tally: &Tally,
        threads: &RunQueues,
        random: &mut fastrand::Rng,
    ) {
        let own = Own { me, tally, threads };
        let mappings = self.numbers.count("mappings");
        let file_mappings = self.numbers.count("file_mappings");
        // Half of it is the fork's, half of it the exit's.
        let step = self.numbers.get("fork_ns") / 2.0 / (mappings + file_mappings) as f64;
        self.lock_tasks(&own);
        for mapping in 0..mappings {
            self.compute(step);
            self.fork_anonymous(mapping, &own, random);
        }
        for mapping in 0..file_mappings {
            self.compute(step);
            self.link_file(mapping, &own, random);
        }
        let wake_ups = self.numbers.get("wake_ups") as usize;
        (0..wake_ups).for_each(|_| threads.wake_up(random, me, tally));
        for mapping in 0..mappings {
            self.compute(step);
            self.exit_anonymous(mapping, &own, random);
        }
        for mapping in 0..file_mappings {
            self.compute(step);
            self.link_file(mapping, &own, random);
        }
        let rest = self.numbers.get("tasklist") as usize;
        (1..rest).for_each(|_| self.lock_tasks(&own));
        if random.f64() < self.numbers.get("jobs") {
            self.write_log(&own);
        }
    }

    /// A section with a tree's lock, for writing.
    fn section(&self, tree: &Tree, site: Site, own: &Own, inside: impl FnOnce()) {
        let lock = &*tree.lock;
        let waited = own.tally.take(site, self.window, || lock.attempt(), || lock.wait());
        inside();
        lock.leave();
        own.threads.after_wait(waited, own.me, own.tally);
    }

    fn tree(&self, mapping: usize) -> &Tree {
        // The last ones share with their neighbours.
        &self.anonymous[mapping % self.anonymous.len()]
    }

    /// Links a child's mapping to the trees of the ancestor and of the user, and then makes one of
    /// its own. Only the ancestor's is shared with other users.
    fn fork_anonymous(&self, mapping: usize, own: &Own, random: &mut fastrand::Rng) {
        let tree = self.tree(mapping);
        let alloc = self.numbers.get("alloc_ns");
        self.section(tree, Site::Clone, own, || {
            self.compute(2.0 * alloc);
            tree.descend(random);
            tree.link(own.me, random);
        });
        self.compute(2.0 * alloc);
        self.section(tree, Site::Fork, own, || write(&tree.nodes[own.me as usize]));
        self.walk(3.0, own, random);
    }

    fn exit_anonymous(&self, mapping: usize, own: &Own, random: &mut fastrand::Rng) {
        let tree = self.tree(mapping);
        self.section(tree, Site::Unlink, own, || {
            self.compute(3.0 * self.numbers.get("alloc_ns"));
            tree.link(own.me, random);
        });
        // Its own anon_vma is freed; a thread that is using it has to have left. If the lock is
        // free, there is no wait.
        match tree.lock.attempt() {
            true => tree.lock.leave(),
            false => self.section(tree, Site::Put, own, || ()),
        }
    }

    /// The number of walks that belongs to this many writes, over a page that all users still
    /// share.
    fn walk(&self, writes: f64, own: &Own, random: &mut fastrand::Rng) {
        if random.f64() >= writes * self.numbers.get("walks") {
            return;
        }
        let tree = &self.anonymous[random.usize(..self.anonymous.len())];
        let lock = &*tree.lock;
        let waited = own.tally.take(
            Site::Walk,
            self.window,
            || lock.try_acquire_read(),
            || lock.acquire_read(),
        );
        for node in &tree.nodes {
            read(node);
            self.compute(self.numbers.get("visit_ns"));
        }
        // SAFETY: `take` has acquired the lock for reading, in this thread.
        unsafe { lock.release_read() };
        own.threads.after_wait(waited, own.me, own.tally);
    }

    /// Links a mapping of a file beside its parent's, or unlinks it.
    fn link_file(&self, mapping: usize, own: &Own, random: &mut fastrand::Rng) {
        let tree = &self.files[mapping % self.files.len()];
        self.section(tree, Site::FileMapping, own, || tree.link(own.me, random));
    }

    fn lock_tasks(&self, own: &Own) {
        let (lock, line) = &self.task_list;
        own.tally.take(Site::TaskList, self.window, || lock.attempt(), || lock.wait());
        write(line);
        self.compute(self.numbers.get("tasklist_ns"));
        lock.leave();
    }

    fn write_log(&self, own: &Own) {
        let (lock, line) = &self.log;
        let waited = own.tally.take(Site::Log, self.window, || lock.attempt(), || lock.wait());
        write(line);
        self.compute(self.numbers.get("log_ns"));
        lock.leave();
        own.threads.after_wait(waited, own.me, own.tally);
    }
}

/// The processes that simulate.
struct Own<'a> {
    me: u32,
    tally: &'a Tally,
    threads: &'a RunQueues<'a>,
}
