//! `manycore profile` describes a run as a whole: threads, their waits and the holders, queues, the
//! order of locks.
//!
//! Durations lie between two measurements by the program's own clock, one inside of them and one
//! around them, however busy the machine is.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;

use crate::support::real::{Profiled, profile};
use crate::support::{compile, directory, stdout};
use serde_json::{Value, json};

const WAITERS: u64 = 5;
const ROUNDS: u64 = 20;

/// The main thread keeps a lock until all waiters sleep in the wait for it, as the kernel says;
/// then they take it one by one. It prints the least that each of them can have waited for each
/// lock, and the most that a queue can have lasted; they print how long they waited.
const QUEUES: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { WAITERS = 5, ROUNDS = 20 };
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t ready;
static volatile int tids[WAITERS];
static long now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}
__attribute__((noinline)) void wait_for(pthread_mutex_t *lock) {
    pthread_mutex_lock(lock);
    __asm__ volatile("");
}
__attribute__((noinline)) void hold(pthread_mutex_t *lock) {
    pthread_mutex_lock(lock);
    __asm__ volatile("");
}
static pthread_mutex_t *lock_of(int round) { return round < ROUNDS ? &first : &second; }
static void *waiter(void *argument) {
    long number = (long)argument, waited[2] = {0, 0};
    char name[16];
    snprintf(name, sizeof name, "waiter %ld", number);
    pthread_setname_np(pthread_self(), name);
    tids[number] = syscall(SYS_gettid);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        pthread_barrier_wait(&ready);
        long before = now(CLOCK_MONOTONIC);
        wait_for(lock_of(round));
        waited[round / ROUNDS] += now(CLOCK_MONOTONIC) - before;
        pthread_mutex_unlock(lock_of(round));
        pthread_barrier_wait(&ready);
    }
    for (volatile long i = 0; i < 20000000; i++);
    printf("waiter %ld %d %ld %ld %ld\n", number, tids[number], waited[0], waited[1], now(CLOCK_THREAD_CPUTIME_ID));
    return NULL;
}
static void await_sleep(int tid, void *lock) {
    char path[64];
    long call, place;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    for (int looks = 0; looks < 100000; looks++) {
        FILE *file = fopen(path, "r");
        if (!file) exit(90);
        int found = fscanf(file, "%ld %li", &call, &place);
        fclose(file);
        if (found == 2 && call == SYS_futex && place >= (long)lock && place < (long)lock + 40) return;
        usleep(200);
    }
    exit(91);
}
int main(void) {
    pthread_t threads[WAITERS];
    long least[2] = {0, 0}, least_queue = 0, most_queue = 0;
    pthread_barrier_init(&ready, NULL, WAITERS + 1);
    for (long i = 0; i < WAITERS; i++) pthread_create(&threads[i], NULL, waiter, (void *)i);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        hold(lock_of(round));
        long begun = now(CLOCK_MONOTONIC);
        pthread_barrier_wait(&ready);
        for (int i = 0; i < WAITERS; i++) await_sleep(tids[i], lock_of(round));
        long asleep = now(CLOCK_MONOTONIC);
        usleep(round < ROUNDS ? 8000 : 3000);
        long slept = now(CLOCK_MONOTONIC) - asleep;
        pthread_mutex_unlock(lock_of(round));
        pthread_barrier_wait(&ready);
        long queue = now(CLOCK_MONOTONIC) - begun;
        least[round / ROUNDS] += slept;
        if (slept > least_queue) least_queue = slept;
        if (queue > most_queue) most_queue = queue;
    }
    for (int i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
    printf("main %ld %ld %ld %ld\n", least[0], least[1], least_queue, most_queue);
    return 0;
}
"#;

/// What a program printed: numbers by the words before them.
fn printed(profiled: &Profiled) -> HashMap<String, Vec<u64>> {
    let text = stdout(&profiled.output);
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let named = if words[0] == "main" { 1 } else { 2 };
        let numbers = words[named..].iter().map(|word| word.parse().unwrap()).collect();
        (words[..named].join(" "), numbers)
    };
    text.lines().map(line).collect()
}

fn array<'a>(json: &'a Value, field: &str) -> &'a Vec<Value> {
    json[field].as_array().unwrap_or_else(|| panic!("no {field} in {json:#}"))
}

