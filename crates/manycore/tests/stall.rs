//! One reader sleeps while more writers than CPUs go on, until it has kept one of them waiting for
//! ten seconds. The allocator counts: the garbage stays below the limit of the settings,
//! independent of the library's own reports. The report names the reader, and after its end
//! everything goes on.
#![cfg(all(target_os = "linux", not(any(loom, manycore_bare, miri))))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use manycore::clock::Ordo;
use manycore::session::{self, Sessions};
use manycore::sync::time;
use manycore::{mvrlu, reclaim, rlu, sync};

/// So long the reader keeps a writer waiting.
const BLOCKED: Duration = Duration::from_secs(10);
/// Without such a report for so long, the test fails. On a busy machine, writers take long until
/// they must wait.
const UNREPORTED: Duration = Duration::from_secs(120);
/// After this many milliseconds, at most, every writer goes on.
const RECOVERY: usize = 60_000;
const WRITERS: usize = 4;

/// What one mechanism has allocated: bytes, and the most of them.
struct Account {
    held: AtomicIsize,
    most: AtomicIsize,
}

/// The accounts of the mechanisms, and one of everything else.
static ACCOUNTS: [Account; 4] =
    [const { Account { held: AtomicIsize::new(0), most: AtomicIsize::new(0) } }; 4];
const OTHERS: usize = 3;

thread_local! {
    /// The account of the thread: a mechanism's memory is allocated and freed by its own threads.
    static ACCOUNT: Cell<usize> = const { Cell::new(OTHERS) };
}

/// The system's allocator, which keeps accounts.
struct Counting;

fn book(bytes: isize) {
    let account = &ACCOUNTS[ACCOUNT.get()];
    let held = account.held.fetch_add(bytes, Relaxed) + bytes;
    account.most.fetch_max(held, Relaxed);
}

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        book(layout.size().cast_signed());
        // SAFETY: the layout has a size (contract of `GlobalAlloc`).
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        book(-layout.size().cast_signed());
        // SAFETY: the system has allocated the memory with this layout (contract of `GlobalAlloc`).
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The thread that a report names, and for how long it had kept others waiting.
type Reports = mpsc::Receiver<(u32, Duration)>;

/// Starts the writers, and a reader that sleeps inside.
///
/// `write` is a thread's work until its argument returns that it is over; `read` calls its argument
/// inside a section.
fn sleep_inside(
    name: &str,
    limit: usize,
    reports: &Reports,
    write: impl Fn(usize, &mut dyn FnMut() -> bool) + Sync,
    read: impl FnOnce(&mut dyn FnMut()) + Send,
) {
    let (inside, is_inside) = mpsc::channel();
    let (wake, woken) = mpsc::channel::<()>();
    let is_over = AtomicBool::new(false);
    let done = [const { AtomicU64::new(0) }; WRITERS];
    let number = ACCOUNT.get();
    let account = &ACCOUNTS[number];
    let before = account.held.load(Relaxed);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            ACCOUNT.set(number);
            read(&mut || {
                inside.send(sync::thread::id()).unwrap();
                woken.recv().unwrap_err();
            });
        });
        let thread = is_inside.recv().unwrap();
        let entered = time::now();
        account.most.store(before, Relaxed);
        for (me, done) in done.iter().enumerate() {
            let (write, is_over) = (&write, &is_over);
            scope.spawn(move || {
                ACCOUNT.set(number);
                write(me, &mut || {
                    done.fetch_add(1, Relaxed);
                    !is_over.load(Relaxed)
                });
            });
        }
        // A writer that has lost its CPU is reported as well, but only the reader has blocked for
        // this long.
        let reported = std::iter::from_fn(|| reports.recv_timeout(UNREPORTED).ok())
            .take_while(|_| Duration::from_nanos(time::now() - entered) < UNREPORTED)
            .find(|(who, blocked_for)| *who == thread && *blocked_for >= BLOCKED);
        drop(wake);
        let ended = reader.join();
        let slept = Duration::from_nanos(time::now() - entered);
        let most = (account.most.load(Relaxed) - before).cast_unsigned();
        let counts = || done.each_ref().map(|done| done.load(Relaxed));
        let at_the_end = counts();
        let all_go_on = || (0..WRITERS).all(|me| counts()[me] > at_the_end[me] + 100);
        let goes_on = (0..RECOVERY).any(|_| {
            thread::sleep(Duration::from_millis(1));
            all_go_on()
        });
        let now = counts();
        is_over.store(true, Relaxed);
        ended.expect("the reader sees what it has seen before");
        assert!(goes_on, "{name}: writers had done {at_the_end:?} with the reader, {now:?} later");
        assert!(most <= limit, "{name}: {most} bytes were held, the limit is {limit}");
        let (_, blocked_for) = reported.unwrap_or_else(|| panic!("{name}: no report of {thread}"));
        assert!(blocked_for <= slept, "{name}: {blocked_for:?} of {slept:?}");
    });
}

