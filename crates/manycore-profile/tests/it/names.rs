//! Locks are named after their variable, or after the caller that shows their purpose.

use std::path::{Path, PathBuf};
use std::process::Command;
// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;

use crate::support::{Synthetic, address_of, compile, profile_of};
use manycore_profile::profile::{Lock, Origin};
use manycore_stats::Kind;

const BASE: u64 = 0x7f00_0000_0000;

const C: &str = r#"
struct { char before[40]; char lock[40]; } table __attribute__((used));
static char hidden[40] __attribute__((used));
__attribute__((noinline, used)) void my_mutex_lock(void) { __asm__ volatile("nop"); }
__attribute__((noinline, used)) void insert_row(void) { my_mutex_lock(); __asm__ volatile("nop"); }
int main(void) { insert_row(); return 0; }
"#;

const CXX: &str = r#"
#include <mutex>
struct Cache {
    std::mutex mutex;
    long hits = 0;
    __attribute__((noinline)) long get(int key) {
        std::lock_guard<std::mutex> guard(mutex);
        return hits += key;
    }
};
namespace shop { Cache shared_cache; }
int main(int argc, char **) { return shop::shared_cache.get(argc); }
"#;

/// A process whose program or library is `file`, mapped at its linked address plus `BASE`.
struct Loaded {
    process: Synthetic,
    file: PathBuf,
    bias: u64,
    _directory: tempfile::TempDir,
}

impl Loaded {
    fn new(source: &str, compiler: &str, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = compile(directory.path(), "subject", source, compiler, flags);
        // A program with a fixed address is where it was linked to be; everything else was linked
        // to begin at 0.
        let fixed = flags.contains(&"-no-pie");
        let bias = if fixed { 0 } else { BASE };
        let start = if fixed { 0x40_0000 } else { BASE };
        let process = Synthetic::new(directory.path(), 1);
        process.module(start, start + 0x1000, 0, &file);
        // Zero-initialised data and all.
        process.module(start + 0x1000, start + 0x10_0000, 0x1000, &file);
        Self { process, file, bias, _directory: directory }
    }

    fn at(&self, symbol: &str) -> u64 {
        self.bias + address_of(&self.file, symbol)
    }

    /// The address behind the first call in a function.
    fn call_in(&self, function: &str, callee: &str) -> u64 {
        let output = Command::new("objdump")
            .args(["-dC", "--no-show-raw-insn"])
            .arg(&self.file)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let body =
            text.split(&format!("<{function}>:\n")).nth(1).unwrap().split("\n\n").next().unwrap();
        let mut lines = body.lines().skip_while(|l| !(l.contains("call") && l.contains(callee)));
        let after = lines.nth(1).unwrap_or_else(|| panic!("no call of {callee} in {body}"));
        self.bias + u64::from_str_radix(after.trim().split(':').next().unwrap(), 16).unwrap()
    }

    /// The name of a lock that is used more often than the earlier ones.
    fn name(&self, address: u64, frames: &[u64]) -> Lock {
        let before = self.process.get().header.records.load(Relaxed);
        self.process.used(Kind::Mutex, address, frames, before.into(), &[]);
        profile_of(&[&self.process]).locks.swap_remove(0)
    }
}

const HEAP: u64 = 0x10;

#[test]
fn variables_of_programs_and_libraries() {
    for flags in [&["-pie"][..], &["-no-pie"], &["-shared", "-fPIC"]] {
        let subject = Loaded::new(C, "cc", flags);
        let lock = subject.name(subject.at("table") + 40, &[]);
        assert_eq!(
            (lock.name.as_str(), lock.short.as_str()),
            ("table+0x28 (subject)", "table+0x28"),
            "{flags:?}"
        );
        assert_eq!(lock.origin, Origin::Variable);
    }
    let subject = Loaded::new(C, "cc", &["-pie"]);
    assert_eq!(subject.name(subject.at("hidden"), &[]).name, "hidden (subject)");
}

#[test]
fn a_stripped_file_gives_addresses() {
    let subject = Loaded::new(C, "cc", &["-pie"]);
    let (variable, call) = (subject.at("hidden"), subject.call_in("insert_row", "my_mutex_lock"));
    let status = Command::new("strip").arg(&subject.file).status().unwrap();
    assert!(status.success());
    assert_eq!(subject.name(variable, &[]).name, format!("subject+{:#x}", variable - BASE));
    assert_eq!(subject.name(HEAP, &[call]).name, format!("subject+{:#x}", call - BASE));
}

#[test]
fn a_stripped_file_with_its_symbols_beside_it_gives_names() {
    let subject = Loaded::new(CXX, "c++", &["-O2", "-g"]);
    let call = subject.call_in("Cache::get(int)", "pthread_mutex_lock");
    let variable = subject.at("shop::shared_cache");
    let directory = subject.file.parent().unwrap();
    for command in [
        &["objcopy", "--only-keep-debug", "subject", "subject.debug"][..],
        &["strip", "subject"],
        &["objcopy", "--add-gnu-debuglink=subject.debug", "subject"],
    ] {
        let done = Command::new(command[0]).args(&command[1..]).current_dir(directory).status();
        assert!(done.unwrap().success(), "{command:?}");
    }
    assert_eq!(subject.name(variable, &[]).name, "shop::shared_cache (subject)");
    let lock = subject.name(HEAP, &[call]);
    assert_eq!(lock.name, "Cache::get(int) subject.cc:7 (subject)");
    assert!(lock.frames.len() >= 3, "{:#?}", lock.frames);
}