/// The place of a lock among the locks.
fn place(profiled: &Profiled, name: &str) -> usize {
    let found = profiled.names().iter().position(|lock| lock.starts_with(name));
    found.unwrap_or_else(|| panic!("no {name} in {:?}", profiled.names()))
}

fn number(json: &Value) -> u64 {
    json.as_u64().unwrap_or_else(|| panic!("{json} is no whole number"))
}

/// The entry about a lock.
fn about(list: &[Value], lock: usize) -> &Value {
    list.iter().find(|entry| entry["lock"] == json!(lock)).unwrap_or_else(|| panic!("{list:#?}"))
}

#[test]
fn threads_queues_and_holders_are_as_the_program_says() {
    let directory = directory();
    let program = compile(directory.path(), "queues", QUEUES, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    assert_eq!(profiled.output.status.code(), Some(0));
    let printed = printed(&profiled);
    let [least_first, least_second, least_queue, most_queue] = printed["main"][..] else {
        panic!("{printed:?}")
    };
    let locks = [place(&profiled, "first ("), place(&profiled, "second (")];
    let threads = array(&profiled.json, "threads");
    assert_eq!(threads.len() as u64, WAITERS + 1, "{threads:#?}");

    for waiter in 0..WAITERS {
        let name = format!("waiter {waiter}");
        let [tid, first, second, cpu_ns] = printed[&name][..] else { panic!("{printed:?}") };
        let thread = threads.iter().find(|thread| thread["name"] == json!(name)).unwrap();
        assert_eq!((number(&thread["tid"]), number(&thread["acquired"])), (tid, 2 * ROUNDS));
        let waits = array(thread, "waits");
        for (lock, least, most) in
            [(locks[0], least_first, first), (locks[1], least_second, second)]
        {
            let waited = about(waits, lock);
            assert_eq!(number(&waited["contended"]), ROUNDS);
            let ns = number(&waited["wait_ns"]);
            // A tick's length is known to one part in ten thousand.
            assert!(
                (least - least / 1000..=most + most / 1000).contains(&ns),
                "{least} {ns} {most}"
            );
        }
        let cpu = |part: &str| thread["cpu"][part].as_f64().unwrap();
        let all = cpu("kernel") + cpu("program") + cpu("lock_spin");
        // The program's use after its output is small, but not zero.
        assert!(all >= cpu_ns as f64 / 1e9 - 1e-4, "{all} {cpu_ns}");
        assert!(cpu("lock_wait") <= (first + second) as f64 / 1e9 * 1.001);
    }

    for (lock, name) in locks.iter().zip(["first (", "second ("]) {
        let total = number(&profiled.lock(name)["wait"]["total_ns"]);
        let of_threads: u64 = threads
            .iter()
            .flat_map(|thread| array(thread, "waits"))
            .filter(|waited| waited["lock"] == json!(lock))
            .map(|waited| number(&waited["wait_ns"]))
            .sum();
        assert!(of_threads.abs_diff(total) <= WAITERS, "{of_threads} {total}");

        let convoy = about(array(&profiled.json, "convoys"), *lock);
        assert_eq!(number(&convoy["waiters_max"]), WAITERS, "{convoy:#}");
        let wall = profiled.json["wall"].as_f64().unwrap();
        assert!((0.0..wall).contains(&convoy["start"].as_f64().unwrap()), "{convoy:#}");
    }
    let longest = number(&array(&profiled.json, "convoys")[0]["length_ns"]);
    assert!(
        (least_queue - least_queue / 1000..=most_queue + most_queue / 1000).contains(&longest),
        "{least_queue} {longest} {most_queue}"
    );

    the_holder_is_known(&profiled, locks[0]);
}

/// For all waits, the call that had acquired the lock is in `hold`.
fn the_holder_is_known(profiled: &Profiled, first: usize) {
    let blocking = array(&profiled.json, "blocking");
    assert!(!blocking.is_empty());
    for blocking in blocking {
        let function = |calls: &str| array(blocking, calls)[0]["function"].clone();
        assert_eq!(function("waiter"), "wait_for", "{blocking:#}");
        assert_eq!(function("holder"), "hold", "{blocking:#}");
    }
    let of_blocking: u64 = blocking
        .iter()
        .filter(|blocking| blocking["lock"] == json!(first))
        .map(|blocking| number(&blocking["wait_ns"]))
        .sum();
    let total = number(&profiled.lock("first (")["wait"]["total_ns"]);
    assert!(of_blocking.abs_diff(total) <= 2, "{of_blocking} {total}");
}

#[test]
fn the_timeline_adds_up_to_the_whole() {
    let directory = directory();
    let program = compile(directory.path(), "queues", QUEUES, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    let timeline = &profiled.json["timeline"];
    let intervals = array(timeline, "intervals");
    let wall = profiled.json["wall"].as_f64().unwrap();
    let length = timeline["interval"].as_f64().unwrap();
    assert!(length * intervals.len() as f64 >= wall, "{length} {} {wall}", intervals.len());
    for name in ["first (", "second ("] {
        let lock = json!(place(&profiled, name));
        let sum = |field: &str| -> u64 {
            let waits = intervals.iter().flat_map(|interval| array(interval, "waits"));
            waits.filter(|waited| waited["lock"] == lock).map(|waited| number(&waited[field])).sum()
        };
        let whole = profiled.lock(name);
        assert_eq!(json!(sum("contended")), whole["contended"]);
        let total = number(&whole["wait"]["total_ns"]);
        assert!(sum("wait_ns").abs_diff(total) <= intervals.len() as u64, "{total}");
    }
    for part in ["kernel", "program", "lock_spin", "lock_wait"] {
        let sum: f64 = intervals.iter().map(|one| one["cpu"][part].as_f64().unwrap()).sum();
        let whole = profiled.json["cpu"][part].as_f64().unwrap();
        // The samples of spinning are bounded by the CPU time of their interval; here, they are far
        // from it.
        if part == "lock_wait" {
            assert!((sum - whole).abs() <= 0.05 * whole + 0.001, "{part}: {sum} {whole}");
        }
        assert!(sum >= 0.0);
    }
    let all = |cpu: &Value| -> f64 {
        ["kernel", "program", "lock_spin"].iter().map(|part| cpu[part].as_f64().unwrap()).sum()
    };
    let sum: f64 = intervals.iter().map(|interval| all(&interval["cpu"])).sum();
    let whole = all(&profiled.json["cpu"]);
    // The kernel counts a running process' time in hundredths of a second.
    assert!((sum - whole).abs() <= 0.02, "{sum} {whole}");
}

/// Two threads, one after the other, take pairs of locks in both directions.
const ORDERS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t north = PTHREAD_MUTEX_INITIALIZER, south = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t east = PTHREAD_MUTEX_INITIALIZER, west = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER, lone = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER, passed = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t later = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER, page = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t *buckets[4], *accounts[2];
__attribute__((noinline)) void down(pthread_mutex_t *a, pthread_mutex_t *b) {
    pthread_mutex_lock(a); pthread_mutex_lock(b); pthread_mutex_unlock(b); pthread_mutex_unlock(a);
}
__attribute__((noinline)) void up(pthread_mutex_t *a, pthread_mutex_t *b) {
    pthread_mutex_lock(a); pthread_mutex_lock(b); pthread_mutex_unlock(a); pthread_mutex_unlock(b);
}
__attribute__((noinline)) void try_up(pthread_mutex_t *a, pthread_mutex_t *b) {
    pthread_mutex_lock(a);
    if (pthread_mutex_trylock(b) == 0) pthread_mutex_unlock(b);
    pthread_mutex_unlock(a);
}
__attribute__((noinline)) void read_both(pthread_rwlock_t *a, pthread_rwlock_t *b) {
    pthread_rwlock_rdlock(a); pthread_rwlock_rdlock(b); pthread_rwlock_unlock(b); pthread_rwlock_unlock(a);
}
__attribute__((noinline)) pthread_mutex_t *made(void) {
    pthread_mutex_t *lock = calloc(1, 128);
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return lock;
}
static void *release(void *lock) { pthread_mutex_unlock(lock); return NULL; }
static void *one(void *unused) {
    for (int i = 0; i < 100; i++) down(&north, &south);
    down(&east, &west);
    pthread_mutex_lock(&gate); down(&left, &right); pthread_mutex_unlock(&gate);
    read_both(&book, &page);
    down(&lone, &other);
    up(&other, &lone);
    for (int i = 0; i < 3; i++) down(buckets[i], buckets[i + 1]);
    down(accounts[0], accounts[1]);
    /* A lock that another thread releases is held no more. */
    pthread_t thread;
    pthread_mutex_lock(&passed);
    pthread_create(&thread, 0, release, &passed);
    pthread_join(thread, 0);
    pthread_mutex_lock(&later);
    pthread_mutex_unlock(&later);
    return NULL;
}
static void *two(void *unused) {
    for (int i = 0; i < 30; i++) up(&south, &north);
    try_up(&west, &east);
    pthread_mutex_lock(&gate); up(&right, &left); pthread_mutex_unlock(&gate);
    read_both(&page, &book);
    for (int i = 0; i < 2; i++) up(buckets[i], buckets[i + 2]);
    up(accounts[1], accounts[0]);
    return NULL;
}
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 4; i++) buckets[i] = made();
    for (int i = 0; i < 2; i++) accounts[i] = made();
    pthread_create(&thread, 0, one, 0);
    pthread_join(thread, 0);
    pthread_create(&thread, 0, two, 0);
    pthread_join(thread, 0);
    return 0;
}
"#;

