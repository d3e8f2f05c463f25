//! The kernel's locks beside the program's, interval by interval.
//!
//! One watch lasts as long as `top` shows the program, and returns its counts interval by interval:
//! a wait belongs to the interval in which it ends.

use std::collections::HashMap;

use manycore_kernel_trace::{KernelLock, Means, Request, Scope, Watch};
use manycore_profile::profile::{Frame, KernelStack, Times};

use manycore_launch::failure::{Failure, Result};

/// The most locks that are kept in the sums, and the most stacks of each: those with the longest
/// waits.
const LOCKS_MAX: usize = 1_000;
const STACKS_MAX: usize = 16;

/// The kernel under observation.
pub struct KernelSide {
    watch: Watch,
    seen: KernelLocks,
}

/// What was seen of the kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelLocks {
    /// Since the beginning.
    pub total: Vec<KernelLock>,
    /// In the last interval.
    pub interval: Vec<KernelLock>,
    /// Waits that were seen and could not be kept.
    pub dropped: u64,
}

impl KernelSide {
    /// Starts to observe the waits of a running process, and those of its future threads.
    pub fn start(means: Means, pid: u32) -> Result<Self> {
        let request = Request { scope: Scope::Process(pid) };
        let watch = Watch::start(means, &request).map_err(|why| {
            Failure::bad_input(
                format!("the kernel cannot be watched: {why}"),
                "leave out --kernel to see the program's own locks",
            )
        })?;
        Ok(Self { watch, seen: KernelLocks::default() })
    }

    /// Reads what has come meanwhile: several times a second.
    pub fn sample(&mut self) {
        self.watch.sample();
    }

    /// Ends an interval, and begins the next one.
    pub fn next(&mut self) -> KernelLocks {
        let seen = self.watch.take();
        self.seen.dropped += seen.run.dropped;
        add(&mut self.seen.total, &seen.locks);
        self.seen.interval = seen.locks;
        self.seen.clone()
    }
}

/// Adds what was seen of locks to their sums.
fn add(sums: &mut Vec<KernelLock>, more: &[KernelLock]) {
    let key = |lock: &KernelLock| (lock.name.clone(), lock.kind.clone());
    let places: HashMap<_, usize> =
        sums.iter().enumerate().map(|(place, lock)| (key(lock), place)).collect();
    for lock in more {
        match places.get(&key(lock)) {
            Some(place) => add_to(&mut sums[*place], lock),
            None => sums.push(lock.clone()),
        }
    }
    sums.sort_by_key(|lock| std::cmp::Reverse(lock.wait.total_ns));
    sums.truncate(LOCKS_MAX);
}

fn add_to(sum: &mut KernelLock, more: &KernelLock) {
    sum.spin_ns += more.spin_ns;
    sum.objects = sum.objects.max(more.objects);
    sum.contended += more.contended;
    sum.contended_shared += more.contended_shared;
    let (count, total_ns) =
        (sum.wait.count + more.wait.count, sum.wait.total_ns + more.wait.total_ns);
    sum.wait = Times {
        count,
        total_ns,
        mean_ns: total_ns.checked_div(count),
        // Percentiles of two distributions cannot be added up.
        p99_ns: None,
        max_ns: sum.wait.max_ns.max(more.wait.max_ns),
    };
    fn key(stack: &KernelStack) -> (&str, Option<&str>, &[Frame], &[Frame]) {
        (&stack.task, stack.cgroup.as_deref(), &stack.frames, &stack.owner_frames)
    }
    for stack in &more.stacks {
        let same = |other: &&mut KernelStack| key(other) == key(stack);
        match sum.stacks.iter_mut().find(same) {
            Some(known) => {
                known.waits += stack.waits;
                known.wait_ns += stack.wait_ns;
            }
            None => sum.stacks.push(stack.clone()),
        }
    }
    sum.stacks.sort_by_key(|stack| std::cmp::Reverse(stack.wait_ns));
    sum.stacks.truncate(STACKS_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(name: &str, waits: u64, total_ns: u64) -> KernelLock {
        KernelLock {
            name: name.to_owned(),
            is_named: true,
            kind: "rwsem".to_owned(),
            spins: false,
            spin_ns: 0,
            objects: 1,
            contended: waits,
            contended_shared: 0,
            wait: Times {
                count: waits,
                total_ns,
                mean_ns: total_ns.checked_div(waits),
                p99_ns: Some(1),
                max_ns: Some(total_ns / 2),
            },
            stacks: vec![KernelStack {
                task: "server".to_owned(),
                cgroup: None,
                waits,
                wait_ns: total_ns,
                frames: Vec::new(),
                owner_frames: Vec::new(),
            }],
        }
    }

    #[test]
    fn intervals_add_up() {
        let mut sums = Vec::new();
        add(&mut sums, &[lock("mmap_lock", 2, 1000), lock("other", 1, 10)]);
        add(&mut sums, &[lock("other", 3, 8990)]);
        let names: Vec<&str> = sums.iter().map(|lock| lock.name.as_str()).collect();
        assert_eq!(names, ["other", "mmap_lock"]);
        let Times { count, total_ns, mean_ns, p99_ns, max_ns } = sums[0].wait;
        assert_eq!((count, total_ns, mean_ns), (4, 9000, Some(2250)));
        assert_eq!((p99_ns, max_ns), (None, Some(4495)));
        assert_eq!((sums[0].stacks.len(), sums[0].stacks[0].waits), (1, 4));
    }
}