#[test]
fn the_caller_of_a_wrapper_names_the_lock() {
    let subject = Loaded::new(C, "cc", &["-O1", "-fno-optimize-sibling-calls"]);
    let in_wrapper = subject.at("my_mutex_lock") + 1;
    let in_caller = subject.call_in("insert_row", "my_mutex_lock");
    let in_main = subject.call_in("main", "insert_row");
    let lock = subject.name(HEAP, &[in_wrapper, in_caller, in_main]);
    let offset = in_caller - subject.at("insert_row");
    assert_eq!(lock.name, format!("insert_row+{offset:#x} (subject)"));
    assert_eq!(lock.origin, Origin::FirstUse);
    let functions: Vec<_> =
        lock.frames.iter().map(|frame| frame.function.as_deref().unwrap()).collect();
    assert_eq!(functions, ["my_mutex_lock", "insert_row", "main"]);
}

#[test]
fn a_lock_tells_where_threads_wait_for_it() {
    let subject = Loaded::new(C, "cc", &["-O1", "-fno-optimize-sibling-calls"]);
    let in_wrapper = subject.at("my_mutex_lock") + 1;
    let in_caller = subject.call_in("insert_row", "my_mutex_lock");
    let in_main = subject.call_in("main", "insert_row");
    // Two objects that were first used in `main`, and three ways to wait for them, two of them by
    // one call.
    for waits in [[100, 0, 500], [200, 300, 0]] {
        let (number, record) = subject.process.record(Kind::Mutex, HEAP, &[in_main]);
        record.acquired.store(10, Relaxed);
        subject.process.waited_at(number, &[in_wrapper, in_caller, in_main], &waits[..1]);
        subject.process.waited_at(number, &[in_wrapper, in_caller], &waits[1..2]);
        subject.process.waited_at(number, &[in_main], &waits[2..]);
    }
    let profile = profile_of(&[&subject.process]);
    let [lock] = &profile.locks[..] else { panic!("{:#?}", profile.locks) };
    assert!(lock.name.starts_with("main+"), "{}", lock.name);
    let offset = in_caller - subject.at("insert_row");
    let places: Vec<_> = lock
        .waits_in
        .iter()
        .map(|site| (site.name.as_str(), site.waits, (site.share * 11.0).round()))
        .collect();
    let caller = format!("insert_row+{offset:#x} (subject)");
    assert_eq!(places, [(caller.as_str(), 4, 6.0), (lock.name.as_str(), 2, 5.0)]);
    assert_eq!(lock.waits_in[0].frames[0].function.as_deref(), Some("my_mutex_lock"));

    // Whole stacks: the shares of the samples in all waits, and there are more waits now.
    record_more_wait(&subject.process);
    let stacks = profile_of(&[&subject.process]).stacks;
    let found: Vec<_> =
        stacks.iter().map(|s| (s.lock, s.waits, s.wait_ns, s.frames.len())).collect();
    assert_eq!(found, [(0, 2, 5000, 1), (0, 2, 3000, 3), (0, 2, 3000, 2)]);
}

/// Eleven microseconds of waiting for the first lock.
fn record_more_wait(process: &Synthetic) {
    process.wait(&process.get().records[1], &[11_000]);
}

#[test]
fn a_member_of_a_class_is_named_by_its_variable_or_the_method() {
    for flags in [&["-O0"][..], &["-O2", "-g"]] {
        let subject = Loaded::new(CXX, "c++", flags);
        let lock = subject.name(subject.at("shop::shared_cache"), &[]);
        assert_eq!(lock.name, "shop::shared_cache (subject)");
    }
    // Optimised, the call of pthread_mutex_lock is in the method itself, behind three inlined
    // wrappers.
    let subject = Loaded::new(CXX, "c++", &["-O2", "-g"]);
    let call = subject.call_in("Cache::get(int)", "pthread_mutex_lock");
    let lock = subject.name(HEAP, &[call]);
    assert!(lock.frames.len() >= 3, "{:#?}", lock.frames);
    assert_eq!(lock.name, "Cache::get(int) subject.cc:7 (subject)");
    assert_eq!(lock.short, "Cache::get subject.cc:7");
    let outermost = lock.frames.last().unwrap();
    assert_eq!(outermost.function.as_deref(), Some("Cache::get(int)"));
    assert!(outermost.file.as_deref().is_some_and(|file| file.ends_with("subject.cc")));
}

#[test]
fn an_address_in_no_file_is_named_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let process = Synthetic::new(directory.path(), 1);
    process.module(BASE, BASE + 0x1000, 0, Path::new("/nonexistent/gone"));
    process.used(Kind::Mutex, HEAP, &[0x1234_5678], 2, &[]);
    process.used(Kind::Mutex, BASE + 0x10, &[], 1, &[]);
    let names: Vec<_> = profile_of(&[&process]).locks.into_iter().map(|lock| lock.name).collect();
    assert_eq!(names, ["code made at run time", "gone+0x10"]);
}