/// Objects of several sizes are replaced, and wait for the reader.
fn epochs(name: &str) {
    const LIMIT: usize = 4 << 20;
    let (told, reports) = mpsc::channel();
    let config = reclaim::Config::default()
        .with_limit_bytes(LIMIT)
        .with_patience(Duration::from_millis(100))
        .with_on_stall(move |stall| {
            _ = told.send((stall.thread, stall.blocked_for));
        });
    let domain = reclaim::Domain::new(config);
    let slots = [(); 8].map(|()| AtomicPtr::new(Box::into_raw(Box::new([0_u64; 32]))));
    let replace = |me: usize, goes_on: &mut dyn FnMut() -> bool| {
        let member = domain.register();
        let mut round = me;
        while goes_on() {
            round += 1;
            let guard = member.pin();
            let new = Box::into_raw(Box::new([round as u64; 32]));
            let old = slots[round % slots.len()].swap(new, std::sync::atomic::Ordering::AcqRel);
            // SAFETY: from a box, and cannot be found any more.
            unsafe { guard.retire(old) };
        }
    };
    // Nothing is freed, so the lists of waiting objects also take memory: one entry for an object
    // of 256 bytes.
    sleep_inside(name, LIMIT + LIMIT / 4, &reports, replace, |inside| {
        let member = domain.register();
        let _guard = member.pin();
        inside();
    });
    domain.register().synchronize();
    assert_eq!(domain.held_bytes(), 0);
    for slot in slots {
        // SAFETY: from a box, and no thread is there any more.
        drop(unsafe { Box::from_raw(slot.into_inner()) });
    }
}

/// Numbers are incremented in transactions, and the reader continues to see those of its own
/// moment.
fn transactions<D: Sessions>(name: &str, limit: usize, domain: &D, reports: &Reports) {
    session::scope(domain, |all| {
        let mut member = all.register();
        let counters = [(); 8].map(|()| member.create(0_u64));
        let commits = AtomicU64::new(0);
        let count = |me: usize, goes_on: &mut dyn FnMut() -> bool| {
            let (mut member, mut round) = (all.register(), me);
            while goes_on() {
                round += 1;
                member.run(|tx| {
                    *tx.try_lock(counters[round % counters.len()])? += 1;
                    Ok(())
                });
                commits.fetch_add(1, Relaxed);
            }
        };
        sleep_inside(name, limit, reports, count, |inside| {
            all.register().read(|now| {
                let before = counters.map(|counter| *now.deref(counter));
                inside();
                assert_eq!(counters.map(|counter| *now.deref(counter)), before);
            });
        });
        let sum =
            member.read(|now| counters.map(|counter| *now.deref(counter)).iter().sum::<u64>());
        assert_eq!(sum, commits.load(Relaxed), "increments");
    });
}

fn versions(name: &str) {
    let (told, reports) = mpsc::channel();
    let config = mvrlu::Config::default()
        .with_on_stall(move |stall| _ = told.send((stall.thread, stall.blocked_for)));
    // A log for each thread, and what describes those.
    let limit = (WRITERS + 1) * config.segments_max * config.segment_bytes;
    let domain = mvrlu::Domain::new(Ordo::measured(), config);
    transactions(name, limit, &domain, &reports);
}

fn two_versions(name: &str) {
    let (told, reports) = mpsc::channel();
    let config = rlu::Config::default().with_deferred(8).with_on_stall(move |stall| {
        _ = told.send((stall.thread, stall.blocked_for));
    });
    // Up to nine commits of one number each, for each thread, whose memory comes in chunks of 64
    // KiB.
    let limit = (WRITERS + 1) * (64 << 10);
    let domain = rlu::Domain::new(Ordo::measured(), config);
    transactions(name, limit, &domain, &reports);
}

#[test]
fn a_reader_that_sleeps_for_ten_seconds() {
    let mechanisms: [(_, fn(&str)); OTHERS] =
        [("reclaim", epochs), ("mvrlu", versions), ("rlu", two_versions)];
    thread::scope(|scope| {
        for (account, (name, run)) in mechanisms.into_iter().enumerate() {
            scope.spawn(move || {
                ACCOUNT.set(account);
                run(name);
            });
        }
    });
}
