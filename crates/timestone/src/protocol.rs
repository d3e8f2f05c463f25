//! The steps by which a commit gets from its thread into a frame, and a frame to those that read.
//!
//! | | |
//! |---|---|
//! | a thread that commits | *stages* its record, *decides*, and gives the record its stamp |
//! | the leader | takes the time B, *closes* it, takes all records up to B, writes and flushes |
//! | | raises the domain's floor to B, and then the durable horizon D |
//!
//! The order of the steps matters: the models in `tests/loom` run this code, and fail if any step
//! is out of order.

use manycore::clock::Clock;
use manycore::mvrlu::{Domain, Handle, MemberId};
use manycore::session::Conflict;
use manycore::sync::atomic::{AtomicU64, Ordering};
use manycore::sync::{hint, mutation, order};

use crate::ring::{Reader, Writer};

/// Commits a session with this record of its writes; returns the stamp. `decided` gets the stamp
/// while the session still holds its locks.
///
/// # Errors
///
/// The conflict that the session has met. Then nothing is staged.
///
/// # Panics
///
/// If the ring has no room.
///
/// # Safety
///
/// The session is open, and has written something.
pub unsafe fn commit<C: Clock>(
    handle: &mut Handle<'_, C>,
    writer: &mut Writer,
    record: &[u64],
    decided: impl FnOnce(u64),
) -> Result<u64, Conflict> {
    if let Some(conflict) = handle.doomed() {
        return Err(conflict);
    }
    // The mistake: others see the transaction, and its record is nowhere.
    let is_late = mutation!("commit-stages-late");
    let staged = (!is_late).then(|| writer.stage(record));
    // SAFETY: the session is open (contract of this function).
    let stamp =
        unsafe { handle.commit_at_with(decided) }.expect("a session without a conflict commits");
    let stamp = stamp.expect("a session with writes has a stamp");
    let staged = staged.unwrap_or_else(|| writer.stage(record));
    writer.stamp(staged, stamp);
    Ok(stamp)
}

/// The rings of all threads, for the leader.
pub struct Rings {
    rings: Vec<(MemberId, Reader)>,
    /// All records up to this were taken.
    horizon: u64,
}

impl Rings {
    /// Creates the list without rings. All commits up to this time are collected elsewhere.
    pub fn new(horizon: u64) -> Self {
        Self { rings: Vec::new(), horizon }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rings.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// Removes empty rings whose threads have ended.
    pub fn forget_left(&mut self) {
        self.rings.retain(|(_, reader)| !reader.is_left());
    }

    /// Takes a thread's ring.
    pub fn add(&mut self, member: MemberId, reader: Reader) {
        self.rings.push((member, reader));
    }

    /// Up to when all records were taken.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Closes the time up to a horizon that is not before `stamp`. Takes all records up to it that
    /// were not taken yet: exactly those of the commits after the last horizon and not after this
    /// one.
    ///
    /// # Safety
    ///
    /// The threads have registered with this domain.
    pub unsafe fn collect<C: Clock>(
        &mut self,
        domain: &Domain<C>,
        stamp: u64,
        mut push: impl FnMut(u64, &mut dyn Iterator<Item = u64>),
    ) {
        let clock = domain.clock();
        let horizon = loop {
            let now = clock.present();
            // Another CPU's clock may be a moment behind that of the leader before.
            if now >= stamp && now > self.horizon {
                break now;
            }
            hint::pause();
        };
        domain.close(horizon);
        for (member, reader) in &mut self.rings {
            // SAFETY: the thread has registered with this domain (contract of this function).
            let fate = || unsafe { domain.fate(*member, horizon) };
            reader.take(horizon, fate, &mut push);
        }
        self.forget_left();
        // The mistake: what has come meanwhile counts as taken.
        self.horizon = if mutation!("collect-late-horizon") { clock.present() } else { horizon };
    }
}

/// How far commits have come.
pub struct Horizons {
    /// All commits up to this stamp were written.
    written: AtomicU64,
    /// All commits up to this stamp are on the disk.
    durable: AtomicU64,
}

impl Horizons {
    /// All commits up to this stamp are on the disk.
    pub fn new(durable: u64) -> Self {
        Self { written: AtomicU64::new(durable), durable: AtomicU64::new(durable) }
    }

    /// All commits up to this stamp were written.
    pub fn written(&self) -> u64 {
        // Acquire: partner of the Release in `note_written`.
        self.written.load(Ordering::Acquire)
    }

    /// All commits up to this stamp are on the disk.
    pub fn durable(&self) -> u64 {
        // Acquire: partner of the Release in `flush`.
        self.durable.load(order!(Acquire, "horizon-load"))
    }

    /// Notes that the leader has written all records up to this stamp.
    pub fn note_written(&self, horizon: u64) {
        // Release: partner of the Acquire in `written`.
        self.written.store(horizon, Ordering::Release);
    }

    /// Called by the leader: flushes the written frame to the disk, lets sessions at the floor see
    /// it, and wakes the threads that wait for it.
    ///
    /// # Errors
    ///
    /// That of `flush`. Then no reader sees it.
    pub fn flush<C: Clock, E>(
        &self,
        domain: &Domain<C>,
        flush: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let horizon = self.written();
        // The mistake: sessions see what a crash may take back.
        if mutation!("floor-before-flush") {
            domain.raise_floor(horizon);
        }
        flush()?;
        domain.raise_floor(horizon);
        // Release: partner of the Acquire in `durable`.
        self.durable.store(horizon, order!(Release, "horizon-store"));
        Ok(())
    }
}
