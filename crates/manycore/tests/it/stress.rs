//! Every lock on real CPUs, with as many threads as CPUs and with more.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manycore::lock::{self, PlainLock};
use manycore::sync::Deadline;
use manycore_history::run::unless_interpreted;

/// Two numbers that only a lock keeps equal.
struct Shared<L> {
    lock: L,
    numbers: UnsafeCell<[u64; 2]>,
}

// SAFETY: the numbers are only touched with the lock held.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L: PlainLock> Shared<L> {
    fn new() -> Self {
        Self { lock: L::new(), numbers: UnsafeCell::new([0; 2]) }
    }

    /// Adds one to both numbers, some time apart. The caller has acquired the lock.
    fn add_and_release(&self, pause: u64) {
        // SAFETY: the caller has acquired the lock, as this function says; a lock that does not
        // exclude shows as unequal numbers.
        unsafe {
            let numbers = self.numbers.get();
            assert_eq!((*numbers)[0], (*numbers)[1], "two threads hold the lock");
            (*numbers)[0] += 1;
            (0..pause).for_each(|_| std::hint::black_box(()));
            (*numbers)[1] += 1;
            self.lock.release();
        }
    }
}

fn after(duration: Duration) -> Deadline {
    // The interpreter has no wall clock of its own.
    #[cfg(miri)]
    return Deadline::after(duration);
    #[cfg(not(miri))]
    after_on_the_wall(duration)
}

#[cfg(not(miri))]
fn after_on_the_wall(duration: Duration) -> Deadline {
    use std::time::{SystemTime, UNIX_EPOCH};
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + duration;
    Deadline { wall: true, seconds: moment.as_secs() as i64, nanoseconds: moment.subsec_nanos() }
}

/// A different sequence for each seed.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Threads acquire the lock in every way for a while. No acquisition is lost, and none is granted
/// twice.
fn counts<L: PlainLock>(threads: u64) {
    let shared = Shared::<L>::new();
    let (acquired, stop, start) =
        (AtomicU64::new(0), AtomicBool::new(false), Barrier::new(threads as usize + 1));
    thread::scope(|scope| {
        for seed in 1..=threads {
            let (shared, acquired, stop, start) = (&shared, &acquired, &stop, &start);
            scope.spawn(move || {
                let (mut random, mut mine) = (random(seed), 0);
                start.wait();
                while !stop.load(Ordering::Relaxed) {
                    let choice = random();
                    let held = match choice % 8 {
                        0 => shared.lock.try_acquire(),
                        1 => shared.lock.acquire_until(after(Duration::from_micros(choice % 500))),
                        _ => {
                            shared.lock.acquire();
                            true
                        }
                    };
                    if held {
                        shared.add_and_release(choice >> 8 & 127);
                        mine += 1;
                    }
                }
                acquired.fetch_add(mine, Ordering::Relaxed);
            });
        }
        start.wait();
        thread::sleep(Duration::from_millis(unless_interpreted(150, 2)));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(shared.numbers.into_inner(), [acquired.into_inner(); 2]);
}

/// A wait with a time-out ends not too early, and does end; and the lock works afterwards.
fn times_out<L: PlainLock>() {
    let lock = L::new();
    lock.acquire();
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(!lock.acquire_until(after(Duration::from_millis(20))), "acquired a held lock");
            assert!(
                start.elapsed() >= Duration::from_millis(19),
                "gave up after {:?}",
                start.elapsed()
            );
        });
    });
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release() };
    assert!(lock.acquire_until(after(Duration::from_secs(10))), "a free lock was not acquired");
    assert!(!lock.try_acquire(), "acquired a held lock");
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release() };
    assert!(lock.try_acquire(), "a released lock was not acquired");
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release() };
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                times_out::<lock::$lock>();
                counts::<lock::$lock>(2);
                counts::<lock::$lock>(4);
                // If threads never give up their CPUs, each hand-over in a queue takes a time
                // slice.
                let info = <lock::$lock as PlainLock>::INFO;
                if !cfg!(miri) && (info.blocks || !info.order.hands_over()) {
                    counts::<lock::$lock>(16);
                }
            }
        )*
    };
}
manycore::for_each_lock!(tests);
