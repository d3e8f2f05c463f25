//! Who passes the fence between readers and those who wait for them: each reader, or the one who
//! waits for all of them at once.
//!
//! A reader *announces* itself in its record and then reads what is shared. Who *waits* has changed
//! that, and then reads the records. One of two must see the other, so that a fence has to stand
//! between the write and the read on both sides. Where the system can make all threads pass one
//! ([`barrier`]), readers do without, and a thread that waits has it do so.
//!
//! That is good where readers come by the million and somebody waits now and then. But it is a
//! system call that interrupts all CPUs that run a thread of the process, and costs each of them
//! some microseconds, and what its predictors had learned. Where somebody waits after every
//! thousand sections, a fence in each of these is cheaper, and no reader is interrupted. So the
//! number of sections decides.
//!
//! # Memory order
//!
//! There are three *turns*, one after the other, and from the third on to the first of the next
//! round:
//!
//! | turn | readers | who waits |
//! |---|---|---|
//! | [`BARE`] | pass no fence | passes a barrier for all |
//! | [`MIXED`] | pass one, or do not know yet | passes a barrier for all; then [`FENCED`] begins |
//! | [`FENCED`] | pass one | passes a fence of its own |
//!
//! A reader looks for the turn before it announces itself, and if it finds [`BARE`] once more
//! afterwards; if it is no more, it passes a fence after all. *Claim:* a reader R whose
//! announcement a waiter W does not see reads what W had written before its fence.
//!
//! - Both pass a fence: one comes first, and a thread that has passed the second sees what was
//!   written before the first.
//! - R passes none, and W has all pass a barrier. R does so somewhere. If after it has written its
//!   announcement, W sees that. If before, R reads after it.
//! - R passes none, and neither does W, which has found [`FENCED`] after its fence. R has found
//!   some [`BARE`] after it had written its announcement. If that was of a later round than W's
//!   turn, it came after W had looked, and R reads later still. (A write is seen by all other CPUs
//!   at once on the processors on which the system grants barriers here, x86-64 and AArch64.) If it
//!   was of an earlier one, or the same, somebody has found [`MIXED`] since, has had all pass a
//!   barrier, and then begun the turn that W has acquired. R passed that barrier after it had
//!   written its announcement, which W therefore sees; for before that, R would have found
//!   [`MIXED`] when it looked again.
//!
//! Turns are counted and go on by compare-and-swap, so that nobody ends another round's [`MIXED`]
//! by a barrier from before it.
//!
//! `tests/asymmetry.rs` goes through all schedules of the second and third case on a machine with
//! store buffers.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{barrier, clock, cpu};

/// The turns, in the lowest bits of their count.
const BARE: usize = 0;
const MIXED: usize = 1;
const FENCED: usize = 2;
const TURN: usize = 3;

/// If who waits has had fewer sections than this since it last did, it had better be the readers
/// who pass fences; and not, if more than four times as many. A barrier for all costs each CPU
/// about as much as this many fences.
const SECTIONS: u32 = 1 << 12;
/// Nor if nobody had waited for this many ticks, most of a millisecond: who seldom does anything
/// says nothing about the readers.
const SELDOM_TICKS: u64 = 1 << 21;

/// On this many CPUs threads had better wait seldom. That is from simulated machines with 120 and
/// 448; between 2 and those nothing was measured.
const MANY_CPUS: u32 = 32;

/// Belongs on a line that readers read in any case, and that is written when somebody waits.
pub(crate) struct Asymmetry {
    turn: AtomicUsize,
    /// When somebody last waited, in ticks.
    waited: AtomicU64,
    /// Whether the system makes threads pass barriers. If not, the turn stays [`FENCED`].
    granted: bool,
    pub has_many_cpus: bool,
}

impl Asymmetry {
    /// If it is wanted, and the system grants it.
    pub fn new(wanted: bool) -> Self {
        let granted = wanted && barrier::is_asymmetric();
        Self {
            turn: AtomicUsize::new(if granted { BARE } else { FENCED }),
            waited: AtomicU64::new(0),
            granted,
            has_many_cpus: cpu::count() >= MANY_CPUS,
        }
    }

    /// Whether the system makes threads pass barriers.
    pub fn is_granted(&self) -> bool {
        self.granted
    }

    /// Whether to wait is dear: it takes a system call, or there are many records to read, which
    /// are in each other's way.
    #[inline]
    pub fn is_dear(&self) -> bool {
        self.has_many_cpus || !self.readers_fence()
    }

    /// Whether readers pass a fence themselves.
    #[inline]
    fn readers_fence(&self) -> bool {
        // Acquire: partner of the Release in `go_on`: a reader that is told to do without a fence
        // comes after the barrier.
        // What it reads next, it reads later.
        !self.granted || self.turn.load(Ordering::Acquire) & TURN != BARE
    }

    /// A reader announces itself, by a store; with a full fence after that if it is told so.
    #[inline]
    pub fn announce(&self, announce: impl FnOnce(bool)) {
        let fences = self.readers_fence();
        announce(fences);
        if !fences {
            barrier::light();
            if self.readers_fence() {
                fence_after_all();
            }
        }
    }

    /// Somebody waits: between what it has written, with a full fence after it, and what it reads
    /// in readers' records. If it is a reader itself, it says how many sections it has had since it
    /// last waited.
    pub fn wait(&self, sections: Option<u32>) {
        if !self.granted {
            return;
        }
        // Acquire: partner of the Release below; after the caller's fence.
        let turn = self.turn.load(Ordering::Acquire);
        if turn & TURN != FENCED {
            barrier::heavy();
        }
        let seldom = self.note_wait();
        match (turn & TURN, sections) {
            (BARE, Some(0..SECTIONS)) if !seldom => self.go_on(turn, turn + 1),
            (MIXED, _) => self.go_on(turn, turn + 1),
            (FENCED, Some(sections)) if seldom || sections > 4 * SECTIONS => {
                self.go_on(turn, (turn | TURN) + 1);
            }
            _ => {}
        }
    }

    /// Notes that somebody waits; says whether nobody had for long.
    fn note_wait(&self) -> bool {
        let now = clock::now();
        // Relaxed, both: steers.
        let before = self.waited.load(Ordering::Relaxed);
        self.waited.store(now, Ordering::Relaxed);
        now.saturating_sub(before) > SELDOM_TICKS
    }

    fn go_on(&self, turn: usize, next: usize) {
        // Release: partner of the Acquires above: the barrier. Relaxed on failure: somebody else
        // has.
        let (done, failed) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.turn.compare_exchange(turn, next, done, failed);
    }
}

#[cold]
fn fence_after_all() {
    fence(Ordering::SeqCst); // SeqCst: what a reader does who was told to
}
