//! Routes that threads look up all the time without waiting, while one exchanges the table.
//!
//!     cargo run --release -p manycore --example rcu

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use manycore::reclaim::{Config, Domain};

type Routes = BTreeMap<&'static str, u32>;

/// All routes lead to the same place, which one, changes.
fn table(place: u32) -> *mut Routes {
    Box::into_raw(Box::new([("here", place), ("there", place)].into()))
}

/// Fewer in the interpreter, which takes a thousand times as long.
const TABLES: u32 = if cfg!(miri) { 50 } else { 1000 };

fn main() {
    let domain = Domain::new(Config::default());
    let routes = AtomicPtr::new(table(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let handle = domain.register();
                // Relaxed: only says when to stop.
                while !done.load(Ordering::Relaxed) {
                    let guard = handle.pin();
                    // Acquire: partner of the AcqRel below. SAFETY: what was there in this section
                    // is not freed before it ends.
                    let routes = unsafe { &*routes.load(Ordering::Acquire) };
                    assert_eq!(routes["here"], routes["there"], "half a table");
                    drop(guard);
                }
            });
        }
        let handle = domain.register();
        for place in 1..TABLES {
            let guard = handle.pin();
            // AcqRel: readers see a whole table; and the last one is this thread's to retire.
            let old = routes.swap(table(place), Ordering::AcqRel);
            // SAFETY: from a box, and nobody finds it any more.
            unsafe { guard.retire(old) };
        }
        done.store(true, Ordering::Relaxed); // Relaxed: as above
    });
    println!("not freed yet: {} bytes", domain.held_bytes());
    // SAFETY: from a box; the threads have ended.
    drop(unsafe { Box::from_raw(routes.into_inner()) });
}

#[test]
fn runs() {
    main();
}
