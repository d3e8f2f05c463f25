//! The cost of accesses.

use manycore_sim::machine::{Combining, Persist};
use manycore_sim::{Machine, Placement, Simulation, backend, thread};

use super::facade::Word;
use super::run;

/// The time that a call takes.
fn took(f: impl FnOnce()) -> u64 {
    let start = thread::now();
    f();
    thread::now() - start
}

/// Runs `first` on one CPU and then `second`, timed, on another.
fn after(cpus: [u32; 2], first: fn(&Word), second: fn(&Word)) -> u64 {
    let on = Placement::Cpus(cpus.to_vec());
    let report = Simulation::new(&Machine::example()).placement(on).run(|| {
        let (word, done) = (Box::new(Word::default()), Box::new(Word::default()));
        thread::parallel(2, |me| {
            if me == 0 {
                first(&word);
                backend::fence();
                done.store(1);
                return 0;
            }
            done.spin_until(1);
            thread::compute(10_000); // whatever is on its way has arrived
            took(|| second(&word))
        })[1]
    });
    report.unwrap().result
}

#[test]
fn a_miss_costs_what_the_machine_says() {
    let latency = Machine::example().latency;
    let load: fn(&Word) = |w| _ = w.load();
    let store: fn(&Word) = |w| w.store(1);
    let rmw: fn(&Word) = |w| _ = w.add(1);
    assert_eq!(after([0, 1], store, load), latency.load.modified[0]);
    assert_eq!(after([0, 4], store, load), latency.load.modified[1]);
    assert_eq!(after([0, 1], store, rmw), latency.rmw.modified[0]);
    assert_eq!(after([0, 4], store, rmw), latency.rmw.modified[1]);
    // The store buffer hides a store, and a fence shows it.
    assert_eq!(after([0, 4], store, store), latency.store_hit);
    let fenced: fn(&Word) = |w| {
        w.store(1);
        backend::fence();
    };
    let fence = Machine::example().core.fence;
    assert_eq!(after([0, 4], store, fenced), latency.store.modified[1] + fence);
}

#[test]
fn lines_that_were_read_are_shared() {
    let machine = Machine::example();
    let report = run(|| {
        let words: Vec<Word> = (0..3).map(|_| Word::default()).collect();
        thread::parallel(6, |me| {
            thread::compute(u64::from(me) * 10_000);
            match me {
                // From memory: the line becomes exclusive, and a write needs no other core's
                // permission.
                0 => [took(|| _ = words[0].load()), took(|| _ = words[0].add(1))],
                // The same socket, then again.
                1 => [took(|| _ = words[0].load()), took(|| _ = words[0].load())],
                // The other socket, whose first read is remote and whose second is local.
                4 => [took(|| _ = words[0].load()), 0],
                5 => [took(|| _ = words[0].load()), took(|| _ = words[0].add(1))],
                _ => [0, 0],
            }
        })
    });
    let latency = &machine.latency;
    let [a, b, _, _, e, f] = report.result[..] else { panic!("six threads") };
    assert_eq!(a, [latency.load.uncached[0], latency.rmw_hit]);
    assert_eq!(b, [latency.load.modified[0], machine.caches.same_line]);
    assert_eq!(e[0], latency.load.shared[1]);
    assert_eq!(f[0], latency.load.shared[0]);
    // All CPUs have to give up the line, the farthest one in the other socket.
    assert_eq!(f[1], latency.rmw.shared[1]);
}

#[test]
fn a_line_that_is_written_back_is_safe_after_the_latency() {
    let machine = Machine::example();
    let (persist, hit) = (machine.persist, machine.caches.same_line);
    let (issue, far) = (persist.flush + hit, machine.latency.load.uncached[1]);
    let report = run(|| {
        let words: Vec<Word> = (0..3).map(|_| Word::default()).collect();
        let back = |word: &Word| backend::write_back(word.address());
        words.iter().for_each(|word| _ = word.load());
        let one = took(|| {
            _ = words[2].load();
            back(&words[2]);
        });
        let safe = took(backend::wait_until_safe);
        let again = took(backend::wait_until_safe);
        // Each line occupies the memory, and the last one is safe after those before it.
        let three = took(|| {
            words.iter().for_each(back);
            backend::wait_until_safe();
        });
        // The first thread has touched the page, so it is far from the other socket.
        let remote = thread::parallel(5, |me| match me {
            4 => {
                _ = words[0].load();
                thread::compute(10_000);
                _ = words[0].load();
                took(|| {
                    back(&words[0]);
                    backend::wait_until_safe();
                })
            }
            _ => 0,
        })[4];
        [one, safe, again, three, remote]
    });
    let [one, safe, again, three, remote] = report.result;
    assert_eq!((one, safe, again), (hit + issue, persist.latency, 0));
    assert!(three > issue + persist.latency + 2 * (persist.occupancy - issue), "{three}");
    assert!(three < 3 * (issue + persist.latency), "{three}");
    assert_eq!(remote, issue + persist.latency + far - machine.latency.load.uncached[0]);
}

