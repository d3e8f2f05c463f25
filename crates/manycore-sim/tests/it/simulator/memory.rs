//! The addresses and nodes of memory are the same in every run.

use manycore_sim::{Machine, MemoryPolicy, Placement, Simulation, backend, thread};

use super::facade::Word;
use super::run;

#[test]
fn addresses_repeat() {
    let addresses = || {
        run(|| {
            let boxes: Vec<Box<u64>> = (0..10).map(Box::new).collect();
            let local = 0_u8;
            let in_threads = thread::parallel(3, |me| (&raw const *Box::new(me)).addr());
            let here = (&raw const local).addr();
            (boxes.iter().map(|b| (&raw const **b).addr()).collect::<Vec<_>>(), here, in_threads)
        })
    };
    let first = addresses();
    // Allocations of the host in between do not matter.
    let _spare = vec![0_u8; 12345];
    assert_eq!(first, addresses());
}

#[test]
fn results_outlive_their_simulation() {
    let words = run(|| vec!["simulated".to_owned(); 3]).result;
    run(|| vec![0xFF_u8; 1000]);
    assert_eq!(words, ["simulated"; 3]);
}

#[test]
fn memory_that_is_kept_is_not_reused() {
    let kept = run(|| std::sync::Arc::new(7_u64)).result;
    let other = run(|| std::sync::Arc::new(8_u64)).result;
    assert_eq!((*kept, *other), (7, 8));
}

/// How long a CPU of the second socket takes to read memory that a CPU of the first has touched.
fn remote_read(policy: MemoryPolicy) -> u64 {
    let mut machine = Machine::example();
    // The cache is so small that everything comes from memory.
    machine.caches.l1.bytes = 512;
    machine.caches.l2.bytes = 512;
    machine.caches.llc.bytes = 1024;
    let on = Placement::Cpus(vec![0, 4]);
    let report = Simulation::new(&machine).placement(on).memory(policy).run(|| {
        let words: Vec<Word> = (0..1000).map(|_| Word::default()).collect();
        words.iter().for_each(|word| word.store(1));
        backend::fence();
        let times = thread::parallel(2, |me| {
            let start = thread::now();
            if me == 1 {
                words[..900].iter().for_each(|word| _ = word.load());
            }
            thread::now() - start
        });
        times[1] / 900
    });
    report.unwrap().result
}

#[test]
fn memory_is_near_or_far() {
    let first_touch = remote_read(MemoryPolicy::FirstTouch);
    let there = remote_read(MemoryPolicy::Bind(1));
    let interleaved = remote_read(MemoryPolicy::Interleave);
    assert!(
        there < interleaved && interleaved < first_touch,
        "{there} {interleaved} {first_touch}"
    );
}
