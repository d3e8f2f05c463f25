//! Atomic operations that the home of a line executes.

use manycore_sim::{Machine, Placement, Simulation, backend, thread};

use super::facade::Word;

/// How long an operation occupies the home.
const AT_HOME: u64 = 20;

fn machine() -> Machine {
    let mut machine = Machine::example();
    machine.directory.rmw_at_home = AT_HOME;
    machine
}

/// Runs one call after the other, each on the CPU of its place; returns what each took.
fn in_turn<const N: usize>(calls: [fn(&Word); N]) -> [u64; N] {
    let cpus = Placement::Cpus((0..N as u32).collect());
    let report = Simulation::new(&machine()).placement(cpus).run(move || {
        let word = Box::new(Word::default());
        let took = thread::parallel(N as u32, |me| {
            thread::compute(u64::from(me) * 10_000);
            let start = thread::now();
            calls[me as usize](&word);
            thread::now() - start
        });
        took.try_into().expect("as many threads as calls")
    });
    report.unwrap().result
}

#[test]
fn additions_by_all_cores_take_turns_at_the_home() {
    let report = Simulation::new(&machine()).run(|| {
        let word = Box::new(Word::default());
        let start = thread::now();
        thread::parallel(4, |_| (0..100).for_each(|_| _ = word.add(1)));
        (word.load(), thread::now() - start)
    });
    let (count, took) = report.unwrap().result;
    assert_eq!(count, 400);
    // A line that moves takes this long each time, and is kept a while.
    let way = Machine::example().latency.rmw.modified[0];
    assert!(took >= 400 * AT_HOME && took < 400 * way / 2, "{took}");
}

#[test]
fn a_core_executes_what_it_owns() {
    let latency = Machine::example().latency;
    let add: fn(&Word) = |word| _ = word.add(1);
    let load: fn(&Word) = |word| _ = word.load();
    // The home asks the owner first. Then no core has the line.
    let took = in_turn([|word| word.store(1), add, add]);
    assert_eq!(took[1..], [latency.rmw.modified[0], latency.rmw.shared[0]]);
    // The only core that has read it owns it.
    let took = in_turn([add, |word| {
        _ = word.load();
        let start = thread::now();
        _ = word.add(1);
        assert_eq!(thread::now() - start, Machine::example().latency.rmw_hit);
    }]);
    assert!(took[1] > latency.rmw_hit);
    // If two have copies, the home executes again, and the next one to read finds the line there.
    let took = in_turn([load, load, add, load]);
    assert_eq!(took[3], latency.load.shared[0]);
}

#[test]
fn a_compare_and_swap_moves_the_line() {
    let took = in_turn([
        |word| _ = word.add(1),
        |word| {
            backend::compare_and_swap(word.address());
            let start = thread::now();
            _ = word.add(1);
            assert_eq!(thread::now() - start, Machine::example().latency.rmw_hit);
        },
    ]);
    assert!(took[1] > Machine::example().latency.rmw_hit);
}
