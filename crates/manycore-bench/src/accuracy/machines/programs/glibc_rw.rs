//! glibc's reader-writer lock until 2.24. Its counts are protected by a mutex of its own, which
//! each acquisition and each release takes.
//!
//! So a reader waits while another holds that mutex, and sleeps if it is not free. A published
//! table of 2013 calls this lock `pthread_rwlock`. None of manycore's locks is like it. Written
//! after nptl/pthread_rwlock_rdlock.c and its neighbours, for the default kind, which prefers
//! readers.

use manycore_simulated::lock::{Futex, PlainLock};
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};
use manycore_simulated::sync::futex;

use crate::contender::Contender;

/// Relaxed, all: the mutex orders the data that it protects. A thread compares the word once more
/// before it sleeps.
const ORDER: Ordering = Ordering::Relaxed;

pub(super) struct GlibcRw {
    mutex: Futex,
    readers: AtomicU32,
    /// Incremented for the threads that sleep.
    readers_wakeup: AtomicU32,
    writer_wakeup: AtomicU32,
    readers_queued: AtomicU32,
    writers_queued: AtomicU32,
    writer: AtomicU32,
}

impl GlibcRw {
    /// The lock's name in the sets.
    pub const NAME: &'static str = "glibc-2013-rw";

    /// Takes the mutex and calls `may_enter`, which enters if it can. Until it does, the thread
    /// counts as queued, and sleeps.
    fn enter(&self, queued: &AtomicU32, wakeup: &AtomicU32, may_enter: impl Fn() -> bool) {
        self.mutex.acquire();
        while !may_enter() {
            add(queued, 1);
            let seen = wakeup.load(ORDER);
            self.release_mutex();
            futex::wait(wakeup, seen, None);
            self.mutex.acquire();
            add(queued, 1u32.wrapping_neg());
        }
        self.release_mutex();
    }

    fn enter_to_read(&self) {
        self.enter(&self.readers_queued, &self.readers_wakeup, || {
            let is_free = self.writer.load(ORDER) == 0;
            if is_free {
                add(&self.readers, 1);
            }
            is_free
        });
    }

    fn enter_to_write(&self) {
        self.enter(&self.writers_queued, &self.writer_wakeup, || {
            let is_free = self.writer.load(ORDER) == 0 && self.readers.load(ORDER) == 0;
            if is_free {
                self.writer.store(1, ORDER);
            }
            is_free
        });
    }

    fn leave(&self) {
        self.mutex.acquire();
        if self.writer.load(ORDER) == 1 {
            self.writer.store(0, ORDER);
        } else {
            add(&self.readers, 1u32.wrapping_neg());
        }
        let (wakeup, count) = match () {
            () if self.readers.load(ORDER) > 0 => return self.release_mutex(),
            () if self.writers_queued.load(ORDER) > 0 => (&self.writer_wakeup, 1),
            () if self.readers_queued.load(ORDER) > 0 => (&self.readers_wakeup, u32::MAX),
            () => return self.release_mutex(),
        };
        add(wakeup, 1);
        self.release_mutex();
        futex::wake(wakeup, count);
    }

    fn release_mutex(&self) {
        // SAFETY: this thread holds the mutex: each path to this call begins with its acquisition.
        unsafe { self.mutex.release() };
    }
}

/// Adds to a word that the mutex protects, by a load and a store.
fn add(word: &AtomicU32, more: u32) {
    word.store(word.load(ORDER).wrapping_add(more), ORDER);
}

impl Contender for GlibcRw {
    fn new() -> Self {
        let word = || AtomicU32::new(0);
        Self {
            mutex: Futex::new(),
            readers: word(),
            readers_wakeup: word(),
            writer_wakeup: word(),
            readers_queued: word(),
            writers_queued: word(),
            writer: word(),
        }
    }

    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        self.enter_to_write();
        let result = section();
        self.leave();
        result
    }

    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        self.enter_to_read();
        let result = section();
        self.leave();
        result
    }
}

#[cfg(test)]
mod tests {
    use manycore_sim::{explore, thread};

    use super::*;

    /// Writers change two words, and readers compare both.
    #[test]
    fn readers_and_writers_exclude_each_other() {
        explore::check(|| {
            let lock = GlibcRw::new();
            let words = [AtomicU32::new(0), AtomicU32::new(0)];
            thread::parallel(3, |me| {
                for round in 0..2 {
                    if (me + round) % 2 == 0 {
                        lock.exclusive(|| words.iter().for_each(|word| add(word, 1)));
                    } else {
                        lock.shared(|| assert_eq!(words[0].load(ORDER), words[1].load(ORDER)));
                    }
                }
            });
            assert_eq!(words.map(|word| word.load(ORDER)), [3, 3]);
        });
    }
}