#[test]
fn circles_are_found_where_they_are_and_nowhere_else() {
    let directory = directory();
    let program = compile(directory.path(), "orders", ORDERS, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    assert_eq!(profiled.output.status.code(), Some(0));
    let names = profiled.names();
    let orders = array(&profiled.json, "orders");
    let shown = |order: &Value| {
        let name = |field: &str| names[number(&order[field]) as usize].to_owned();
        let function = |field: &str| order[field][0]["function"].as_str().unwrap().to_owned();
        (name("held"), name("wanted"), function("held_frames"), function("wanted_frames"))
    };
    let find = |held: &str, wanted: &str| {
        let is_it = |order: &&Value| {
            let (a, b, ..) = shown(order);
            a.starts_with(held) && b.starts_with(wanted)
        };
        orders.iter().filter(is_it).map(|order| number(&order["seen"])).sum::<u64>()
    };
    assert_eq!((find("north (", "south ("), find("south (", "north (")), (100, 30));
    assert_eq!((find("east (", "west ("), find("west (", "east (")), (1, 0));
    assert_eq!((find("gate (", "left ("), find("left (", "right (")), (2, 1));
    assert_eq!((find("book (", "page ("), find("page (", "book (")), (1, 1));
    assert_eq!(find("passed (", "later ("), 0);
    // Buckets and accounts are one row.
    assert_eq!(find("made+", "made+"), 7);

    let mut circles: Vec<Vec<String>> = array(&profiled.json, "cycles")
        .iter()
        .map(|cycle| {
            let steps = array(cycle, "orders").iter().map(|step| &orders[number(step) as usize]);
            let mut steps: Vec<String> = steps
                .map(|step| {
                    let (held, wanted, held_in, wanted_in) = shown(step);
                    let first = |name: String| name.split([' ', '+']).next().unwrap().to_owned();
                    assert_eq!(held_in, wanted_in);
                    format!("{} {} {held_in}", first(held), first(wanted))
                })
                .collect();
            steps.sort();
            steps
        })
        .collect();
    circles.sort();
    assert!(array(&profiled.json, "cycles").iter().all(|cycle| cycle["deadlocked"] == false));
    assert_eq!(
        circles,
        [["made made down", "made made up"], ["north south down", "south north up"]]
    );
}

/// More pairs of locks, one taken while the other is held, than there is room for.
const PAIRS: &str = r#"
#include <pthread.h>
enum { LOCKS = 100 };
static pthread_mutex_t locks[LOCKS];
int main(void) {
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], 0);
    for (int i = 0; i < LOCKS; i++)
        for (int j = i + 1; j < LOCKS; j++) {
            pthread_mutex_lock(&locks[i]);
            pthread_mutex_lock(&locks[j]);
            pthread_mutex_unlock(&locks[j]);
            pthread_mutex_unlock(&locks[i]);
        }
    return 0;
}
"#;