#[test]
fn write_back_needs_persistent_memory() {
    let mut machine = Machine::example();
    machine.persist = Persist::default();
    let failure = Simulation::new(&machine).run(|| {
        let word = Word::default();
        word.store(1);
        backend::write_back(word.address());
    });
    let failure = failure.unwrap_err().to_string();
    assert!(failure.contains("has no persistent memory: give its model"), "{failure}");
}

/// A machine that treats a core that loads a line another core has changed as the line's next
/// writer.
fn migratory() -> Machine {
    let mut machine = Machine::example();
    machine.directory.migratory = true;
    machine
}

#[test]
fn a_changed_line_may_be_taken_over() {
    let machine = migratory();
    let report = Simulation::new(&machine).placement(Placement::Cpus(vec![0, 1])).run(|| {
        let word = Box::new(Word::default());
        let load = || took(|| _ = word.load());
        let add = || took(|| _ = word.add(1));
        thread::parallel(2, |me| {
            thread::compute(u64::from(me) * 10_000);
            match me {
                // The other CPU has taken the line over and changed it before the first load. That
                // load takes it back. The second load finds that the other CPU has loaded the line,
                // but not changed it.
                0 => {
                    _ = add();
                    thread::compute(20_000);
                    let back = load();
                    thread::compute(20_000);
                    [back, load(), add(), 0]
                }
                _ => {
                    let (over, change) = (load(), add());
                    thread::compute(20_000);
                    [over, change, load(), load()]
                }
            }
        })
    });
    let latency = &machine.latency;
    let [first, second] = report.unwrap().result[..] else { panic!("two threads") };
    assert_eq!(second[..2], [latency.load.modified[0], latency.rmw_hit]);
    assert_eq!(first[0], latency.load.modified[0]);
    // The line was not changed since it came back, so now both have copies.
    assert_eq!(second[2..], [latency.load.modified[0], machine.caches.same_line]);
    assert_eq!(first[1..3], [machine.caches.same_line, latency.rmw.shared[0]]);
}

#[test]
fn a_polling_core_gets_a_new_copy() {
    let machine = migratory();
    let report = Simulation::new(&machine).placement(Placement::Cpus(vec![0, 1])).run(|| {
        let word = Box::new(Word::default());
        thread::parallel(2, |me| {
            if me == 0 {
                word.store(1);
                word.spin_until(2);
                return 0;
            }
            thread::compute(10_000);
            _ = word.load();
            thread::compute(10_000);
            took(|| _ = word.add(1))
        })[1]
    });
    assert_eq!(report.unwrap().result, machine.latency.rmw.shared[0]);
}

#[test]
fn writers_are_served_one_after_the_other() {
    let machine = Machine::example();
    let report = run(|| {
        let word = Box::new(Word::default());
        word.store(1);
        thread::compute(1000);
        thread::parallel(4, |_| took(|| _ = word.add(1)))
    });
    let each = machine.latency.rmw.modified[0];
    let mut times = report.result;
    times.sort();
    // The first CPU, the main thread's, has the line already.
    assert_eq!(times[0], machine.latency.rmw_hit);
    let gaps: Vec<_> = times[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [each + machine.directory.hold; 2]);
}

#[test]
fn a_message_is_two_transfers_and_hold() {
    let machine = Machine::example();
    let round_trips = |count: u32| {
        run(|| {
            let turn = Box::new(Word::default());
            thread::parallel(2, |me| {
                for _ in 0..count {
                    turn.spin_until(me);
                    turn.store(1 - me);
                }
            });
        })
    };
    let two_hundred_messages = round_trips(200).cycles - round_trips(100).cycles;
    // The line moves to the writer, stays there for a while, and is read from there.
    let (store, load) = (machine.latency.store.shared[0], machine.latency.load.modified[0]);
    assert_eq!(two_hundred_messages, 200 * (store + machine.directory.hold + load));
}

