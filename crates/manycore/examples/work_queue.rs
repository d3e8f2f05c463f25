//! A crawler's queue: threads take pages, find others on them, and put those in, until nothing is
//! left. Additions cost no line that threads share.
//!
//!     cargo run --release -p manycore --example work_queue
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an ordinary program: the rules for algorithms are not for it"
)]

use std::sync::atomic::{AtomicUsize, Ordering};

use manycore::collections::HashMap;
use manycore::collections::queue::OrderedQueue;

const WORKERS: usize = 4;
/// Fewer in the interpreter, which takes a thousand times as long.
const PAGES: u64 = if cfg!(miri) { 40 } else { 20_000 };

/// The pages to which one leads.
fn links(page: u64) -> impl Iterator<Item = u64> {
    [2 * page + 1, 2 * page + 2, page / 2].into_iter().filter(|page| *page < PAGES)
}

fn main() {
    let seen = HashMap::<u64, usize>::new();
    let queue = OrderedQueue::<u64>::default();
    // Pages in the queue or at a worker: none is left when it is 0.
    let open = AtomicUsize::new(1);
    seen.insert_new(0, 0);
    queue.handle().push(0);
    let done: Vec<u64> = std::thread::scope(|scope| {
        let workers = (0..WORKERS).map(|worker| {
            let (seen, queue, open) = (&seen, &queue, &open);
            scope.spawn(move || {
                let (mut handle, mut done) = (queue.handle(), 0);
                // Acquire: partner of the Release below, for the other threads' pages.
                while open.load(Ordering::Acquire) > 0 {
                    // The oldest of all threads' pages.
                    let Some(page) = queue.pop() else {
                        std::thread::yield_now();
                        continue;
                    };
                    // One thread is the first to see a page.
                    for page in links(page).filter(|page| seen.insert_new(*page, worker)) {
                        open.fetch_add(1, Ordering::Relaxed); // Relaxed: this page is still open
                        handle.push(page);
                    }
                    done += 1;
                    open.fetch_sub(1, Ordering::Release); // Release: partner of the Acquire above
                }
                done
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(done.iter().sum::<u64>(), PAGES, "each page once");
    assert_eq!(seen.len() as u64, PAGES);
    println!("{PAGES} pages, by worker: {done:?}");
}

#[test]
fn runs() {
    main();
}
