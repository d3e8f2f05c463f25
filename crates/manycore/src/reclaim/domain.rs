//! The domain: its epoch, the pinned threads, and the objects that may be freed.

use core::fmt;
use core::time::Duration;

use super::bag::{Garbage, GarbageStack};
use super::config::{Barriers, Config, Stall};
use super::nodes::Nodes;
use super::record::{INSIDE, Record, STACKS, STEP, Slot};
use crate::asymmetry::Asymmetry;
use crate::exhaust::exhaust;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::phase::{self, Phase};
use crate::sync::{CachePadded, clock, full_fence, hint, mutation, order, thread, tuning};
use crate::thread_registry::ThreadRegistry;

/// Threads, the objects that they share, and the garbage. Garbage waits until no thread can have a
/// reference to it any more.
///
/// See the [module](super) for an example. Dropping a domain frees all that is left.
pub struct Domain {
    periods: CachePadded<Periods>,
    records: ThreadRegistry<Record>,
    /// How many there are.
    record_count: AtomicUsize,
    /// When the epoch began, in ticks.
    began: AtomicU64,
    /// When a stall was last told of.
    told: AtomicU64,
    /// How many waits for room have ended because the time was over.
    pub(super) waits: AtomicUsize,
    pub(super) overruns: AtomicUsize,
    pub(super) config: Config,
    is_shared_by_threads: bool,
    /// Memory, which goes after all that is in it.
    pub(super) nodes: Nodes,
}

/// Read by every reader, and seldom written.
struct Periods {
    /// In units of [`STEP`].
    epoch: AtomicUsize,
    asymmetry: Asymmetry,
}

/// The number of epochs after which no thread can have a reference to garbage, in units of
/// [`STEP`].
const GRACE: usize = 3 * STEP;
const _: () = assert!(GRACE == (STACKS - 1) * STEP, "one stack is expired");

/// The result of an attempt to begin the next epoch: what the thread saw.
pub(super) struct EpochScan<'d> {
    /// A thread that keeps the next epoch from beginning: the one that has been pinned for longest.
    pub blocker: Option<&'d Slot>,
    /// What waits to be freed, in bytes.
    pub held: usize,
}

/// Which of a record's stacks to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stacks {
    /// The stacks in which nothing has to wait.
    Expired,
    All,
}

/// Whose garbage to free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The calling thread's own bags, and those of threads that have ended.
    OwnAndGone,
    Everybodys,
}

