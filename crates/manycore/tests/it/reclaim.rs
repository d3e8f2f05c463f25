//! Grace periods on real CPUs: many threads, threads that come and go, readers that stay, a system
//! that refuses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use manycore::reclaim::{self, BAG_BYTES, Barriers, Config, Domain, Guard, Handle, Stall};
use manycore::sync;
use manycore_history::run::unless_interpreted;

/// Overwritten when it is dropped, so that a later reader is likely to notice.
struct Object {
    number: u64,
    twice: u64,
    dropped: Arc<AtomicUsize>,
}

impl Object {
    fn new(number: u64, dropped: &Arc<AtomicUsize>) -> *mut Self {
        Box::into_raw(Box::new(Self { number, twice: 2 * number, dropped: dropped.clone() }))
    }

    fn check(&self) {
        assert_eq!(self.twice, 2 * self.number, "looked at after its end");
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.twice = u64::MAX;
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Objects that threads look at and replace.
struct Slots {
    domain: Domain,
    slots: Vec<AtomicPtr<Object>>,
    made: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

impl Slots {
    fn new(config: Config) -> Self {
        let dropped = Arc::default();
        let slots = (0..4).map(|n| AtomicPtr::new(Object::new(n, &dropped))).collect();
        Self { domain: Domain::new(config), slots, made: 4.into(), dropped }
    }

    fn look(&self, _guard: &Guard, number: u64) {
        let slot = &self.slots[number as usize % self.slots.len()];
        // SAFETY: it was there during the section.
        unsafe { &*slot.load(Ordering::Acquire) }.check();
    }

    fn replace(&self, guard: &Guard, number: u64) {
        let slot = &self.slots[number as usize % self.slots.len()];
        self.made.fetch_add(1, Ordering::Relaxed);
        let old = slot.swap(Object::new(number, &self.dropped), Ordering::AcqRel);
        // SAFETY: from a box, and cannot be found any more.
        unsafe { guard.retire(old) };
    }

    /// No thread is inside, and nothing is held any more.
    fn check_settled(&self) {
        self.domain.register().synchronize();
        assert_eq!(self.domain.held_bytes(), 0);
        let left = self.made.load(Ordering::Relaxed) - self.dropped.load(Ordering::Relaxed);
        assert_eq!(left, self.slots.len(), "all but the newest are dropped");
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            // SAFETY: from a box, and no other thread has it now.
            drop(unsafe { Box::from_raw(*slot.get_mut()) });
        }
    }
}

fn small(barriers: Barriers) -> Config {
    Config::default().with_barriers(barriers).with_batch(16)
}

#[test]
fn more_threads_than_cpus() {
    for barriers in [Barriers::Auto, Barriers::Fences] {
        let slots = Slots::new(small(barriers));
        thread::scope(|scope| {
            for thread in 0..unless_interpreted(16, 3) {
                let slots = &slots;
                scope.spawn(move || {
                    let handle = slots.domain.register();
                    for round in 0..unless_interpreted(5_000, 40) {
                        let guard = handle.pin();
                        slots.look(&guard, round);
                        let nested = handle.pin();
                        if (thread + round) % 3 == 0 {
                            slots.replace(&nested, round);
                        }
                        drop(guard);
                        slots.look(&nested, round + 1);
                    }
                });
            }
        });
        slots.check_settled();
    }
}

/// Threads alternate between retiring with frequent scans, and only reading. So readers alternately
/// execute fences and do without.
#[test]
fn with_fences_and_without() {
    const ROUNDS: u64 = unless_interpreted(20, 1);
    let slots = Slots::new(Config::default());
    thread::scope(|scope| {
        for thread in 0..4 {
            let slots = &slots;
            scope.spawn(move || {
                let handle = slots.domain.register();
                for round in 0..ROUNDS {
                    for number in 0..unless_interpreted(3_000, 40) {
                        let guard = handle.pin();
                        slots.replace(&guard, number + thread);
                        slots.look(&guard, number + round);
                    }
                    for number in 0..unless_interpreted(30_000, 100) {
                        let guard = handle.pin();
                        slots.look(&guard, number);
                        if number % 3_000 == thread {
                            slots.replace(&guard, number);
                        }
                    }
                }
            });
        }
    });
    slots.check_settled();
}

#[test]
fn threads_come_and_go() {
    let slots = Slots::new(small(Barriers::Auto));
    for _ in 0..unless_interpreted(50, 2) {
        thread::scope(|scope| {
            for thread in 0..8 {
                let slots = &slots;
                scope.spawn(move || {
                    let handle = slots.domain.register();
                    let guard = handle.pin();
                    (0..20).for_each(|round| slots.replace(&guard, thread + round));
                    slots.look(&guard, thread);
                    if thread == 3 {
                        std::mem::forget(guard);
                    }
                });
            }
        });
    }
    slots.check_settled();
}

#[test]
fn what_is_left_goes_with_the_domain() {
    let dropped = Arc::default();
    let domain = Domain::default();
    let handle = domain.register();
    // SAFETY: from a box, and no other thread knows it.
    unsafe { handle.pin().retire(Object::new(1, &dropped)) };
    assert_eq!(domain.held_bytes(), BAG_BYTES + size_of::<Object>());
    drop(handle);
    drop(domain);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn quiescent_states() {
    let slots = Slots::new(small(Barriers::Auto));
    thread::scope(|scope| {
        for _ in 0..8 {
            let slots = &slots;
            scope.spawn(move || {
                let mut qsbr = slots.domain.register_qsbr();
                for round in 0..unless_interpreted(2_000, 40) {
                    {
                        let guard = qsbr.pin();
                        slots.look(&guard, round);
                        slots.replace(&guard, round);
                    }
                    qsbr.quiescent();
                    if round % unless_interpreted(500, 10) == 0 {
                        qsbr.offline(sync::hint::yield_now);
                        qsbr.synchronize();
                    }
                }
            });
        }
    });
    slots.check_settled();
}

/// A destructor panics where a thread reports a quiescent state. Afterwards the thread's sections
/// still protect.
#[test]
fn a_panic_at_a_quiescent_state() {
    let domain = Domain::new(Config::default().with_batch(1));
    let (mut qsbr, mut other) = (domain.register_qsbr(), domain.register());
    qsbr.pin().defer(|| panic!("a destructor, as planned"));
    let has_panicked = (0..64).any(|_| {
        qsbr.pin().defer(|| ());
        catch_unwind(AssertUnwindSafe(|| qsbr.quiescent())).is_err()
    });
    assert!(has_panicked);

    let is_freed = Arc::new(AtomicBool::new(false));
    let guard = qsbr.pin();
    let told = is_freed.clone();
    other.pin().defer(move || told.store(true, Ordering::Relaxed));
    (0..8).for_each(|_| other.collect_now());
    assert!(!is_freed.load(Ordering::Relaxed), "freed during a section");
    drop(guard);
    for _ in 0..8 {
        qsbr.quiescent();
        other.collect_now();
    }
    assert!(is_freed.load(Ordering::Relaxed));
}

/// A reader stays pinned. Writers continue until little room is left, and again after the reader
/// has left; the report names the reader.
#[test]
fn a_reader_that_stays() {
    const LIMIT: usize = unless_interpreted(1 << 20, 1 << 15);
    const PATIENCE: Duration = Duration::from_micros(500);
    let (told, reports) = mpsc::channel();
    let config = Config::default()
        .with_limit_bytes(LIMIT)
        .with_patience(PATIENCE)
        .with_on_stall(move |stall| _ = told.send(*stall));
    let slots = Slots::new(config);
    let most = AtomicUsize::new(0);
    let (inside, is_inside) = mpsc::channel();
    let leave = AtomicBool::new(false);
    let (slots, most, leave) = (&slots, &most, &leave);
    // All together more than there is room for.
    let needed = (unless_interpreted(2, 1) * LIMIT / size_of::<Object>()) as u64;
    thread::scope(|scope| {
        scope.spawn(move || {
            let handle = slots.domain.register();
            let guard = handle.pin();
            slots.look(&guard, 0);
            inside.send(sync::thread::id()).unwrap();
            // Until a writer has had to wait for room.
            while !leave.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            slots.look(&guard, 1);
        });
        let reader = is_inside.recv().unwrap();
        for _ in 0..3 {
            scope.spawn(move || {
                let handle = slots.domain.register();
                for round in 0..needed {
                    slots.replace(&handle.pin(), round);
                    // An exact sum as long as nothing is freed, that is, during the reader's life.
                    let held = slots.domain.held_bytes();
                    if !leave.load(Ordering::Acquire) {
                        most.fetch_max(held, Ordering::Relaxed);
                    }
                }
            });
        }
        // A writer that has lost its CPU in a section is reported, too, but in the end there is
        // only the reader.
        let is_reader = |stall: &Stall| stall.thread == reader && stall.held_bytes > LIMIT / 2;
        let stall = reports.iter().find(is_reader).unwrap();
        assert!(stall.blocked_for > PATIENCE);
        while slots.domain.waits() == 0 {
            sync::hint::yield_now();
        }
        leave.store(true, Ordering::Release);
    });
    let most = most.load(Ordering::Relaxed);
    assert!((LIMIT / 2..=LIMIT).contains(&most), "{most} bytes were held, the limit is {LIMIT}");
    assert_eq!(slots.domain.overruns(), 0);
    slots.check_settled();
}

/// A long scan that repins between its parts, and never leaves, does not delay reclamation. With
/// another guard, it does not repin.
#[test]
fn a_reader_that_repins() {
    let slots = Slots::new(small(Barriers::Auto));
    let (mut reader, mut writer) = (slots.domain.register(), slots.domain.register());
    slots.replace(&writer.pin(), 0);
    let mut guard = reader.pin();
    // The epoch begins at most twice without it.
    let dropped = |writer: &mut Handle| {
        (0..5).for_each(|_| writer.collect_now());
        slots.dropped.load(Ordering::Relaxed)
    };
    assert_eq!(dropped(&mut writer), 0);
    let nested = reader.pin();
    for _ in 0..5 {
        guard.repin();
        assert_eq!(dropped(&mut writer), 0, "a guard was there all the time");
    }
    drop(nested);
    for _ in 0..5 {
        guard.repin();
        writer.collect_now();
    }
    assert_eq!(dropped(&mut writer), 1);
    slots.look(&guard, 0);
    slots.replace(&writer.pin(), 0);
    let dropped_meanwhile = guard.repin_after(|| dropped(&mut writer));
    assert_eq!(dropped_meanwhile, 2);
    drop(guard);
    assert!(!reader.is_pinned());
    reader.synchronize();
}

/// If a destructor panics while a thread repins, the thread is in a section afterwards.
#[test]
fn a_panic_at_a_repin() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("as planned");
        }
    }
    let slots = Slots::new(Config::default().with_batch(1));
    let (reader, mut writer) = (slots.domain.register(), slots.domain.register());
    let mut guard = reader.pin();
    // SAFETY: from a box, and no other thread knows it.
    unsafe { guard.retire(Box::into_raw(Box::new(Panics))) };
    let panicked = (0..20_u8).any(|number| {
        // SAFETY: from a box, and no other thread knows it.
        unsafe { guard.retire(Box::into_raw(Box::new(number))) };
        catch_unwind(AssertUnwindSafe(|| guard.repin())).is_err()
    });
    assert!(panicked, "nothing was destroyed at a repin");
    slots.replace(&writer.pin(), 0);
    (0..5).for_each(|_| writer.collect_now());
    assert_eq!(slots.dropped.load(Ordering::Relaxed), 0, "freed beside a reader");
}

