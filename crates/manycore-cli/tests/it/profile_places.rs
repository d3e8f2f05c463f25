//! `manycore profile` knows locks by the places of their creation, and calls by their names in any
//! language.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::real::profile;
use crate::support::{compile, directory};
use serde_json::{Value, json};

/// Locks that exist one after the other, locks that exist at the same time, and locks of two kinds
/// that one function creates.
const CROWDS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>
enum { PASSING = 100000, LASTING = 70000 };
static pthread_mutex_t *lasting[LASTING];
__attribute__((noinline)) void my_mutex_init(pthread_mutex_t *mutex) { pthread_mutex_init(mutex, NULL); __asm__(""); }
__attribute__((noinline)) pthread_mutex_t *open_table(void) {
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    my_mutex_init(mutex);
    return mutex;
}
__attribute__((noinline)) void pass(void) {
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    my_mutex_init(mutex);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    pthread_mutex_destroy(mutex);
    free(mutex);
}
__attribute__((noinline)) void *others(void) {
    struct { pthread_rwlock_t rw; mtx_t mtx; pthread_spinlock_t spin; pthread_mutex_t unused; } *all = malloc(sizeof *all);
    pthread_rwlock_init(&all->rw, NULL);
    mtx_init(&all->mtx, mtx_plain);
    pthread_spin_init(&all->spin, 0);
    pthread_mutex_init(&all->unused, NULL);
    pthread_rwlock_rdlock(&all->rw);
    pthread_rwlock_unlock(&all->rw);
    mtx_lock(&all->mtx);
    mtx_unlock(&all->mtx);
    pthread_spin_lock(&all->spin);
    pthread_spin_unlock(&all->spin);
    return all;
}
int main(void) {
    for (int i = 0; i < PASSING; i++) pass();
    for (int i = 0; i < LASTING; i++) lasting[i] = open_table();
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LASTING; i++) {
            pthread_mutex_lock(lasting[i]);
            pthread_mutex_unlock(lasting[i]);
        }
    return others() == NULL;
}
"#;

#[test]
fn any_number_of_locks_from_one_place_is_one_row() {
    let directory = directory();
    let program = compile(directory.path(), "crowds", CROWDS, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    let row = |name: &str, kind: &str| {
        let all = profiled.json["locks"].as_array().unwrap();
        let mut rows = all.iter().filter(|lock| {
            lock["name"].as_str().unwrap().starts_with(name) && lock["kind"] == kind
        });
        let row = rows.next().unwrap_or_else(|| panic!("no {kind} of {name} in {all:#?}"));
        assert!(rows.next().is_none(), "{all:#?}");
        assert_eq!(row["origin"], "initialised");
        (row["objects"].clone(), row["acquired"].clone())
    };
    assert_eq!(row("pass+", "mutex"), (json!(100_000), json!(100_000)));
    assert_eq!(row("open_table+", "mutex"), (json!(70_000), json!(210_000)));
    for kind in ["rwlock", "mutex", "spinlock"] {
        assert_eq!(row("others+", kind), (json!(1), json!(1)));
    }
    assert_eq!(profiled.names().len(), 5, "{:?}", profiled.names());
    assert_eq!(profiled.json["sampling"]["cut"], 0);
}

/// A thread that takes two locks in turns.
const TURNS: &str = r#"
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    for (int i = 0; i < 100000; i++) {
        pthread_mutex_lock(&first);
        pthread_mutex_unlock(&first);
        pthread_mutex_lock(&second);
        pthread_mutex_unlock(&second);
    }
    return 0;
}
"#;