#[test]
fn orders_without_room_are_counted_and_said() {
    let directory = directory();
    let program = compile(directory.path(), "pairs", PAIRS, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    let dropped = number(&profiled.json["sampling"]["orders_dropped"]);
    let (pairs, room) = (100 * 99 / 2, 4096);
    assert!((pairs - room..pairs).contains(&dropped), "{dropped}");
    let table = String::from_utf8_lossy(&profiled.output.stderr).into_owned()
        + &String::from_utf8_lossy(&profiled.output.stdout);
    let line =
        format!("Too many: {dropped} times two locks were taken in an order that is not kept.");
    assert!(table.contains(&line), "{table}");
}

/// Two threads that meet in a circle at their first steps. A signal ends them.
const DEADLOCK: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t north = PTHREAD_MUTEX_INITIALIZER, south = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
__attribute__((noinline)) static void take(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(second);
}
static void *other(void *unused) { take(&south, &north); return unused; }
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, other, NULL);
    alarm(1);
    take(&north, &south);
    return 0;
}
"#;

/// A thread that waits for a lock that it holds: first until another thread releases it; then, with
/// an argument, for ever.
const ALONE: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *opener(void *unused) { usleep(50000); pthread_mutex_unlock(&gate); return unused; }
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_mutex_lock(&gate);
    pthread_create(&thread, NULL, opener, NULL);
    pthread_mutex_lock(&gate);
    pthread_join(thread, NULL);
    if (argc > 1) {
        alarm(1);
        pthread_mutex_lock(&gate);
    }
    return 0;
}
"#;