/// How long eight stores take to lines that another socket owns.
fn stores(places: u32) -> u64 {
    let mut machine = Machine::example();
    machine.core.store_buffer = places;
    machine.bandwidth.link_occupancy = 0;
    let on = Placement::Cpus(vec![0, 4]);
    let report = Simulation::new(&machine).placement(on).run(|| {
        let words: Vec<Word> = (0..8).map(|_| Word::default()).collect();
        thread::parallel(2, |me| {
            if me == 1 {
                words.iter().for_each(|word| word.store(1));
                return 0;
            }
            thread::compute(10_000);
            took(|| words.iter().for_each(|word| word.store(2)))
        })[0]
    });
    report.unwrap().result
}

#[test]
fn the_store_buffer_is_limited() {
    let latency = Machine::example().latency;
    let (far, hit) = (latency.store.modified[1], latency.store_hit);
    assert_eq!(stores(8), 8 * hit, "none is waited for");
    // The CPU waits for the first store. Meanwhile all others have started except the last.
    assert_eq!(stores(7), far);
    assert!((3 * far..5 * far).contains(&stores(1)), "two at a time: {}", stores(1));
    assert_eq!(stores(0), 8 * far, "each is waited for");
}

/// How long it takes until all CPUs of a socket have seen a change.
fn all_have_seen(combining: Combining) -> u64 {
    let mut machine = Machine::example();
    machine.directory.combining = combining;
    let report = Simulation::new(&machine).run(|| {
        let word = Box::new(Word::default());
        let ends = thread::parallel(8, |me| {
            thread::compute(1000);
            if me == 0 {
                thread::compute(1000);
                word.store(1);
            } else {
                word.spin_until(1);
            }
            thread::now()
        });
        ends.iter().max().unwrap() - ends[0]
    });
    report.unwrap().result
}

#[test]
fn reads_of_a_socket_are_combined() {
    let (alone, together) = (all_have_seen(Combining::None), all_have_seen(Combining::Socket));
    assert!(alone > together, "one by one {alone}, together {together}");
}

#[test]
fn capacity_is_limited() {
    let machine = Machine::example();
    let lines = machine.caches.l2.bytes / 64;
    let misses = |lines: u64| {
        let report = run(|| {
            let words: Vec<Word> = (0..lines).map(|_| Word::default()).collect();
            words.iter().for_each(|word| _ = word.load());
            took(|| words.iter().for_each(|word| _ = word.load()))
        });
        report.result / lines
    };
    assert!(misses(lines / 2) <= machine.caches.l2_hit);
    // In a sweep over more lines than fit, the least recently used one is always needed next.
    assert!(misses(lines * 2) >= machine.latency.load.shared[0]);
    let llc = machine.caches.llc.bytes / 64;
    assert!(misses(llc * 2) >= machine.latency.load.uncached[0]);
}

#[test]
fn siblings_share_a_core() {
    let elapsed = |cpus: [u32; 2]| {
        let on = Placement::Cpus(cpus.to_vec());
        let simulation = Simulation::new(&Machine::example()).placement(on);
        let report = simulation.run(|| {
            thread::parallel(2, |_| (0..100).for_each(|_| thread::compute(1000)));
        });
        report.unwrap().cycles
    };
    assert!(elapsed([0, 8]) > elapsed([0, 1]) * 14 / 10);
}

#[test]
fn clocks_are_skewed() {
    let mut machine = Machine::example();
    machine.core.tsc_skew = vec![0, -500, 0, 0, 1000, 0, 0, 0];
    let report =
        Simulation::new(&machine).run(|| thread::parallel(5, |_| backend::clock() - thread::now()));
    let clocks = report.unwrap().result;
    assert_eq!(clocks[0] - clocks[1], 500);
    assert_eq!(clocks[4] - clocks[0], 1000);
}

#[test]
fn the_boundary_of_clocks_is_the_machines() {
    let mut machine = Machine::example();
    machine.core.clock_boundary = 1_214;
    let report = Simulation::new(&machine).run(backend::boundary);
    assert_eq!(report.unwrap().result, Some(1_214));
    assert_eq!(backend::boundary(), None); // on the host
}

