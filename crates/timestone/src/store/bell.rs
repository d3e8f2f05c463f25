//! Work that one thread leaves to another, each time with a window in which it has to be done.

use std::time::{Duration, Instant};

use manycore::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::{Condvar, Mutex, MutexGuard};

/// No thread has rung.
const SILENT: u64 = u64::MAX;

/// Wakes a thread that works in the background.
pub struct Bell {
    /// The shortest window, in nanoseconds, that was announced since the work last began.
    shortest: AtomicU64,
    is_ended: AtomicBool,
    /// When the work is due.
    due: Mutex<Option<Instant>>,
    rung: Condvar,
}

impl Default for Bell {
    fn default() -> Self {
        let (due, rung) = (Mutex::default(), Condvar::new());
        Self { shortest: AtomicU64::new(SILENT), is_ended: AtomicBool::new(false), due, rung }
    }
}

impl Bell {
    /// Announces work, which has to begin within a window. This is cheap if a shorter or equal
    /// window was announced since the last work began, because that work begins earlier. A window
    /// of centuries announces nothing.
    pub fn ring(&self, window: Duration) {
        let nanoseconds = u64::try_from(window.as_nanos()).unwrap_or(SILENT);
        // SeqCst: partner of the exchange in `answer`. If this load finds an earlier announcement,
        // the work, which begins after the exchange, sees everything that this thread has done
        // before.
        if self.shortest.load(Ordering::SeqCst) > nanoseconds
            && self.shortest.fetch_min(nanoseconds, Ordering::SeqCst) > nanoseconds
        {
            self.be_due(&mut self.due.lock(), window);
            self.rung.notify_one();
        }
    }

    fn be_due(&self, due: &mut Option<Instant>, window: Duration) {
        let end = Instant::now().checked_add(window);
        *due = [*due, end].into_iter().flatten().min();
    }

    /// There is no more work.
    pub fn end(&self) {
        // Relaxed: ordered by the lock.
        self.is_ended.store(true, Ordering::Relaxed);
        drop(self.due.lock());
        self.rung.notify_one();
    }

    /// Works when work is due, until the end of the bell. `work` returns whether it is done; if
    /// not, it is tried again after the window `retry`.
    pub fn answer(&self, retry: Duration, mut work: impl FnMut() -> bool) {
        let mut due = self.due.lock();
        // Relaxed: ordered by the lock.
        while !self.is_ended.load(Ordering::Relaxed) {
            match *due {
                None => self.rung.wait(&mut due),
                Some(end) if Instant::now() < end => {
                    self.rung.wait_until(&mut due, end);
                }
                Some(_) => {
                    *due = None;
                    // SeqCst: partner of the load in `ring`.
                    self.shortest.swap(SILENT, Ordering::SeqCst);
                    if !MutexGuard::unlocked(&mut due, &mut work) {
                        self.be_due(&mut due, retry);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Waits until the bell has been answered this many times.
    fn wait_for(answers: &AtomicUsize, count: usize) -> Instant {
        while answers.load(Ordering::SeqCst) < count {
            std::thread::sleep(Duration::from_millis(1));
        }
        Instant::now()
    }

    #[test]
    fn the_shortest_window_counts_and_a_failure_is_tried_again() {
        let (bell, answers, hour) =
            (Bell::default(), AtomicUsize::new(0), Duration::from_secs(3600));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                bell.answer(Duration::from_millis(1), || {
                    answers.fetch_add(1, Ordering::SeqCst) > 0
                });
            });
            bell.ring(Duration::MAX);
            bell.ring(hour);
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(answers.load(Ordering::SeqCst), 0, "an hour has not passed");
            let begin = Instant::now();
            bell.ring(Duration::from_millis(30));
            bell.ring(hour);
            assert!(wait_for(&answers, 1) - begin >= Duration::from_millis(30));
            wait_for(&answers, 2); // the first one has failed
            bell.ring(Duration::ZERO);
            wait_for(&answers, 3);
            bell.end();
        });
    }
}
