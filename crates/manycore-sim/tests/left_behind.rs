//! Memory that a failed program leaves behind, in a process of its own: it moves all addresses.

use std::hint::black_box;
use std::mem::forget;
use std::time::Duration;

use manycore_sim::explore::Exploration;
use manycore_sim::{Machine, Simulation, thread};

/// As many programs are simulated after it as there are places for them, and more.
const PROGRAMS: u64 = 6_000;

#[test]
fn memory_of_a_failed_program_is_not_missed() {
    let failed = Exploration::default().schedules(1).run(|| forget(black_box(Box::new(7_u64))));
    assert!(failed.unwrap_err().to_string().contains("are not freed at the end"));
    // A panic leaves behind what the program has not freed, and what a caller keeps of an earlier
    // one stays as it is.
    let kept = Simulation::new(&Machine::example()).run(|| vec![7_u64; 1000]).unwrap().result;
    let panicked = Simulation::new(&Machine::example()).run(|| {
        forget(black_box(vec![8_u64; 1000]));
        panic!("left");
    });
    assert!(panicked.is_err());
    let fill = || drop(thread::parallel(1, |_| black_box(vec![u64::MAX; 1000])));
    let tried = Exploration::default().schedules(PROGRAMS).time(Duration::MAX).run(fill);
    assert_eq!(tried.unwrap().schedules, PROGRAMS);
    assert_eq!(kept, [7; 1000]);
    drop(kept);
    assert!(Simulation::new(&Machine::example()).run(fill).is_ok());
}
