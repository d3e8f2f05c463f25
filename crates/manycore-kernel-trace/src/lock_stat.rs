//! The kernel's own statistics, `/proc/lock_stat`: of kernels that are built with LOCK_STAT.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use manycore_profile::profile::{Frame, KernelLock, KernelStack, Scope, Times};

use crate::Request;
use crate::locks::sort;

const PATH: &str = "/proc/lock_stat";
/// Switches them on and off.
const SWITCH: &str = "/proc/sys/kernel/lock_stat";

/// What was counted before.
#[derive(Debug)]
pub struct LockStat {
    path: PathBuf,
    before: Classes,
    switch: Switch,
}

/// The kernel's switch. It is restored when counting ends, in any way, because counting slows down
/// the whole system.
#[derive(Debug)]
struct Switch {
    path: PathBuf,
    /// The file's setting; none after it has been restored.
    before: Option<String>,
}

impl Switch {
    /// Switches the statistics on.
    fn on(path: &Path) -> Result<Self, String> {
        let before =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        fs::write(path, "1")
            .map_err(|error| format!("{}: {error}; run as root", path.display()))?;
        Ok(Self { path: path.to_owned(), before: Some(before.trim().to_owned()) })
    }

    /// Restores the switch; returns an error message if that is impossible.
    fn set_back(&mut self) -> Option<String> {
        let before = self.before.take()?;
        let failed = fs::write(&self.path, &before).is_err();
        failed.then(|| format!("{} could not be set back to {before}", self.path.display()))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // No one is left to be told.
        let _ = self.set_back();
    }
}

/// Lock classes by name.
type Classes = HashMap<String, Class>;

/// What is known of a class, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Class {
    contended: u64,
    total_ns: u64,
    max_ns: u64,
    /// How often a function waited, by function and offset.
    points: Vec<(String, u64)>,
}

impl LockStat {
    /// Starts counting. The statistics are those of the whole system, since they were switched on.
    pub fn start(request: &Request) -> Result<Self, String> {
        if matches!(request.scope, Scope::Process(_)) {
            return Err("it has the whole system only".to_owned());
        }
        Self::of(Path::new(PATH), Path::new(SWITCH))
    }

    fn of(path: &Path, switch: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("{error} (a kernel has it that is built with LOCK_STAT)"))?;
        let switch = Switch::on(switch)?;
        Ok(Self { path: path.to_owned(), before: parse(&text), switch })
    }

    /// The counts since the start or the last call, and the limits of these statistics.
    pub fn take(&mut self) -> (Vec<KernelLock>, Vec<String>) {
        let after = parse(&fs::read_to_string(&self.path).unwrap_or_default());
        let limits = [
            "lock_stat has the waits of the whole system, and no tasks",
            "lock_stat does not say of which kind a lock is: all are unknown",
            "lock_stat has no 99th percentile, and the longest wait is that since the system was started",
            "lock_stat says how often functions waited, but not how long",
        ];
        let locks = since(&self.before, &after);
        self.before = after;
        (locks, limits.map(str::to_owned).into())
    }

    /// Stops counting. Says what went wrong.
    pub fn stop(&mut self) -> Option<String> {
        self.switch.set_back()
    }
}

/// The difference.
fn since(before: &Classes, after: &Classes) -> Vec<KernelLock> {
    // Readers and writers have separate lines, `name-R` and `name-W`; they are one lock.
    let mut locks: HashMap<&str, KernelLock> = HashMap::new();
    for (name, class) in after {
        let earlier = before.get(name).cloned().unwrap_or_default();
        let contended = class.contended.saturating_sub(earlier.contended);
        if contended == 0 {
            continue;
        }
        let total_ns = class.total_ns.saturating_sub(earlier.total_ns);
        let (short, shared) = match (name.strip_suffix("-R"), name.strip_suffix("-W")) {
            (Some(short), _) => (short, contended),
            (_, Some(short)) => (short, 0),
            _ => (name.as_str(), 0),
        };
        let lock = locks.entry(short).or_insert_with(|| KernelLock {
            name: short.to_owned(),
            is_named: true,
            kind: "unknown".to_owned(),
            spins: false,
            spin_ns: 0,
            objects: 1,
            contended: 0,
            contended_shared: 0,
            wait: Times::default(),
            stacks: Vec::new(),
        });
        lock.contended += contended;
        lock.contended_shared += shared;
        lock.wait.count += contended;
        lock.wait.total_ns += total_ns;
        lock.wait.mean_ns = Some(lock.wait.total_ns / lock.wait.count);
        lock.wait.max_ns = lock.wait.max_ns.max(Some(class.max_ns));
        lock.stacks.extend(class.points.iter().filter_map(|(function, count)| {
            let counted = earlier.points.iter().find(|(name, _)| name == function);
            let waits = count.saturating_sub(counted.map_or(0, |(_, count)| *count));
            (waits > 0).then(|| place(function, waits))
        }));
        lock.stacks.sort_by_key(|stack| Reverse(stack.waits));
    }
    let mut locks: Vec<_> = locks.into_values().collect();
    sort(&mut locks);
    locks
}

