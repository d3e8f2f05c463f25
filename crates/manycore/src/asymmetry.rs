//! The fence between readers and the threads that wait for them: either each reader executes one,
//! or one waiting thread makes all threads execute one.
//!
//! A reader *announces* itself in its record, and then reads shared data. A waiting thread changes
//! shared data, and then reads the records. One of the two must see the other's write, so both
//! sides need a fence between their write and their read. If the system can make all threads
//! execute a fence ([`barrier`]), readers need none of their own: the waiting thread asks the
//! system.
//!
//! That is good where readers are frequent and waits are rare. But it is a system call, which
//! interrupts every CPU that runs a thread of the process, and costs each of them some microseconds
//! and the state of its branch predictors. If a thread waits after every thousand sections, a fence
//! in each section is cheaper, and no reader is interrupted. So the number of sections decides.
//!
//! # Memory order
//!
//! There are three *phases*, which follow each other in rounds:
//!
//! | phase | readers | waiting threads |
//! |---|---|---|
//! | [`BARE`] | execute no fence | execute a barrier for all |
//! | [`MIXED`] | execute one, or do not know yet | execute a barrier for all; [`FENCED`] is next |
//! | [`FENCED`] | execute one | execute a fence of their own |
//!
//! A reader reads the phase before it announces itself. If that is [`BARE`], it reads the phase
//! again afterwards, and executes a fence if the phase has changed. *Claim:* if a waiter W does not
//! see the announcement of a reader R, then R reads what W wrote before its fence.
//!
//! - Both execute a fence: one fence comes first, and the thread with the second one sees all
//!   writes before the first.
//! - R executes no fence, and W executes a barrier for all, which R passes at some point. If that
//!   is after R's announcement, W sees the announcement. If it is before, R's reads come later.
//! - R executes no fence, and W finds [`FENCED`] after its own fence. R found [`BARE`] after its
//!   announcement. Suppose first that this [`BARE`] was of a later round than W's phase. Then it
//!   began after W had read the records, and R's reads are later still. (On the processors for
//!   which the system grants barriers here, x86-64 and AArch64, a write becomes visible to all
//!   other CPUs at once.) Suppose now that it was of the same round or an earlier one. Then a later
//!   thread found [`MIXED`], executed a barrier for all, and began the phase that W has acquired. R
//!   passed that barrier after its announcement, which W therefore sees; had R passed it earlier, R
//!   would have found [`MIXED`] when it read the phase again.
//!
//! Phases are counted and advance by compare-and-swap, so a barrier from before a round cannot end
//! that round's [`MIXED`].
//!
//! `tests/asymmetry.rs` goes through all schedules of the second and third case on a machine with
//! store buffers.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{barrier, clock, cpu};

/// The phases, in the lowest bits of their count.
const BARE: usize = 0;
const MIXED: usize = 1;
const FENCED: usize = 2;
const PHASE: usize = 3;

/// If a waiting thread had fewer sections than this since its last wait, readers should execute
/// fences; if it had more than four times as many, they should not. A barrier for all costs each
/// CPU about as much as this many fences.
const SECTIONS: u32 = 1 << 12;
/// If no thread had waited for this many ticks, most of a millisecond, readers should not execute
/// fences: the sections of a mostly idle thread say nothing about the readers.
const SELDOM_TICKS: u64 = 1 << 21;

/// With this many CPUs threads should wait seldom. The bound comes from simulated machines with 120
/// and 448 CPUs; no number between 2 and these was measured.
const MANY_CPUS: u32 = 32;

/// Belongs on a line that readers read in any case, and that waiting threads write.
pub(crate) struct Asymmetry {
    phase: AtomicUsize,
    /// When a thread last waited, in ticks.
    waited: AtomicU64,
    /// Whether the system makes threads pass barriers. If not, the phase stays [`FENCED`].
    granted: bool,
    pub has_many_cpus: bool,
}

impl Asymmetry {
    /// If it is wanted, and the system grants it.
    pub fn new(wanted: bool) -> Self {
        let granted = wanted && barrier::is_asymmetric();
        Self {
            phase: AtomicUsize::new(if granted { BARE } else { FENCED }),
            waited: AtomicU64::new(0),
            granted,
            has_many_cpus: cpu::count() >= MANY_CPUS,
        }
    }

    /// Whether the system makes threads pass barriers.
    pub fn is_granted(&self) -> bool {
        self.granted
    }

    /// Whether waiting is expensive. It is if it takes a system call, or if there are many records
    /// to read, because other CPUs write these cache lines.
    #[inline]
    pub fn is_dear(&self) -> bool {
        self.has_many_cpus || !self.readers_fence()
    }

    /// Whether readers execute a fence themselves.
    #[inline]
    fn readers_fence(&self) -> bool {
        // Acquire: partner of the Release in `go_on`: a reader that needs no fence comes
        // after the barrier, and so do its next reads.
        !self.granted || self.phase.load(Ordering::Acquire) & PHASE != BARE
    }

    /// Announces a reader by a store. `announce` is told whether a full fence has to follow its
    /// store.
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

    /// To be called by a waiting thread after its writes and a full fence, and before it reads the
    /// readers' records. If the thread is a reader itself, it passes the number of its sections
    /// since it last waited.
    pub fn wait(&self, sections: Option<u32>) {
        if !self.granted {
            return;
        }
        // Acquire: partner of the Release below; after the caller's fence.
        let phase = self.phase.load(Ordering::Acquire);
        if phase & PHASE != FENCED {
            barrier::heavy();
        }
        let seldom = self.note_wait();
        match (phase & PHASE, sections) {
            (BARE, Some(0..SECTIONS)) if !seldom => self.go_on(phase, phase + 1),
            (MIXED, _) => self.go_on(phase, phase + 1),
            (FENCED, Some(sections)) if seldom || sections > 4 * SECTIONS => {
                self.go_on(phase, (phase | PHASE) + 1);
            }
            _ => {}
        }
    }

    /// Notes a wait; returns whether the last one was long ago.
    fn note_wait(&self) -> bool {
        let now = clock::now();
        // Relaxed, both: steers.
        let before = self.waited.load(Ordering::Relaxed);
        self.waited.store(now, Ordering::Relaxed);
        now.saturating_sub(before) > SELDOM_TICKS
    }

    fn go_on(&self, phase: usize, next: usize) {
        // Release: partner of the Acquires above, for the barrier. Relaxed on failure: another
        // thread has advanced the phase.
        let (done, failed) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.phase.compare_exchange(phase, next, done, failed);
    }
}

#[cold]
fn fence_after_all() {
    // SeqCst: the reader's fence in the phases `MIXED` and `FENCED`; partner of the writer's, see
    // the page.
    fence(Ordering::SeqCst);
}