#[test]
fn a_rhythm_of_the_program_hides_no_lock_from_the_samples() {
    let directory = directory();
    let program = compile(directory.path(), "turns", TURNS, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    for name in ["first (", "second ("] {
        // 1,562 are to be expected of each, give or take 40.
        let holds = profiled.lock(name)["hold"]["count"].as_u64().unwrap();
        assert!((1200..2000).contains(&holds), "{name}: {holds}");
    }
}

/// For each language, a thread that finds the lock held, and waits until the main thread has seen
/// it sleep.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
typedef void path(pthread_mutex_t *);
path c_path, cxx_path, legacy_path, v0_path;
static pthread_mutex_t held[4];
static path *const paths[4] = { c_path, cxx_path, legacy_path, v0_path };
static volatile int waiter, done;
static inline __attribute__((always_inline)) void c_guard(pthread_mutex_t *m) { pthread_mutex_lock(m); }
__attribute__((noinline)) static void c_find(pthread_mutex_t *m) { c_guard(m); __asm__(""); }
__attribute__((noinline)) void c_path(pthread_mutex_t *m) { c_find(m); __asm__(""); }
static void *run(void *at) {
    waiter = syscall(SYS_gettid);
    paths[(long)at](&held[(long)at]);
    pthread_mutex_unlock(&held[(long)at]);
    done = 1;
    // It stays, so that the next one begins afresh: the first wait of each is a sample.
    for (;;) pause();
}
static int sleeps(int thread) {
    char name[64], state = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(name, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1) state = 0;
    if (file) fclose(file);
    return state == 'S';
}
int main(void) {
    for (long at = 0; at < 4; at++) {
        pthread_t thread;
        waiter = done = 0;
        pthread_mutex_lock(&held[at]);
        pthread_create(&thread, NULL, run, (void *)at);
        while (waiter == 0 || !sleeps(waiter)) usleep(1000);
        pthread_mutex_unlock(&held[at]);
        while (!done) usleep(1000);
    }
    return 0;
}
"#;

const IN_CXX: &str = r#"
#include <pthread.h>
namespace shop {
struct Guard {
    pthread_mutex_t *mutex;
    inline __attribute__((always_inline)) explicit Guard(pthread_mutex_t *m) : mutex(m) { pthread_mutex_lock(m); }
};
template <typename T> struct Cache {
    __attribute__((noinline)) T get(pthread_mutex_t *m) { Guard guard(m); __asm__(""); return T(); }
};
}
extern "C" void cxx_path(pthread_mutex_t *m) { shop::Cache<long>().get(m); __asm__(""); }
"#;

const IN_RUST: &str = r#"
use core::ffi::c_void;
unsafe extern "C" { fn pthread_mutex_lock(mutex: *mut c_void) -> i32; }
pub mod table {
    #[inline(always)]
    fn guard(mutex: *mut core::ffi::c_void) -> i32 { unsafe { super::pthread_mutex_lock(mutex) } }
    #[inline(never)]
    pub fn insert(mutex: *mut core::ffi::c_void) -> i32 { guard(mutex) + 1 }
}
#[unsafe(no_mangle)]
pub extern "C" fn NAME(mutex: *mut c_void) { core::hint::black_box(table::insert(mutex) + 1); }
"#;

/// A program of which each language has a part.
fn mixed(directory: &Path) -> PathBuf {
    let build = |command: &mut Command| {
        assert!(command.current_dir(directory).status().unwrap().success(), "{command:?}");
    };
    std::fs::write(directory.join("part.cc"), IN_CXX).unwrap();
    std::fs::write(directory.join("main.c"), WAITS).unwrap();
    for (krate, mangling) in [("legacy", "legacy"), ("v0", "v0")] {
        let name = format!("{krate}_path");
        let text = IN_RUST.replace("NAME", &name);
        std::fs::write(directory.join(format!("{krate}.rs")), text).unwrap();
        // The stable compiler can mangle names in either way, but documents an option for only one.
        build(
            Command::new("rustc")
                .env("RUSTC_BOOTSTRAP", "1")
                .args(["--edition=2024", "--crate-type=lib", "--emit=obj", "-O", "-g"])
                .args(["-C", "panic=abort", "-Z", "unstable-options"])
                .arg(format!("-Csymbol-mangling-version={mangling}"))
                .arg(format!("{krate}.rs")),
        );
    }
    let flags = ["-O2", "-g", "-fno-optimize-sibling-calls", "-pthread"];
    build(Command::new("c++").args(flags).args(["-c", "part.cc"]));
    build(Command::new("cc").args(flags).args(["-c", "main.c"]));
    build(
        Command::new("c++")
            .args(["-pthread", "-o", "mixed"])
            .args(["main.o", "part.o", "legacy.o", "v0.o"]),
    );
    directory.join("mixed")
}

#[test]
fn stacks_have_the_calls_of_every_language_inlined_ones_too() {
    let directory = directory();
    let profiled = profile(&[mixed(directory.path())]);
    let stacks = profiled.json["stacks"].as_array().unwrap();
    let locks = profiled.json["locks"].as_array().unwrap();
    for (at, calls) in [
        (0, ["c_guard", "c_find", "c_path"]),
        (
            1,
            [
                "shop::Guard::Guard(pthread_mutex_t*)",
                "shop::Cache<long>::get(pthread_mutex_t*)",
                "cxx_path",
            ],
        ),
        (2, ["legacy::table::guard", "legacy::table::insert", "legacy_path"]),
        (3, ["v0::table::guard", "v0::table::insert", "v0_path"]),
    ] {
        let name = if at == 0 { "held (".to_owned() } else { format!("held+{:#x} (", at * 40) };
        let lock = locks.iter().position(|lock| lock["name"].as_str().unwrap().starts_with(&name));
        let lock = lock.unwrap_or_else(|| panic!("no {name} in {:?}", profiled.names()));
        let found: Vec<_> = stacks.iter().filter(|stack| stack["lock"] == lock).collect();
        let [stack] = found[..] else { panic!("{found:#?}") };
        let functions: Vec<_> =
            stack["frames"].as_array().unwrap().iter().map(|f| f["function"].clone()).collect();
        assert_eq!(functions[..3], calls.map(Value::from), "{functions:#?}");
        assert_eq!(functions[3], "run");
        // The only wait is the sample, and the sample is the only wait.
        assert_eq!((&stack["waits"], &locks[lock]["contended"]), (&json!(1), &json!(1)));
        assert_eq!(stack["wait_ns"], locks[lock]["wait"]["total_ns"]);
        assert!(stack["frames"][0]["line"].as_u64().is_some_and(|line| line > 0), "{stack:#}");
    }
}
