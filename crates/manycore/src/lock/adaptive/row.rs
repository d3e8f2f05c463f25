//! An [`Adaptive`] as the queue of another lock: its holder may pass something that it has to the
//! next in the queue. Holders that do so form a row, and each one after the first knows that it is
//! not the first.

use super::noted;
use super::queue_node::{Passes, QueueNodeRef};
use super::waiter::{HELD, LED};
use super::{Adaptive, scarcity};
use crate::sync::atomic::Ordering;

impl Adaptive {
    /// Whether another thread has the lock, as a hint.
    pub(crate) fn looks_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) & HELD != 0 // Relaxed: a hint
    }

    /// How often in a row [`hand_over`](Self::hand_over) has handed the lock over, the last time to
    /// the caller; none if the caller does not hold the lock, or has no node in the queue.
    #[inline]
    pub(in crate::lock) fn row(&self) -> Option<u32> {
        self.noted_qnode_ref().map(|qnode_ref| qnode_ref.passes().passes)
    }

    /// Hands the lock to a thread that waits in its queue, and returns true. If there is none, the
    /// caller still holds the lock.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and every release is by this function or by
    /// [`end_row`](Self::end_row).
    pub(in crate::lock) unsafe fn hand_over(&self) -> bool {
        let Some(qnode_ref) = self.noted_qnode_ref() else { return false };
        if scarcity::has_sign() {
            return false;
        }
        noted::note_leaving(self.address());
        self.pass_on(qnode_ref, qnode_ref.passes().passes + 1)
    }

    /// Releases the lock. The thread that gets it is the first in a row.
    ///
    /// # Safety
    ///
    /// The caller holds the lock.
    pub(in crate::lock) unsafe fn end_row(&self) {
        let noted = self.noted_qnode_ref();
        if noted.is_some() {
            noted::note_leaving(self.address());
        }
        match noted.or_else(|| self.find_led()) {
            Some(qnode_ref) if scarcity::has_sign() => qnode_ref.make_next_first(),
            Some(qnode_ref) if self.pass_on(qnode_ref, 0) => return,
            Some(_) | None => {}
        }
        self.free();
    }

    fn pass_on(&self, qnode_ref: QueueNodeRef<'_>, passes: u32) -> bool {
        let handed = qnode_ref.hand_over(&Passes { passes, soon: 0 });
        if !handed {
            // The holder has no node any more. Relaxed: as in `settle`.
            self.word.fetch_and(!LED, Ordering::Relaxed);
        }
        handed
    }

    /// Makes it free, without waiters.
    ///
    /// # Safety
    ///
    /// No thread of this process holds the lock or waits for it.
    pub(in crate::lock) unsafe fn forget_all(&self) {
        // Relaxed, both: the caller orders it before what others do.
        self.word.store(0, Ordering::Relaxed);
        self.tail.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}
