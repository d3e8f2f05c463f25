//! The futexes of the Linux back end.

use std::sync::mpsc;
use std::time::Duration;

use manycore::sync::atomic::{AtomicU32, Ordering};
use manycore::sync::futex;

#[test]
fn wakes_all_sleepers_when_asked_for_any_number() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    const SLEEPERS: usize = 3;
    let (done, woken) = mpsc::channel();
    for _ in 0..SLEEPERS {
        let done = done.clone();
        // Not joined: those that are not woken sleep until the process ends.
        std::thread::spawn(move || {
            while WORD.load(Ordering::Relaxed) == 0 {
                futex::wait(&WORD, 0, None);
            }
            done.send(()).unwrap();
        });
    }
    // Time to fall asleep; a thread that has not by then does not sleep at all, and cannot make the
    // test fail.
    std::thread::sleep(Duration::from_millis(100));
    WORD.store(1, Ordering::Relaxed);
    futex::wake(&raw const WORD, u32::MAX);
    for _ in 0..SLEEPERS {
        woken.recv_timeout(Duration::from_secs(10)).expect("a sleeper was not woken");
    }
}