/// A function that waited. The duration is not known.
fn place(function: &str, waits: u64) -> KernelStack {
    let (name, offset) = function.split_once('+').unwrap_or((function, ""));
    let offset = offset.split('/').next().and_then(|text| text.strip_prefix("0x"));
    let frame = Frame {
        module: "kernel".to_owned(),
        address: 0,
        function: Some(name.to_owned()),
        offset: offset.and_then(|text| u64::from_str_radix(text, 16).ok()),
        file: None,
        line: None,
    };
    KernelStack {
        task: String::new(),
        cgroup: None,
        waits,
        wait_ns: 0,
        frames: vec![frame],
        owner_frames: Vec::new(),
    }
}

/// Parses the file. A class has a line `name: con-bounces contentions waittime-min -max -total -avg
/// acq-bounces ...`, with times in microseconds. After a ruled line come lines `name count
/// [<address>] function+offset/size` for the functions that waited, and after another ruled line
/// those for the functions that held the lock meanwhile.
fn parse(text: &str) -> Classes {
    let mut classes = Classes::new();
    let mut current: Option<String> = None;
    // Below the second ruled line are those that held the lock.
    let mut rules = 0;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.len() > 3 && trimmed.bytes().all(|byte| byte == b'-') {
            rules += 1;
        } else if let Some((name, class)) = class_of(trimmed) {
            current = Some(name.clone());
            rules = 0;
            classes.insert(name, class);
        } else if rules <= 1
            && let Some((function, count)) = point_of(trimmed)
            && let Some(class) = current.as_ref().and_then(|name| classes.get_mut(name))
        {
            class.points.push((function, count));
        }
    }
    classes
}

fn class_of(line: &str) -> Option<(String, Class)> {
    // A name can have colons and spaces; the numbers have neither.
    let (name, numbers) = line.rsplit_once(':')?;
    let numbers: Vec<f64> =
        numbers.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [_, contended, _, max, total, ..] = numbers[..] else { return None };
    let ns = |us: f64| (us * 1000.0).round() as u64;
    let class = Class {
        contended: contended as u64,
        total_ns: ns(total),
        max_ns: ns(max),
        points: Vec::new(),
    };
    Some((name.trim().to_owned(), class))
}

fn point_of(line: &str) -> Option<(String, u64)> {
    let (before, function) = line.split_once("[<")?;
    let function = function.split_once(">]")?.1.trim();
    let count = before.split_whitespace().last()?.parse().ok()?;
    Some((function.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form that Documentation/locking/lockstat.rst of the kernel shows.
    const BEFORE: &str = include_str!("lock_stat/before.txt");
    const AFTER: &str = include_str!("lock_stat/after.txt");

    #[test]
    fn whatever_is_in_the_file() {
        let before = parse(BEFORE);
        manycore_fuzz::texts("/proc/lock_stat", &[BEFORE, AFTER], |text| {
            drop(since(&before, &parse(text)));
            drop(since(&parse(text), &before));
        });
    }

    #[test]
    fn what_is_new_is_shown_by_lock() {
        let locks = since(&parse(BEFORE), &parse(AFTER));
        let names: Vec<_> = locks.iter().map(|lock| lock.name.as_str()).collect();
        assert_eq!(names, ["&mm->mmap_lock", "&rq->__lock"]);
        let mmap = &locks[0];
        assert_eq!((mmap.contended, mmap.contended_shared), (140, 40));
        assert_eq!(mmap.wait.total_ns, 30_000_250 + 8_000_000);
        assert_eq!(mmap.wait.max_ns, Some(180_750));
        let places: Vec<_> = mmap
            .stacks
            .iter()
            .map(|stack| (stack.frames[0].function.as_deref().unwrap(), stack.waits))
            .collect();
        assert_eq!(
            places,
            [("vm_mmap_pgoff", 70), ("lock_mm_and_find_vma", 40), ("__vm_munmap", 30)]
        );
        assert_eq!(mmap.stacks[0].frames[0].offset, Some(0x7a));
    }

    #[test]
    fn the_switch_is_set_back_whoever_gives_up() {
        let place = tempfile::tempdir().unwrap();
        let [path, switch] = ["lock_stat", "switch"].map(|name| place.path().join(name));
        fs::write(&path, BEFORE).unwrap();
        fs::write(&switch, "0\n").unwrap();
        let is_on = || fs::read_to_string(&switch).unwrap().trim() == "1";

        let watch = LockStat::of(&path, &switch).unwrap();
        assert!(is_on());
        drop(watch);
        assert!(!is_on());

        let mut watch = LockStat::of(&path, &switch).unwrap();
        fs::write(&path, AFTER).unwrap();
        let (first, second) = (watch.take().0, watch.take().0);
        assert_eq!((first.len(), second.len(), is_on()), (2, 0, true));
        assert_eq!((watch.stop(), is_on()), (None, false));
        // A thread that has set it meanwhile is left alone.
        fs::write(&switch, "1").unwrap();
        drop(watch);
        assert!(is_on());
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert!(parse("").is_empty());
        assert!(parse("lock_stat version 0.4\n a: b c\n x: 1 2\n 5 [<0>] f+0x1/0x2\n").is_empty());
    }
}