#[test]
fn a_thread_that_waits_for_itself_is_found_if_nobody_sets_it_free() {
    let directory = directory();
    let program = compile(directory.path(), "alone", ALONE, &["-O1", "-pthread"]);
    let program = program.to_str().unwrap();
    let freed = profile(&[program]);
    assert_eq!(freed.output.status.code(), Some(0));
    assert!(freed.json["cycles"].is_null(), "{:#}", freed.json["cycles"]);

    let stuck = profile(&[program, "for ever"]);
    assert_eq!(array(&stuck.json, "cycles").len(), 1, "{:#}", stuck.json["cycles"]);
    let finding = stuck.json["finding"].as_str().unwrap();
    assert!(finding.ends_with("a thread waited for gate, which it had itself."), "{finding}");
    assert!(stuck.json["notes"][0]["advice"].as_str().unwrap().contains("recursive"));
}

#[test]
fn a_deadlock_is_told_from_a_possible_one() {
    let directory = directory();
    let program = compile(directory.path(), "deadlock", DEADLOCK, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    assert_eq!(profiled.output.status.signal(), Some(libc::SIGALRM));
    let cycles = array(&profiled.json, "cycles");
    assert_eq!(cycles.len(), 1, "{cycles:#?}");
    assert_eq!(cycles[0]["deadlocked"], true);
    let steps = array(&cycles[0], "orders");
    let orders = array(&profiled.json, "orders");
    let seen = |step: &Value| number(&orders[number(step) as usize]["seen"]);
    assert_eq!(steps.iter().map(seen).sum::<u64>(), 0, "neither had its second lock");
    let finding = profiled.json["finding"].as_str().unwrap();
    assert!(finding.starts_with("The program was in a deadlock: 2 threads"), "{finding}");
}

/// Two threads take a pair of locks in both orders, one after the other. Then they meet in the
/// circle, one of them with a deadline that is far away, and are ended by a signal.
const UNTIL_A_DEADLINE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t north = PTHREAD_MUTEX_INITIALIZER, south = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void take(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}
static void *other(void *unused) {
    struct timespec end;
    take(&south, &north);
    pthread_barrier_wait(&both);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&south);
    pthread_barrier_wait(&both);
    pthread_mutex_timedlock(&north, &end);
    return unused;
}
int main(void) {
    pthread_t thread;
    take(&north, &south);
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, other, NULL);
    pthread_barrier_wait(&both);
    alarm(1);
    pthread_mutex_lock(&north);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&south);
    return 0;
}
"#;

#[test]
fn a_circle_that_ends_by_itself_is_no_deadlock() {
    let directory = directory();
    let program = compile(directory.path(), "until", UNTIL_A_DEADLINE, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    assert_eq!(profiled.output.status.signal(), Some(libc::SIGALRM));
    let [cycle] = &array(&profiled.json, "cycles")[..] else { panic!("{:#}", profiled.json) };
    assert_eq!((&cycle["deadlocked"], &cycle["gives_up"]), (&json!(false), &json!(true)));
    let finding = profiled.json["finding"].as_str().unwrap();
    assert!(!finding.contains("was in a deadlock"), "{finding}");
    assert!(!finding.contains("are not what holds"), "they were at the end: {finding}");
    let evidence = profiled.json["notes"][0]["evidence"].as_str().unwrap();
    assert!(evidence.ends_with("one of them until a deadline: that ends by itself"), "{evidence}");
}