impl Domain {
    /// A domain without threads.
    ///
    /// # Panics
    ///
    /// If the batch is not 1 to 253.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with_nodes(config, Nodes::none())
    }

    /// A domain for a structure whose nodes are of this type, and take at least this many bytes
    /// each. The structure must be dropped before the domain.
    pub(crate) fn of_nodes<T>(config: Config, bytes_min: usize) -> Self {
        Self::with_nodes(config, Nodes::of::<T>(bytes_min))
    }

    fn with_nodes(config: Config, nodes: Nodes) -> Self {
        let most = super::config::BATCH_MAX;
        assert!((1..=most).contains(&config.batch), "a batch is 1 to {most} objects");
        Self {
            periods: CachePadded(Periods {
                epoch: AtomicUsize::new(0),
                asymmetry: Asymmetry::new(config.barriers == Barriers::Auto),
            }),
            records: ThreadRegistry::new(),
            record_count: AtomicUsize::new(0),
            began: AtomicU64::new(clock::now()),
            told: AtomicU64::new(0),
            waits: AtomicUsize::new(0),
            overruns: AtomicUsize::new(0),
            config,
            is_shared_by_threads: false,
            nodes,
        }
    }

    /// Whether readers execute no fence where threads rarely wait for them. They do if the
    /// configuration allows it and the system has granted it.
    pub fn is_asymmetric(&self) -> bool {
        self.periods.asymmetry.is_granted()
    }

    /// The bytes of the retired objects that are not yet freed, and of the bags in which they wait:
    /// 1 KiB for up to 61 objects. The result is the sum of a number of each thread. It is exact if
    /// no thread retires or frees meanwhile.
    pub fn held_bytes(&self) -> usize {
        no_debt(self.records.iter().map(|record| record.balance()).fold(0, usize::wrapping_add))
    }

    /// Bytes of memory for a structure's nodes, whether in use or free; 0 if the structure has none
    /// here.
    pub fn node_bytes(&self) -> usize {
        self.nodes.memory_bytes()
    }

    /// How often a thread has had to wait because too much was held.
    pub fn waits(&self) -> usize {
        self.waits.load(Ordering::Relaxed) // Relaxed: a statistic
    }

    /// How often a thread has waited for as long as the configuration allows, and has then gone on
    /// without room.
    pub fn overruns(&self) -> usize {
        self.overruns.load(Ordering::Relaxed) // Relaxed: a statistic
    }

    /// Visits the counts so far, each with its name: epochs that have begun, [`waits`](Self::waits)
    /// and [`overruns`](Self::overruns).
    pub fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let epoch = self.periods.epoch.load(Ordering::Relaxed); // Relaxed: a statistic
        visit("epochs", (epoch / STEP) as u64);
        visit("waits", self.waits() as u64);
        visit("overruns", self.overruns() as u64);
    }

    /// Waits until every section has ended that began before the call. A thread that enters one
    /// later sees all that the caller did before.
    ///
    /// # Panics
    ///
    /// If the calling thread is inside a section of this domain, by any handle: it would wait for
    /// ever.
    pub fn synchronize(&self) {
        full_fence!("reclaim-synchronize");
        // Relaxed: see the page; the fence orders it.
        let until = self.periods.epoch.load(Ordering::Relaxed).wrapping_add(GRACE);
        let mut pause_ns = 1_000;
        while !has_come(until, self.now()) {
            if let Some(blocker) = self.advance(None).blocker {
                assert!(
                    !self.is_own(blocker),
                    "this thread is inside a section of the domain, by another handle, and would wait for itself"
                );
                self.tell_of(blocker);
                phase::during(Phase::Quiescence, || wait_for(blocker, &mut pause_ns));
            }
        }
    }

    /// Whether the section is the calling thread's own. Records that threads use in turn do not
    /// show that.
    pub(super) fn is_own(&self, blocker: &Slot) -> bool {
        !self.is_shared_by_threads && blocker.thread() == thread::id()
    }

    /// Declares that threads use handles of this domain in turn.
    pub(super) fn shared_by_threads(mut self) -> Self {
        self.is_shared_by_threads = true;
        self
    }

    /// A reader enters: it writes the epoch into its record before it reads anything else.
    #[inline]
    pub(super) fn enter(&self, record: &Record) {
        // Acquire: partner of the Release in `advance`. The model has a fence in readers, which
        // would do.
        let epoch = self.periods.epoch.load(Ordering::Acquire);
        self.periods.asymmetry.announce(|with_fence| record.enter(epoch, with_fence));
    }

    /// The other side of it.
    fn fence_readers(&self, sections: Option<u32>) {
        full_fence!("reclaim-advance-fence");
        self.periods.asymmetry.wait(sections);
    }

    /// Whether many threads may scan at the same time.
    pub(super) fn has_many_cpus(&self) -> bool {
        self.periods.asymmetry.has_many_cpus
    }

    /// Whether a scan for pinned threads costs much.
    pub(super) fn looks_are_dear(&self) -> bool {
        self.periods.asymmetry.is_dear()
    }

    /// The epoch, read by a thread that is going to free something.
    pub(super) fn now(&self) -> usize {
        // Acquire: partner of the Release in `advance`, which passes on the readers' accesses.
        self.periods.epoch.load(order!(Acquire, "reclaim-now"))
    }

    /// The epoch with which a thread closes a bag after its section.
    pub(super) fn epoch_to_close(&self) -> usize {
        self.periods.epoch.load(Ordering::Relaxed) // Relaxed: not before the one in which it came in; see the page
    }

    /// Begins the next epoch unless a thread has been pinned since an earlier one than this.
    /// `sections` is the number of sections that the calling thread has had since its last call; it
    /// is none for a thread without a handle.
    pub(super) fn advance(&self, sections: Option<u32>) -> EpochScan<'_> {
        let now = self.periods.epoch.load(Ordering::Relaxed); // Relaxed: see the page; the fence orders it
        // If this thread sees, without a fence, that a thread is in a section, then that is true,
        // and this thread can give up without a fence. (The model checker has enough work with the
        // scan that counts.)
        if !cfg!(loom) {
            let scan = self.scan(now);
            if scan.blocker.is_some() {
                return scan;
            }
        }
        self.fence_readers(sections);
        let scan = self.scan(now);
        if scan.blocker.is_none() {
            // Release: partner of the Acquires in `now` and `epoch_to_enter`, for the state that
            // the records have shown. Relaxed on failure: another thread has advanced the epoch.
            let (done, failed) = (Ordering::Release, Ordering::Relaxed);
            let next = now.wrapping_add(STEP);
            if self.periods.epoch.compare_exchange(now, next, done, failed).is_ok() {
                self.began.store(clock::now(), Ordering::Relaxed); // Relaxed: for reports
            }
        }
        scan
    }

    /// Scans for threads that have been pinned since an earlier epoch than this.
    fn scan(&self, now: usize) -> EpochScan<'_> {
        let (mut blocker, mut longest, mut balance) = (None, 0, 0_usize);
        for record in self.records.scan() {
            let state = record.state();
            let since = now.wrapping_sub(state & !INSIDE);
            if state & INSIDE != 0 && since > longest && !mutation!("reclaim-too-soon") {
                (blocker, longest) = (Some(record), since);
            }
            balance = balance.wrapping_add(record.balance());
        }
        EpochScan { blocker, held: no_debt(balance) }
    }

    /// Reports a reader that keeps the next epoch from beginning, if it has done so for long.
    pub(super) fn tell_of(&self, blocker: &Slot) {
        let Some(on_stall) = &self.config.on_stall else { return };
        // Relaxed, throughout: numbers that steer reports.
        let (now, since) = (clock::now(), self.began.load(Ordering::Relaxed));
        let told = self.told.load(Ordering::Relaxed);
        // Other threads have read both times, and their counters may be ahead of this one.
        let passed = |ticks: u64| {
            let passed = u64::try_from(now.wrapping_sub(ticks).cast_signed()).unwrap_or(0);
            Duration::from_nanos(clock::nanoseconds(passed))
        };
        let (blocked_for, patience) = (passed(since), self.config.patience);
        if blocked_for > patience && (told == 0 || passed(told) > patience) {
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.told.compare_exchange(told, now.max(1), done, failed).is_ok() {
                let held_bytes = self.held_bytes();
                on_stall(&Stall { thread: blocker.thread(), blocked_for, held_bytes });
            }
        }
    }

    /// Moves a record's bags that have only expired objects to a stack of such bags; returns the
    /// number of these objects.
    fn harvest(&self, record: &Record, stacks: Stacks, to: &GarbageStack) -> usize {
        let (now, mut count) = (self.now(), 0);
        for (number, stack) in record.stacks().iter().enumerate() {
            let age = (now / STEP).wrapping_sub(number) % STACKS;
            if stack.is_empty() || (stacks == Stacks::Expired && age * STEP < GRACE) {
                continue;
            }
            for bag in stack.take() {
                // A bag on the stack of expired ones is checked, too: the epoch may have wrapped
                // around to the bag's meanwhile.
                let is_expired = has_come(bag.epoch().wrapping_add(GRACE), now);
                count += if is_expired { bag.len() } else { 0 };
                if is_expired { to } else { stack }.push(bag);
            }
        }
        count
    }

    /// Does the same with the records of several threads, for one of them.
    pub(super) fn harvest_all(&self, whose: Whose, stacks: Stacks, by: &Slot) -> usize {
        let mut count = 0;
        for record in self.records.iter() {
            let is_own = core::ptr::eq(record, by);
            if is_own || whose == Whose::Everybodys || !record.is_taken() {
                count += self.harvest(record, stacks, &by.expired);
                if !is_own {
                    record.expired.take().for_each(|bag| by.expired.push(bag));
                }
            }
        }
        count
    }

    /// Moves the garbage of ended threads to where other threads find it.
    pub(super) fn close_parked(&self) {
        self.records.iter().for_each(|record| record.close_parked(|| self.epoch_to_close()));
    }

    /// A record for the calling thread.
    pub(super) fn take_record(&self) -> &Slot {
        let new = || {
            let record = Record::new(self.bag_bytes_max(), self.now());
            self.record_count.fetch_add(1, Ordering::Relaxed); // Relaxed: a statistic
            (record, ())
        };
        self.records.take(new).0
    }

    /// How many bytes a thread may keep before other threads must be able to free them.
    pub(super) fn bag_bytes_max(&self) -> usize {
        let records = self.record_count.load(Ordering::Relaxed); // Relaxed: a statistic
        self.config.limit_bytes / 16 / records.max(1)
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Domain")
            .field("held_bytes", &self.held_bytes())
            .field("is_asymmetric", &self.is_asymmetric())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let all = GarbageStack::new();
        for record in self.records.iter() {
            // A handle that was forgotten has it for ever.
            record.leave_to_next();
            record.close_parked(|| 0);
            let stacks = record.stacks().iter().chain([&record.expired]);
            stacks.flat_map(GarbageStack::take).for_each(|bag| all.push(bag));
        }
        let mut bags = all.take();
        let mut bag = bags.next();
        exhaust(|| {
            let Some(open) = &mut bag else { return false };
            if open.len() == 0 {
                bag = bags.next();
                return true;
            }
            let (Garbage { object, destroy }, _) = open.pop();
            // SAFETY: handles and guards borrow the domain, so that no section is open that could
            // have found the object. It was retired once, to be destroyed so (contract of
            // `retire_with` and `retire_node`).
            unsafe {
                match destroy {
                    Some(destroy) => destroy(object),
                    None => self.nodes.end(object),
                }
            }
            true
        });
    }
}

/// Whether a moment has come, counted in epochs, which wrap.
fn has_come(moment: usize, now: usize) -> bool {
    now.wrapping_sub(moment).cast_signed() >= 0
}

/// A sum of numbers that change during the addition, so that it may be some bytes below 0.
fn no_debt(balance: usize) -> usize {
    if balance.cast_signed() < 0 { 0 } else { balance }
}

/// Waits until a thread has left its section, or some time has passed.
fn wait_for(blocker: &Record, pause_ns: &mut u32) {
    let (state, start) = (blocker.state(), clock::now());
    while blocker.state() == state {
        if clock::has_passed(start, tuning::spin_limit()) {
            hint::sleep(*pause_ns);
            *pause_ns = (*pause_ns * 2).min(1_000_000);
            return;
        }
        hint::spin_loop();
    }
}