/// No thread that exchanges messages finds counters farther apart than the boundary, nor much
/// closer.
#[test]
fn clocks_differ_by_the_boundary_at_most() {
    let mut machine = Machine::example();
    machine.core.tsc_skew = vec![0, 0, 0, 0, 300, 300, 300, 300];
    let delay = |from: u32, to: u32| {
        let on = Placement::Cpus(vec![from, to]);
        let report = Simulation::new(&machine).placement(on).run(|| {
            let word = Word::default();
            let clocks = thread::parallel(2, |me| {
                let clock = || backend::clock() as u32;
                if me == 0 {
                    thread::compute(5_000);
                    word.store(clock());
                    return 0;
                }
                loop {
                    match word.load() {
                        0 => backend::spin_loop(),
                        sent => return clock().wrapping_sub(sent),
                    }
                }
            });
            clocks[1]
        });
        i64::from(report.unwrap().result.cast_signed())
    };
    let boundary = machine.derived_clock_boundary().cast_signed();
    // One iteration of the polling loop may come in between.
    let found = delay(0, 4).max(delay(4, 0)) - machine.core.pause.cast_signed();
    assert!(found <= boundary && boundary < 4 * found, "{found} {boundary}");
}

#[test]
fn memory_has_a_bandwidth() {
    let elapsed = |occupancy| {
        let mut machine = Machine::example();
        machine.bandwidth.memory_occupancy = occupancy;
        let report = Simulation::new(&machine).run(|| {
            thread::parallel(4, |_| {
                let words: Vec<Word> = (0..500).map(|_| Word::default()).collect();
                words.iter().for_each(|word| _ = word.load());
            });
        });
        report.unwrap().cycles
    };
    assert!(elapsed(0) < 500 * 400);
    assert!(elapsed(200) >= 4 * 500 * 200);
}

#[test]
fn links_have_a_bandwidth() {
    let elapsed = |occupancy| {
        let mut machine = Machine::example();
        machine.bandwidth.link_occupancy = occupancy;
        let report = Simulation::new(&machine).run(|| {
            let words: Vec<Word> = (0..400).map(|_| Word::default()).collect();
            words.iter().for_each(|word| word.store(1));
            backend::fence();
            let start = thread::now();
            // Four CPUs of the other socket read a hundred lines each.
            thread::parallel(8, |me| {
                let mine = words.iter().skip(me as usize * 100 % 400).take(100);
                mine.filter(|_| me >= 4).for_each(|word| _ = word.load());
            });
            thread::now() - start
        });
        report.unwrap().result
    };
    assert!(elapsed(0) < 100 * 400 + 20_000, "{}", elapsed(0));
    assert!(elapsed(1000) >= 400 * 1000, "{}", elapsed(1000));
}

#[test]
fn loads_of_a_line_do_not_wait_for_each_other() {
    let report = run(|| {
        let words: Vec<Word> = (0..2).map(|_| Word::default()).collect();
        words.iter().for_each(|word| _ = word.load());
        let load = |word: usize| took(|| _ = words[word].load());
        // If they alternate, the simulator assumes that each depends on the other. The thread waits
        // for a store in between.
        let of_each = [load(0), load(0), load(1), load(0)];
        words[0].store(1);
        (of_each, load(0))
    });
    let caches = Machine::example().caches;
    let (near, far) = (caches.same_line, caches.l1_hit);
    assert!(near < far);
    assert_eq!(report.result, ([far, near, far, far], far));
}

/// How long CPUs take to read lines that another CPU has changed. Each reads lines of its own, and
/// prefetches some of them.
fn reads_by(cpus: &[u32], ahead: usize, prefetches: u32) -> u64 {
    const LINES: usize = 64;
    let mut machine = Machine::example();
    machine.topology.threads_per_core = 2;
    machine.core.prefetches = prefetches;
    let placement = Placement::Cpus([&[0], cpus].concat());
    let report = Simulation::new(&machine).placement(placement).run(|| {
        let words: Vec<Word> = (0..LINES * cpus.len()).map(|_| Word::default()).collect();
        let done = Word::default();
        let times = thread::parallel(1 + cpus.len() as u32, |me| {
            if me == 0 {
                words.iter().for_each(|word| word.store(1));
                backend::fence();
                done.store(1);
                return 0;
            }
            done.spin_until(1);
            let words = &words[(me as usize - 1) * LINES..][..LINES];
            took(|| {
                let address = |word: &Word| core::ptr::from_ref(word).addr();
                let asked = ahead.min(LINES);
                words[..asked].iter().for_each(|word| backend::prefetch(address(word)));
                for (place, word) in words.iter().enumerate() {
                    let next = words.get(place + ahead).filter(|_| ahead > 0);
                    next.into_iter().for_each(|word| backend::prefetch(address(word)));
                    assert_eq!(word.load(), 1);
                }
            })
        });
        times.into_iter().max().unwrap()
    });
    report.unwrap().result
}

fn reads(ahead: usize, prefetches: u32) -> u64 {
    reads_by(&[4], ahead, prefetches)
}