/// The process' own domain, without handles: nested sections, threads that end, sections at their
/// end, and a thread that waits for itself.
#[test]
fn the_process_own_domain() {
    /// Has a section when a thread's variables go.
    struct AtTheEnd(Arc<AtomicUsize>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            reclaim::section(|guard| {
                // SAFETY: from a box, and no other thread knows it.
                unsafe { guard.retire(Object::new(1, &self.0)) };
            });
        }
    }
    thread_local! {
        static AT_THE_END: std::cell::RefCell<Option<AtTheEnd>> = const { std::cell::RefCell::new(None) };
    }
    const ROUNDS: u64 = unless_interpreted(50, 2);
    let dropped = Arc::new(AtomicUsize::new(0));
    let slot = AtomicPtr::new(Object::new(0, &dropped));
    // SAFETY: it was there during the section.
    let look = || reclaim::section(|_| unsafe { &*slot.load(Ordering::Acquire) }.check());
    let replace = |number| {
        reclaim::section(|guard| {
            look();
            let old = slot.swap(Object::new(number, &dropped), Ordering::AcqRel);
            // SAFETY: from a box, and not reachable any more.
            unsafe { guard.retire(old) };
        });
    };
    let work = |round: u64, number: u64| {
        // On some threads it is set before the handle, on others after it: so it is destroyed after
        // the handle, or before.
        let set = || AT_THE_END.set(Some(AtTheEnd(dropped.clone())));
        if number.is_multiple_of(2) {
            set();
        }
        for step in 0..20 {
            look();
            replace(round * 100 + step);
        }
        if !number.is_multiple_of(2) {
            set();
        }
    };
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            let work = &work;
            let threads = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| scope.spawn(move || work(round, n)));
            // The scope does not wait for the end of their variables.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
    assert!(!reclaim::is_pinned() && reclaim::section(|_| reclaim::is_pinned()));
    let itself = catch_unwind(|| reclaim::section(|_| reclaim::synchronize()));
    assert!(itself.is_err(), "it has waited for itself");
    reclaim::synchronize();
    assert_eq!(dropped.load(Ordering::Relaxed), ROUNDS as usize * 8 * 21);
    assert_eq!(reclaim::domain().held_bytes(), 0);
    // SAFETY: from a box, and no other thread has it.
    drop(unsafe { Box::from_raw(slot.into_inner()) });
}

