//! The notes of a process in addition to the counts of its locks: threads, each thread's waits,
//! holders, orders, queues.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::decode::{get, get32};
use manycore_stats::{
    Blocked, HELD, Mapping, ORDERS, Order, Record, SEVERAL, SHARED, SLABS, Slab, THREAD_ENTRIES,
    ThreadEntry, WAITS_APART, WAITS_PROBES, queue,
};

/// The notes of a process that are not summed up yet.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Threads, by entry.
    pub thread_entries: Vec<ListedThread>,
    /// The number of threads that found no entry: entry 0 has their sum.
    pub unlisted: u32,
    /// Waits of a thread for a lock.
    pub waits: Vec<EntryWaits>,
    /// Which thread made which other wait.
    pub blocked: Vec<Held>,
    /// In which order locks were taken.
    pub orders: Vec<Taken>,
    /// Queues of several threads.
    pub queues: Vec<Queue>,
    /// Threads that wait with other locks held.
    pub stuck: Vec<Stuck>,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedThread {
    pub number: u32,
    pub thread: u32,
    pub name: String,
    /// CPU time at the process' end, in nanoseconds: outside of the kernel, and in it.
    pub at_end: Option<(u64, u64)>,
    /// CPU time when it was last measured, in nanoseconds.
    pub cpu_ns: u64,
    pub acquired: u64,
    pub wait: u64,
    /// As the samples say it of all.
    pub spin_ns: u64,
}

/// A thread's waits for a lock; times in ticks.
#[derive(Clone, Debug)]
pub(crate) struct EntryWaits {
    pub thread_entry: u32,
    pub record: u32,
    pub contended: u64,
    pub wait: u64,
}

/// Sampled waits at one place for a lock that was taken at another; times in ticks.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub record: u32,
    /// A return address; 0 if it is not known.
    pub holder: u64,
    /// The number of the stack that waited.
    pub stack: u32,
    pub waits: u64,
    pub wait: u64,
}

/// A lock that was taken with another one held.
#[derive(Debug)]
pub(crate) struct Taken {
    pub held: u32,
    pub wanted: u32,
    pub held_shared: bool,
    pub wanted_shared: bool,
    /// The thread's entry; none if several did so.
    pub thread_entry: Option<u32>,
    /// Other locks that were held exclusively each time.
    pub guards: Vec<u32>,
    pub held_caller: u64,
    /// The number of the stack by which the second one was taken.
    pub stack: u32,
    pub seen: u64,
}

/// A thread that waits for a lock, now or when its process ended.
#[derive(Debug)]
pub(crate) struct Stuck {
    pub wanted: u32,
    /// Whether it gives up after a time.
    pub gives_up: bool,
    pub held: Vec<u32>,
}

/// A queue; times in ticks.
#[derive(Debug)]
pub(crate) struct Queue {
    pub record: u32,
    pub lasted: u64,
    /// When it was over.
    pub end: u64,
    pub most: u64,
}

impl Noted {
    /// The threads' waits since an earlier moment, and the threads for which they waited. The other
    /// notes are left out, because an interval says little about them.
    pub fn since(&self, before: &Self) -> Self {
        let waits: HashMap<_, _> =
            before.waits.iter().map(|one| ((one.thread_entry, one.record), one)).collect();
        let blocked: HashMap<_, _> =
            before.blocked.iter().map(|one| ((one.record, one.holder, one.stack), one)).collect();
        let thread_entries: HashMap<_, _> =
            before.thread_entries.iter().map(|one| (one.number, one)).collect();
        let mut since = self.until_now();
        for thread_entry in &mut since.thread_entries {
            let before = thread_entries.get(&thread_entry.number).map_or(0, |old| old.acquired);
            thread_entry.acquired = thread_entry.acquired.saturating_sub(before);
        }
        for one in &mut since.waits {
            if let Some(old) = waits.get(&(one.thread_entry, one.record)) {
                one.contended = one.contended.saturating_sub(old.contended);
                one.wait = one.wait.saturating_sub(old.wait);
            }
        }
        since.waits.retain(|one| one.contended > 0);
        for one in &mut since.blocked {
            if let Some(old) = blocked.get(&(one.record, one.holder, one.stack)) {
                one.waits = one.waits.saturating_sub(old.waits);
                one.wait = one.wait.saturating_sub(old.wait);
            }
        }
        since.blocked.retain(|one| one.waits > 0);
        since
    }

    /// The same without the rest.
    pub fn until_now(&self) -> Self {
        let Self { thread_entries, unlisted, waits, blocked, .. } = self;
        Self {
            thread_entries: thread_entries.clone(),
            unlisted: *unlisted,
            waits: waits.clone(),
            blocked: blocked.clone(),
            ..Self::default()
        }
    }
}

/// Reads what a process noted.
pub(crate) fn read(mapping: &Mapping) -> Noted {
    let header = &mapping.header;
    let slabs = &mapping.slabs[..(get32(&header.slabs) as usize).min(SLABS)];
    let thread_entries = &mapping.thread_entries
        [..(get32(&header.thread_entries) as usize).clamp(1, THREAD_ENTRIES)];
    let records = get32(&header.records) as usize;
    let in_slabs = acquired(slabs);
    let in_steps = steps(slabs);
    let listed = |(number, thread_entry): (usize, &ThreadEntry)| {
        let more = in_slabs.get(&(number as u32)).copied().unwrap_or(0);
        listed(number as u32, thread_entry, more)
    };
    let unlisted = get32(&mapping.thread_entries[0].thread);
    let first = usize::from(unlisted == 0);
    let records = mapping.records.iter().enumerate().take(records).skip(1);
    Noted {
        thread_entries: thread_entries.iter().enumerate().skip(first).map(listed).collect(),
        unlisted,
        waits: waits(mapping, thread_entries.len()),
        blocked: mapping.blocked.iter().filter_map(blocked).collect(),
        orders: mapping
            .orders
            .iter()
            .enumerate()
            .filter_map(|(number, order)| {
                taken(order, in_steps.get(&(number as u32)).copied().unwrap_or(0))
            })
            .collect(),
        stuck: slabs.iter().filter_map(stuck).collect(),
        queues: records
            .flat_map(|(number, record)| queues(number as u32, record, get(&header.ended)))
            .collect(),
    }
}

