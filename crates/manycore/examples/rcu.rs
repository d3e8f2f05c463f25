//! Routes that threads look up all the time without waiting, while one exchanges the table.
//!
//!     cargo run --release -p manycore --example rcu

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use manycore::reclaim::{Atomic, Config, Domain};

type Routes = BTreeMap<&'static str, u32>;

/// All routes lead to the same place; which one, changes.
fn table(place: u32) -> Routes {
    [("here", place), ("there", place)].into()
}

/// Fewer in the interpreter, which takes a thousand times as long.
const TABLES: u32 = if cfg!(miri) { 50 } else { 1000 };

fn main() {
    let domain = Domain::new(Config::default());
    let routes = Atomic::new_in(&domain, table(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let handle = domain.register();
                // Relaxed: only says when to stop.
                while !done.load(Ordering::Relaxed) {
                    // References found during the guard's life stay valid until the guard is
                    // dropped.
                    let guard = handle.pin();
                    let routes = routes.load(&guard);
                    assert_eq!(routes["here"], routes["there"], "half a table");
                }
            });
        }
        let handle = domain.register();
        for place in 1..TABLES {
            let guard = handle.pin();
            let old = routes.replace(table(place), &guard);
            assert_eq!(old["here"], place - 1);
        }
        done.store(true, Ordering::Relaxed); // Relaxed: as above
    });
    println!("not freed yet: {} bytes", domain.held_bytes());
    assert_eq!(routes.into_inner()["there"], TABLES - 1);
}

#[test]
fn runs() {
    main();
}