/// A thread that limits its wait may exceed the bound of garbage, and that is counted.
#[test]
fn waiting_has_an_end_if_asked_for() {
    const LIMIT: usize = unless_interpreted(10_000, 500);
    let config =
        Config::default().with_limit_bytes(LIMIT).with_wait_max(Duration::ZERO).with_batch(4);
    let slots = Slots::new(config);
    let reader = slots.domain.register();
    let guard = reader.pin();
    let writer = slots.domain.register();
    (0..unless_interpreted(1_000, 40)).for_each(|round| slots.replace(&writer.pin(), round));
    assert!(slots.domain.held_bytes() > LIMIT && slots.domain.overruns() > 0);
    drop(guard);
    drop((reader, writer));
    slots.check_settled();
}

#[test]
fn a_destructor_may_panic_or_use_the_domain() {
    struct Uses(Arc<Domain>, Arc<AtomicU64>);
    impl Drop for Uses {
        fn drop(&mut self) {
            let handle = self.0.register();
            let counter = self.1.clone();
            handle.pin().defer(move || _ = counter.fetch_add(1, Ordering::Relaxed));
        }
    }
    let domain = Arc::new(Domain::new(Config::default().with_batch(1)));
    let counter = Arc::new(AtomicU64::new(0));
    let mut handle = domain.register();
    for _ in 0..10 {
        let (domain, counter) = (domain.clone(), counter.clone());
        let uses = Uses(domain, counter.clone());
        // A panic belongs to a destructor that this thread happens to call, not to an object that
        // it retires.
        _ = catch_unwind(AssertUnwindSafe(|| handle.pin().defer(move || drop(uses))));
        _ = catch_unwind(AssertUnwindSafe(|| handle.pin().defer(|| panic!("a destructor's"))));
    }
    while counter.load(Ordering::Relaxed) < 10 {
        _ = catch_unwind(AssertUnwindSafe(|| handle.synchronize()));
    }
}

/// The system refuses membarrier to this thread: readers have fences then.
#[test]
#[cfg_attr(miri, ignore = "the interpreter has no seccomp")]
fn a_system_that_refuses() {
    thread::scope(|scope| {
        scope.spawn(|| {
            if !refuse_membarrier() {
                eprintln!("this kernel has no seccomp: nothing can be refused");
                return;
            }
            let slots = Slots::new(small(Barriers::Auto));
            assert!(!slots.domain.is_asymmetric());
            let handle = slots.domain.register();
            (0..100).for_each(|round| slots.replace(&handle.pin(), round));
            drop(handle);
            slots.check_settled();
        });
    });
}

/// Makes the call fail for this thread from now on, as in some sandboxes; returns whether that is
/// possible.
fn refuse_membarrier() -> bool {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        step(load, 0, 0, 0), // the number of the call
        step(jump, 0, 1, libc::SYS_membarrier as u32),
        step(end, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(end, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}
