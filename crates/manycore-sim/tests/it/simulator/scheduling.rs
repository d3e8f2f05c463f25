//! More threads than CPUs, sleeping and waking.

use manycore_sim::{Machine, Placement, Simulation, Stall, backend, thread};

use super::facade::Word;
use super::run;

const SLICES: u64 = 50;

fn one_cpu() -> Simulation {
    Simulation::new(&Machine::example()).placement(Placement::Cpus(vec![0]))
}

#[test]
fn threads_take_turns_on_a_cpu() {
    let os = Machine::example().os;
    let each = SLICES * os.time_slice;
    let report = one_cpu().run(|| {
        thread::parallel(3, |_| {
            thread::compute(each);
            thread::now()
        })
    });
    let report = report.unwrap();
    // All end within a slice or two of each other, and switching costs something.
    let ends = &report.result;
    assert!(ends.iter().max().unwrap() - ends.iter().min().unwrap() < 3 * os.time_slice);
    let switches = (report.cycles - 3 * each) / os.context_switch;
    assert!((3 * SLICES - 10..3 * SLICES + 20).contains(&switches), "{switches} switches");
}

#[test]
fn a_spinning_thread_holds_its_cpu_for_a_slice() {
    let report = one_cpu().run(|| {
        let word = Box::new(Word::default());
        thread::parallel(2, |me| {
            if me == 0 {
                word.spin_until(1);
            } else {
                word.store(1);
            }
            thread::now()
        })
    });
    let os = Machine::example().os;
    assert!(report.unwrap().result[1] >= os.time_slice / 4);
}

#[test]
fn idle_cpus_take_threads_that_may_move() {
    let elapsed = |pinned| {
        let simulation = Simulation::new(&Machine::example()).cpus(2).pinned(pinned);
        let report = simulation.run(|| {
            // There are four threads on two CPUs. Those of the second CPU end soon.
            thread::parallel(4, |me| thread::compute(if me % 2 == 0 { 100_000_000 } else { 1000 }));
        });
        report.unwrap().cycles
    };
    assert!(elapsed(false) < 120_000_000);
    assert!(elapsed(true) > 200_000_000);
}

#[test]
fn a_futex_wakes_in_order() {
    let report = run(|| {
        let (word, order) = (Box::new(Word::default()), Box::new(Word::default()));
        thread::parallel(4, |me| {
            if me == 3 {
                thread::compute(1_000_000);
                for _ in 0..3 {
                    word.wake(1);
                    thread::compute(100_000);
                }
                return 0;
            }
            thread::compute(u64::from(me) * 10_000);
            assert!(!word.wait(1, None), "another value: returns at once");
            assert!(!word.wait(0, None));
            order.add(1)
        })
    });
    assert_eq!(report.result, [0, 1, 2, 0]);
}

/// The cost of a wake-up to its caller, and the time from the call until the woken thread runs.
fn wake_up(cpus: [u32; 2]) -> [u64; 2] {
    let on = Placement::Cpus(cpus.to_vec());
    let report = Simulation::new(&Machine::example()).placement(on).run(|| {
        let word = Box::new(Word::default());
        let times = thread::parallel(2, |me| {
            if me == 0 {
                word.wait(0, None);
                return [thread::now(), 0];
            }
            thread::compute(1_000_000);
            let called = thread::now();
            word.wake(1);
            let returned = thread::now();
            backend::sleep(10); // makes room, on the same CPU
            [called, returned]
        });
        let [[woken, _], [called, returned]] = times[..] else { panic!("two threads") };
        [returned - called, woken - called]
    });
    report.unwrap().result
}

#[test]
fn waking_a_thread_of_another_cpu_costs_more() {
    let Machine { os, latency, caches, .. } = Machine::example();
    let way = os.wake_path + os.idle_exit + os.context_switch;
    // A read of the bucket's line, its lock, and the release: the sleeping thread had the line
    // last.
    let bucket = latency.load.modified[0] + latency.rmw.shared[0] + latency.store_hit;
    let call = os.futex_wake + bucket;
    assert_eq!(wake_up([0, 1]), [call + os.wake_thread, call + way]);
    let bucket = caches.l1_hit + latency.rmw_hit + latency.store_hit;
    let call = os.futex_wake + bucket + os.wake_path;
    let sleep = os.futex_wait;
    assert_eq!(wake_up([0, 0]), [call, call + sleep + os.context_switch]);
}

/// The time of a refused wait for each of 8 threads, on one word or on words of their own.
fn refused_waits(shared: bool) -> u64 {
    let report = run(|| {
        let words: Vec<_> = (0..8).map(|_| Box::new(Word::default())).collect();
        let times = thread::parallel(8, |me| {
            let start = thread::now();
            for _ in 0..50 {
                words[if shared { 0 } else { me as usize }].wait(1, None);
            }
            thread::now() - start
        });
        times.into_iter().sum::<u64>() / (8 * 50)
    });
    report.result
}

#[test]
fn calls_about_one_word_wait_for_each_other_in_its_bucket() {
    let Machine { os, latency, .. } = Machine::example();
    let own = refused_waits(false);
    assert!((os.futex_wait..os.futex_wait + 100).contains(&own), "{own}");
    // Each thread fetches the line and the word from another core, while all others wait.
    let shared = refused_waits(true);
    assert!(shared > 4 * (latency.rmw.shared[0] + latency.load.shared[0]), "{shared}, {own}");
    assert!(shared > own + 300, "{shared}, {own}");
}

