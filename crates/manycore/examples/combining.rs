//! A queue of jobs by priority, which cannot be divided: the thread that owns it executes the other
//! threads' operations.
//!
//!     cargo run --release -p manycore --example combining

use std::collections::BinaryHeap;

use manycore::delegate::FlatCombining;

/// Fewer in the interpreter, which takes a thousand times as long.
const JOBS: u64 = if cfg!(miri) { 20 } else { 1000 };

fn main() {
    let jobs = FlatCombining::new(BinaryHeap::new());
    let done: u64 = std::thread::scope(|s| {
        let workers: Vec<_> = (0..4_u64)
            .map(|worker| {
                let jobs = &jobs;
                s.spawn(move || {
                    let mut done = 0;
                    for number in 0..JOBS {
                        // Both run on whichever thread has the queue, and the result comes back to
                        // this one.
                        jobs.with(|jobs| jobs.push((number * 7 % 100, worker)));
                        done += u64::from(jobs.with(|jobs| jobs.pop()).is_some());
                    }
                    done
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("it does not panic")).sum()
    });
    println!("{done} jobs done");
    assert_eq!(done, 4 * JOBS);
    assert!(jobs.into_inner().is_empty());
}

#[test]
fn runs() {
    main();
}