/// Acquisitions that are in slabs, by entry.
fn acquired(slabs: &[Slab]) -> HashMap<u32, u64> {
    let mut by_thread_entry = HashMap::new();
    for slab in slabs {
        let sum: u64 = slab.slots.iter().map(|slot| get(&slot.acquired) + get(&slot.shared)).sum();
        *by_thread_entry.entry(get32(&slab.thread_entry)).or_default() += sum;
    }
    by_thread_entry
}

fn stuck(slab: &Slab) -> Option<Stuck> {
    let (wanted, depth) = (get32(&slab.waiting), get32(&slab.depth) as usize);
    let held = slab.held[..depth.min(HELD)].iter().filter(|held| get(&held.object) != 0);
    let held = held.map(|held| get32(&held.record));
    let gives_up = get32(&slab.gives_up) != 0;
    (wanted != 0 && depth != 0).then(|| Stuck { wanted, gives_up, held: held.collect() })
}

/// Steps that are in slabs, by order.
fn steps(slabs: &[Slab]) -> HashMap<u32, u64> {
    let mut by_order = HashMap::new();
    for step in slabs.iter().flat_map(|slab| &slab.steps).filter(|step| get(&step.key) != 0) {
        *by_order.entry(get32(&step.order) % ORDERS as u32).or_default() += get(&step.seen);
    }
    by_order
}

fn listed(number: u32, thread_entry: &ThreadEntry, in_slab: u64) -> ListedThread {
    // Acquire, both: partners of the Releases by which the process publishes the filled-in entry,
    // and the end.
    let thread = thread_entry.thread.load(Ordering::Acquire);
    // Acquire: as above.
    let has_ended = thread_entry.ended.load(Ordering::Acquire) != 0;
    let name = thread_entry.name.iter().flat_map(|word| get(word).to_le_bytes());
    let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
    // The samples stand for all.
    let spin_ns = get(&thread_entry.spin_ns) as f64 * get(&thread_entry.contended) as f64
        / get(&thread_entry.sampled).max(1) as f64;
    ListedThread {
        number,
        thread,
        name: String::from_utf8_lossy(&name).into_owned(),
        at_end: has_ended.then(|| (get(&thread_entry.user_ns), get(&thread_entry.kernel_ns))),
        cpu_ns: get(&thread_entry.cpu_ns),
        acquired: get(&thread_entry.acquired) + in_slab,
        wait: get(&thread_entry.wait),
        spin_ns: spin_ns as u64,
    }
}

fn waits(mapping: &Mapping, thread_entries: usize) -> Vec<EntryWaits> {
    // Reading a page that was never written takes memory for it, so only the pages are read that
    // these entries can have used.
    let near = mapping.waits.iter().take(thread_entries * WAITS_APART + WAITS_PROBES);
    let used = near.filter(|waits| get(&waits.key) != 0);
    used.map(|waits| EntryWaits {
        thread_entry: (get(&waits.key) >> 32) as u32,
        record: get(&waits.key) as u32,
        contended: get(&waits.contended),
        wait: get(&waits.wait),
    })
    .collect()
}

fn blocked(blocked: &Blocked) -> Option<Held> {
    // Acquire: partner of the Release by which the process publishes the filled-in place.
    let record = blocked.record.load(Ordering::Acquire);
    (record != 0).then(|| Held {
        record,
        holder: get(&blocked.holder),
        stack: get32(&blocked.stack),
        waits: get(&blocked.waits),
        wait: get(&blocked.wait),
    })
}

fn taken(order: &Order, in_slabs: u64) -> Option<Taken> {
    // Acquire: partner of the Release by which the process publishes the filled-in order.
    let wanted = order.wanted.load(Ordering::Acquire);
    let (modes, thread_entry) = (get32(&order.modes), get32(&order.thread_entry));
    (wanted != 0).then(|| Taken {
        held: get32(&order.held),
        wanted,
        held_shared: modes & SHARED != 0,
        wanted_shared: modes >> 1 & SHARED != 0,
        thread_entry: (thread_entry != SEVERAL && thread_entry != 0).then_some(thread_entry),
        guards: order.guards.iter().map(get32).filter(|record| *record != 0).collect(),
        held_caller: get(&order.held_caller),
        stack: get32(&order.stack),
        seen: get(&order.seen) + in_slabs,
    })
}

/// The longest queue that has ended, and the queue at the end of the process, if the time of its
/// end is known.
fn queues(number: u32, record: &Record, ended: u64) -> impl Iterator<Item = Queue> {
    let over = Queue {
        record: number,
        lasted: get(&record.convoy),
        end: get(&record.convoy_end),
        most: get(&record.convoy_most),
    };
    let word = get(&record.queue);
    let is_open = ended != 0 && queue::now(word) > 0 && queue::most(word) > 1;
    let open = is_open.then(|| Queue {
        record: number,
        lasted: queue::lasted(word, ended),
        end: ended,
        most: queue::most(word),
    });
    [Some(over), open].into_iter().flatten().filter(|queue| queue.lasted > 0)
}
