//! The kernel's locks for a terminal, at most 100 columns wide.

use std::fmt::Write;

use crate::profile::{Frame, KernelLock, KernelRun, Profile, Scope, Source};
use manycore_measure::{Cell, Column, Tone};

use super::view::{View, ns, rest, shortened, times};
use crate::text::percent;

/// Columns that the numbers take.
const NUMBERS: usize = 66;
/// The number of locks that are shown with the place where threads waited for them.
const PLACES: usize = 4;
/// Calls of a stack that are shown, and the width of a line of them.
const CALLS: usize = 5;
const WIDTH: usize = 100;

/// The table, its method, and its limits; empty if the kernel was not observed.
pub fn table(profile: &Profile, view: View) -> String {
    let Some(run) = &profile.kernel else { return String::new() };
    let mut text = format!("Locks of the kernel, most waited for first: waits of {}\n", whose(run));
    if profile.kernel_locks.is_empty() {
        text += "(no wait was seen)\n";
    } else {
        let _ = writeln!(text, "{}", rows(&profile.kernel_locks, view));
        text += &rest(profile.kernel_locks.len(), view.top, "locks of the kernel");
        text += &places(&profile.kernel_locks);
    }
    let _ =
        writeln!(text, "\nSeen by {}: {} waits, {} dropped.", source(run), run.events, run.dropped);
    for limit in &run.limits {
        let _ = writeln!(text, "Note: {limit}.");
    }
    text.push('\n');
    text
}

fn rows(locks: &[KernelLock], view: View) -> manycore_measure::Table {
    let mut table = (view.table)(vec![
        Column::words("lock of the kernel"),
        Column::number("waits"),
        Column::number("readers"),
        Column::number("spun"),
        Column::number("total"),
        Column::number("mean"),
        Column::number("p99"),
        Column::number("max"),
    ]);
    let width = view.name_width(NUMBERS);
    for lock in locks.iter().take(view.top) {
        let share = |part: u64, whole: u64| percent(part as f64 / whole.max(1) as f64);
        let [total, mean, p99, max] = times(&lock.wait, ns(lock.wait.total_ns));
        table.row([
            shortened(&lock.title(), width).into(),
            lock.contended.to_string().into(),
            share(lock.contended_shared, lock.contended).into(),
            share(lock.spin_ns, lock.wait.total_ns).into(),
            total,
            mean,
            p99,
            max,
        ]);
        let mut row = vec![Cell::new(shortened(&about(lock), width), Tone::Faint)];
        row.extend((0..7).map(|_| Cell::from("")));
        table.row(row);
    }
    table
}

/// Its kind, and how many there are.
fn about(lock: &KernelLock) -> String {
    let objects = if lock.objects == 1 { String::new() } else { format!(" x{}", lock.objects) };
    format!("  {}{objects}", lock.kind)
}

/// For each of the first locks: the place where threads waited most, and the owner's activity.
fn places(locks: &[KernelLock]) -> String {
    let mut text = String::new();
    for lock in locks.iter().take(PLACES) {
        let Some(stack) = lock.stacks.first() else { continue };
        let task = if stack.task.is_empty() { String::new() } else { format!("{}: ", stack.task) };
        let line = |what: &str, calls: String| shortened(&format!("{what}{calls}"), WIDTH) + "\n";
        text += &line(&format!("{}: ", lock.title()), task + &calls(&stack.frames));
        let owner = lock.stacks.iter().find(|stack| !stack.owner_frames.is_empty());
        if let Some(stack) = owner {
            text += &line("    its owner was in ", calls(&stack.owner_frames));
        }
    }
    if text.is_empty() { text } else { format!("\nWhere, innermost call first:\n{text}") }
}

/// The informative calls: without the lock's own calls, and without the entry into the kernel.
fn calls(frames: &[Frame]) -> String {
    let names = frames.iter().filter_map(|frame| frame.function.as_deref());
    let telling = names.filter(|name| !is_dull(name));
    telling.take(CALLS).collect::<Vec<_>>().join(" < ")
}

fn is_dull(function: &str) -> bool {
    const DULL: &[&str] = &[
        "__mutex_",
        "rwsem_",
        "down_",
        "_raw_",
        "__pv_",
        "native_queued",
        "queued_",
        "do_syscall_64",
        "entry_",
        "asm_",
    ];
    DULL.iter().any(|start| function.starts_with(start))
}

/// Whose waits were seen.
pub fn whose(run: &KernelRun) -> String {
    match run.scope {
        Scope::System => "the whole system".to_owned(),
        Scope::Command => "the command and its children".to_owned(),
        Scope::Process(pid) => format!("process {pid}"),
    }
}

fn source(run: &KernelRun) -> &'static str {
    match run.source {
        Source::Bpf => "BPF",
        Source::Perf => "perf events",
        Source::LockStat => "/proc/lock_stat",
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::Times;

    use super::*;
    use crate::render::Sort;

    fn frame(function: &str) -> Frame {
        let (module, function) = ("kernel".to_owned(), Some(function.to_owned()));
        Frame { module, address: 0, function, offset: Some(16), file: None, line: None }
    }

    fn example() -> Profile {
        let mut profile: Profile =
            serde_json::from_str(include_str!("../profile/example.json")).unwrap();
        profile.kernel = Some(KernelRun {
            source: Source::Bpf,
            scope: Scope::Command,
            seconds: 2.0,
            events: 1100,
            dropped: 3,
            limits: vec!["owners have no stacks".to_owned()],
        });
        let stack = crate::profile::KernelStack {
            task: "server".to_owned(),
            cgroup: None,
            waits: 900,
            wait_ns: 1_500_000_000,
            frames: ["rwsem_down_write_slowpath", "down_write_killable", "__vm_munmap"]
                .map(frame)
                .into(),
            owner_frames: ["unmap_vmas", "__vm_munmap"].map(frame).into(),
        };
        let lock = |name: &str, is_named, kind: &str, ns: u64, stacks| KernelLock {
            name: name.to_owned(),
            is_named,
            kind: kind.to_owned(),
            spins: kind == "spinlock",
            spin_ns: if kind == "spinlock" { ns } else { 0 },
            objects: 4,
            contended: 1000,
            contended_shared: 100,
            wait: Times {
                count: 1000,
                total_ns: ns,
                mean_ns: Some(ns / 1000),
                p99_ns: Some(ns / 100),
                max_ns: Some(ns / 50),
            },
            stacks,
        };
        profile.kernel_locks = vec![
            lock("mm->mmap_lock", true, "rwsem", 1_500_000_000, vec![stack]),
            lock("rcu_core", false, "spinlock", 500_000_000, vec![]),
        ];
        profile
    }

    #[test]
    fn the_kernels_locks_look_like_this() {
        let text = table(&example(), View::plain(10, Sort::Wait));
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