#[test]
fn the_owner_of_a_bucket_is_not_preempted() {
    // Time slices end all the time, also on a CPU for which another thread waits.
    let mut machine = Machine::example();
    machine.os.time_slice = 1_000;
    let report = Simulation::new(&machine).cpus(2).run(|| {
        let word = Box::new(Word::default());
        let longest = thread::parallel(8, |_| {
            let mut longest = 0;
            for _ in 0..100 {
                let start = thread::now();
                word.wake(1);
                longest = longest.max(thread::now() - start);
                word.wait(1, None);
            }
            longest
        });
        longest.into_iter().max()
    });
    let report = report.unwrap();
    // At most one of two CPUs waits for the other, and neither for a thread without a CPU.
    for thread in &report.threads {
        assert_eq!(thread.times.total(), thread.finished - thread.started, "{thread:?}");
        assert_eq!(thread.times.lock_spin, 0, "waiting in the kernel is its time: {thread:?}");
    }
}

#[test]
fn a_cpu_that_is_not_idle_yet_pays_no_idle_exit() {
    let mut machine = Machine::example();
    machine.os.idle_exit = 20_000;
    let os = machine.os.clone();
    let woken_after = |cycles: u64| {
        let report = Simulation::new(&machine).run(|| {
            let (word, ready) = (Box::new(Word::default()), Box::new(Word::default()));
            let times = thread::parallel(2, |me| {
                if me == 0 {
                    ready.spin_until(1);
                    word.wait(0, None);
                    return thread::now();
                }
                ready.store(1);
                thread::compute(os.futex_wait + cycles);
                word.wake(1);
                thread::now() - os.wake_thread
            });
            times[0] - times[1]
        });
        report.unwrap().result
    };
    let idle = woken_after(2 * os.context_switch);
    assert_eq!(idle, os.wake_path + os.idle_exit + os.context_switch);
    // It ends the switch to its idle task, and switches back.
    let leaving = woken_after(1_000);
    assert!((os.context_switch..=2 * os.context_switch).contains(&leaving), "{leaving}");
}

#[test]
fn a_futex_times_out() {
    let report = run(|| {
        let word = Box::new(Word::default());
        let until = backend::nanoseconds() + 1000;
        let timed_out = word.wait(0, Some(until));
        (timed_out, backend::nanoseconds() - until)
    });
    let (timed_out, late) = report.result;
    assert!(timed_out && late < 5000, "{late} ns late");
}

#[test]
fn sleepers_wake_and_yielders_make_room() {
    let report = one_cpu().run(|| {
        let word = Box::new(Word::default());
        thread::parallel(2, |me| {
            if me == 0 {
                // Without the yield, the other thread would have to wait for the end of the slice.
                while word.load() == 0 {
                    backend::yield_now();
                }
            } else {
                backend::sleep(1000);
                word.store(1);
            }
        });
    });
    let report = report.unwrap();
    assert!(report.cycles < 1_000_000, "{}", report.cycles);
    let idle = report.threads[2].times.idle;
    assert!(idle >= 2000 + Machine::example().os.timer_slack, "{idle}");
}

#[test]
fn a_stall_holds_up_one_thread() {
    let simulation = Simulation::new(&Machine::example());
    let stall = Stall { thread: 2, access: 10, cycles: 5_000_000 };
    let report = simulation.stall(stall).run(|| {
        thread::parallel(2, |_| {
            let word = Word::default();
            (0..20).for_each(|_| _ = word.add(1));
            thread::now()
        })
    });
    let ends = report.unwrap().result;
    assert!(ends[0] < 1_000_000 && ends[1] > 5_000_000, "{ends:?}");
}

#[test]
fn time_adds_up() {
    let report = run(|| {
        let word = Box::new(Word::default());
        thread::parallel(8, |_| {
            for _ in 0..50 {
                while word.swap(1) == 1 {
                    backend::spin_loop();
                }
                thread::compute(500);
                word.store(0);
                backend::sleep(10);
            }
        });
    });
    for thread in &report.threads {
        assert_eq!(thread.times.total(), thread.finished - thread.started, "{thread:?}");
    }
}

#[test]
fn spinning_and_sleeping_are_counted_apart() {
    let report = run(|| {
        let (spun, slept) = (Box::new(Word::default()), Box::new(Word::default()));
        thread::parallel(4, |me| match me {
            0 => spun.spin_until(1),
            1 => _ = slept.wait(0, None),
            2 => thread::in_phase(thread::Phase::Quiescence, || spun.spin_until(1)),
            _ => {
                thread::compute(1_000_000);
                spun.store(1);
                slept.wake(1);
            }
        });
    });
    let [_, spins, sleeps, quiesces, computes] = report.threads[..] else { panic!("five") };
    let (spins, sleeps, quiesces) = (spins.times, sleeps.times, quiesces.times);
    assert!(spins.lock_spin > 990_000 && spins.lock_wait == 0, "{spins:?}");
    assert!(sleeps.lock_wait > 990_000 && sleeps.lock_spin == 0, "{sleeps:?}");
    assert!(quiesces.quiescence_wait > 990_000 && quiesces.lock_spin == 0, "{quiesces:?}");
    // A profiler finds a thread that spins in a lock, and a thread that never sleeps.
    assert!(spins.cpu.locks > 990_000 && quiesces.cpu.locks == 0, "{spins:?} {quiesces:?}");
    assert!(sleeps.cpu.total() < 10_000, "{sleeps:?}");
    assert_eq!(computes.times.compute / 10_000, 100);
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let report = |seed| {
        let simulation = Simulation::new(&Machine::example()).seed(seed);
        let report = simulation.run(|| {
            let word = Box::new(Word::default());
            thread::parallel(16, |_| {
                for _ in 0..100 {
                    while word.load() == 1 || word.swap(1) == 1 {
                        backend::spin_loop();
                    }
                    thread::compute(100);
                    word.store(0);
                }
                backend::clock()
            })
        });
        format!("{:?}", report.unwrap())
    };
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
}