#[test]
fn prefetched_lines_arrive_together() {
    let one_after_the_other = reads(0, 10);
    assert!(one_after_the_other >= 64 * Machine::example().latency.load.modified[1]);
    let (eight, two) = (reads(8, 10), reads(8, 2));
    assert!(eight * 5 < one_after_the_other, "{eight} of {one_after_the_other}");
    // No more lines are on their way than the core can keep track of.
    assert!(two > 2 * eight && two < one_after_the_other, "{two}, {eight}");
    // Without prefetching, it takes as long as if no thread had requested lines.
    assert_eq!(reads(8, 0), one_after_the_other);
}

#[test]
fn siblings_share_the_buffers_for_prefetches() {
    let sibling = 4 + Machine::example().topology.cores();
    let (cores, siblings) = (reads_by(&[4, 5], 8, 8), reads_by(&[4, sibling], 8, 8));
    assert!(5 * siblings > 6 * cores, "{siblings}, {cores}");
    // With buffers for both, each takes as long as if it had a core of its own.
    let enough = reads_by(&[4, sibling], 8, 18);
    assert!(5 * siblings > 6 * enough, "{siblings}, {enough}");
}

#[test]
fn a_line_that_a_sibling_prefetched_is_waited_for() {
    let mut machine = Machine::example();
    machine.topology.threads_per_core = 2;
    let placement = Placement::Cpus(vec![4, 0, machine.topology.cores()]);
    let report = Simulation::new(&machine).placement(placement).run(|| {
        let [word, changed, asked] = [(); 3].map(|()| Word::default());
        thread::parallel(3, |me| match me {
            0 => {
                word.store(1);
                backend::fence();
                changed.store(1);
                0
            }
            1 => {
                changed.spin_until(1);
                asked.store(0);
                backend::fence();
                backend::prefetch(core::ptr::from_ref(&word).addr());
                asked.store(1);
                0
            }
            _ => {
                asked.spin_until(1);
                took(|| _ = word.load())
            }
        })[2]
    });
    let (waited, hit) = (report.unwrap().result, Machine::example().caches.l1_hit);
    assert!(waited > 10 * hit, "{waited}, where a hit takes {hit}");
}

#[test]
fn every_other_unpredictable_branch_is_mispredicted() {
    let took_ten = |cost| {
        let mut machine = Machine::example();
        machine.core.branch_miss = cost;
        let ten = || took(|| (0..10).for_each(|_| backend::unforeseen_branch()));
        Simulation::new(&machine).run(ten).unwrap().result
    };
    assert_eq!([took_ten(16), took_ten(13)], [80, 65]);
}

#[test]
fn a_loop_that_polls_comes_to_an_end() {
    let mut machine = Machine::example();
    machine.caches.same_line = 0;
    let report = Simulation::new(&machine).run(|| {
        let word = Word::default();
        thread::parallel(2, |me| match me {
            0 => {
                thread::compute(1000);
                word.store(1);
            }
            _ => while word.load() == 0 {},
        });
    });
    report.unwrap();
}

/// A thread's clocks on a core of 2 GHz: the counter's advance in 10,000 cycles of computing, the
/// cycles of a delay of `ticks`, and the cycles of a poll for 100 ticks.
fn by_the_counter(counter_ghz: f64, ticks: u64) -> [u64; 3] {
    let mut machine = Machine::example();
    machine.core.counter_ghz = Some(counter_ghz);
    let report = Simulation::new(&machine).run(|| {
        let word = Box::new(Word::default());
        let before = backend::clock();
        thread::compute(10_000);
        let counted = backend::clock() - before;
        let before = thread::now();
        backend::delay(ticks);
        let delayed = thread::now() - before;
        let (before, start) = (thread::now(), backend::clock());
        while word.load() == 0 && !backend::has_passed(start, 100) {
            backend::spin_loop();
        }
        [counted, delayed, thread::now() - before]
    });
    report.unwrap().result
}

#[test]
fn a_slow_counter_ticks_seldom_and_polls_last_as_many_ticks() {
    let [counted, delayed, polled] = by_the_counter(2.0, 800);
    assert!((10_000..10_100).contains(&counted) && delayed == 800, "{counted}, {delayed}");
    assert!((100..400).contains(&polled), "{polled}");
    // 25 MHz: a tick is 80 cycles.
    let [counted, delayed, polled] = by_the_counter(0.025, 10);
    assert!((125..=126).contains(&counted) && delayed == 800, "{counted}, {delayed}");
    assert!((7_900..8_400).contains(&polled), "{polled}");
}
