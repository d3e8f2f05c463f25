//! Waits added up in the kernel by BPF programs: for its locks, and for futexes of the program's
//! own.

mod futexes;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel,
};
use manycore_profile::analyze::futex::{Count, Futexes};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use crate::clock::now;
use crate::kallsyms::Kallsyms;
use crate::sleepers::{Numbers, Sleepers};
use crate::sum::{BUCKETS, SKETCH, Sum};
use crate::waits::{Identity, Totals, Waits};
use crate::{Request, Scope};

const REFUSED: &str = "the kernel does not permit it: run as root, or grant CAP_BPF, CAP_PERFMON and CAP_SYSLOG \
    (setcap cap_bpf,cap_perfmon,cap_syslog+ep on the command)";

/// Aligned so that an ELF file can be read in place.
#[repr(align(8))]
struct Aligned<B: ?Sized>(B);
static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/contention.o")));

/// libbpf's last message: its explanation is more helpful than the error number.
static SAID: Mutex<String> = Mutex::new(String::new());

/// The programs, loaded and attached.
pub struct Programs {
    object: Object,
    /// Detached when dropped.
    links: Vec<Link>,
    sleepers: Sleepers,
    places: Numbers<futexes::WaitSite>,
    /// The totals when the sums were last taken.
    taken: Totals,
    /// As in `bpf/contention.bpf.c`.
    turn: u32,
    /// Waits whose stacks had been forgotten when they ended.
    forgotten: u64,
}

// As in bpf/contention.bpf.c.
const OF_LOCKS: u32 = 0;
const OF_FUTEXES: u32 = 1;
const SWITCH: &str = "sched_switch";
const ITSELF: u32 = 1;
const ITS_CHILDREN: u32 = 2;
/// The inode number of the initial namespace.
const FIRST_NAMESPACE: u64 = 0xefff_fffc;
/// A stack map's value.
const CALLS: usize = 48;
/// The maps that hold stacks, used in turn, and the corresponding flag in a wait.
const STACKS: [&str; 2] = ["even_stacks", "odd_stacks"];
const STACK_BITS: u32 = 14;
const TURNS: u32 = 1 << 16;
/// When a map has this many stacks, an eighth of its size, new ones go into the other map. The
/// kernel places a stack by its hash, and drops it if another stack has that place. For owners the
/// limit is half of the size.
const MANY: usize = if cfg!(test) { 0 } else { 2048 };

impl Programs {
    /// Loads and attaches the programs. The command has not been started yet.
    pub fn start(request: &Request, futexes: bool, symbols: &Kallsyms) -> Result<Self, String> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        let mut open = ObjectBuilder::default().open_memory(&OBJECT.0).map_err(refusal)?;
        configure(&mut open, request, futexes, symbols)?;
        let object = open.load().map_err(refusal)?;
        match request.scope {
            Scope::System => {}
            Scope::Command => follow(&object, getpid(), ITS_CHILDREN)?,
            Scope::Process(pid) => follow(&object, pid_of(pid)?, ITSELF)?,
        }
        let mut links = Vec::new();
        for program in object.progs_mut().filter(|program| program.autoload()) {
            links.push(program.attach_trace().map_err(refusal)?);
        }
        let mut this = Self {
            object,
            links,
            sleepers: Sleepers::default(),
            places: Numbers::default(),
            taken: Totals::default(),
            turn: 0,
            forgotten: 0,
        };
        if let Scope::Process(pid) = request.scope
            && futexes
        {
            let sleeping = this.map("sleeping");
            futexes::begin(&mut this.sleepers, &sleeping, pid, now());
        }
        Ok(this)
    }

    /// Samples the processes that wait for futexes, while they exist.
    pub fn sample(&mut self) {
        let map = self.map("sleepers");
        futexes::sample(&mut self.sleepers, &map, false);
    }

    /// What the places where they wait have come to.
    pub fn futex_counts(&mut self) -> Vec<Count> {
        let [sums, sleeping] = ["futexes", "sleeping"].map(|it| self.map(it));
        futexes::counts(&sums, &sleeping, now(), &mut self.places)
    }

    /// The threads' waits until now, and their durations.
    pub fn futexes(&mut self) -> (Futexes, Totals) {
        let map = self.map("sleepers");
        futexes::sample(&mut self.sleepers, &map, true);
        let [sums, stacks, sleeping] =
            ["futexes", "user_stacks", "sleeping"].map(|it| self.map(it));
        let stack = |number| stack_of(&stacks, number);
        let (waits, under_way) = futexes::waits(&sums, &sleeping, now(), &mut self.places, stack);
        let mut totals = self.totals(OF_FUTEXES);
        totals.waits += under_way;
        totals.under_way = under_way;
        (self.sleepers.futexes(waits), totals)
    }

    /// Stops counting.
    pub fn stop(&mut self) {
        self.links.clear();
    }

    /// The counts since the start or the last call.
    pub fn take(&mut self) -> (Vec<Waits>, Totals) {
        let waits = self.waits();
        // Once they have stopped, nothing more comes that would need room.
        if !self.links.is_empty() {
            self.forget();
        }
        let mut totals = self.totals(OF_LOCKS);
        totals.without_stack += self.forgotten;
        let before = mem::replace(&mut self.taken, totals);
        (waits, totals.since(before))
    }

    fn totals(&self, whose: u32) -> Totals {
        let counts = self.map("counts").lookup(&whose.to_ne_bytes(), MapFlags::ANY);
        let counts = counts.ok().flatten().unwrap_or_default();
        let mut counts = Fields(&counts);
        // Calls that the kernel omitted because the program was already running on that CPU. Each
        // is one wait at most.
        let programs = self.object.progs().filter(|program| {
            program.autoload() && (program.name() == OsStr::new(SWITCH)) == (whose == OF_FUTEXES)
        });
        let missed: u64 = programs.map(|program| misses(program.as_fd())).sum();
        Totals {
            waits: counts.long() + missed,
            dropped: counts.long() + missed,
            without_stack: counts.long(),
            without_maps: counts.long(),
            unfollowed: counts.long(),
            ..Totals::default()
        }
    }

    /// Takes the waits for locks of the kernel out of the kernel's sums. One that is just being
    /// added may be lost.
    fn waits(&mut self) -> Vec<Waits> {
        let owners = self.map("owners");
        let stacks = STACKS.map(|it| self.map(it));
        let sums = self.map("sums");
        let mut all = Vec::new();
        // Finds all keys before any is deleted: a walk over the map restarts when its key is gone.
        for key in sums.keys().collect::<Vec<_>>() {
            let Some(sum) = sums.lookup_and_delete(&key).ok().flatten() else { continue };
            let mut key = Fields(&key);
            let (identity, owner, cgroup) = (key.long(), key.long(), key.long());
            let (stack, flags) = (key.int(), key.int());
            let owner = match owner {
                0 => Vec::new(),
                number => calls(&owners, &number.to_ne_bytes()),
            };
            let sum = sum_of(&sum);
            let turn = stack >> STACK_BITS;
            let stack = match self.turn.wrapping_sub(turn) % TURNS {
                _ if (stack as i32) < 0 => Vec::new(),
                0 | 1 => stack_of(&stacks[turn as usize % 2], stack % (1 << STACK_BITS)),
                _ => {
                    self.forgotten += sum.waits;
                    Vec::new()
                }
            };
            let (identity, task) = (Identity::of(identity), key.text());
            all.push(Waits { identity, flags, task, cgroup, stack, owner, sum });
        }
        all
    }

    /// Makes room for new stacks and owners once there are many. A wait that is under way keeps its
    /// stack until the next time at least; its owner becomes unknown.
    fn forget(&mut self) {
        let [this, other] = [0, 1].map(|more| self.map(STACKS[(self.turn as usize + more) % 2]));
        if this.keys().count() > MANY {
            clear(&other);
            self.turn = (self.turn + 1) % TURNS;
            let maps = &mut self.object.maps();
            let turn = maps.find(|map| map.name().to_string_lossy().ends_with(".bss"));
            let turn = turn.expect("the object has a variable");
            let set = turn.update(&[0; 4], &self.turn.to_ne_bytes(), MapFlags::ANY);
            set.expect("a variable of ours can be written");
        }
        let owners = self.map("owners");
        if owners.keys().count() > MANY {
            clear(&owners);
        }
    }

    fn map(&self, name: &str) -> MapHandle {
        let map = self.object.maps().find(|map| map.name() == OsStr::new(name));
        let map = map.expect("the object has this map");
        MapHandle::try_from(&map).expect("a descriptor can be duplicated")
    }
}

/// Sets the constants, and leaves out the programs that are not wanted.
fn configure(
    open: &mut OpenObject,
    request: &Request,
    futexes: bool,
    symbols: &Kallsyms,
) -> Result<(), String> {
    let (scope, watched): (u32, u32) = match request.scope {
        Scope::System => (0, 0),
        Scope::Command => (1, 0),
        Scope::Process(pid) => (2, pid),
    };
    let image = symbols.image();
    let mut constants = [0; 32];
    constants[..4].copy_from_slice(&scope.to_ne_bytes());
    constants[8..16].copy_from_slice(&image.start.to_ne_bytes());
    constants[16..24].copy_from_slice(&image.end.to_ne_bytes());
    constants[24..28].copy_from_slice(&namespace().to_ne_bytes());
    constants[28..].copy_from_slice(&watched.to_ne_bytes());
    let mut read_only = open
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .ok_or("the BPF object has no constants")?;
    read_only.set_initial_value(&constants).map_err(refusal)?;
    for mut program in open.progs_mut() {
        let is_wanted = match program.name().to_str() {
            Some("sched_process_fork") => request.scope == Scope::Command,
            Some("sched_process_exec") => watched != 0,
            // It runs at every context switch of the machine.
            Some(SWITCH) => futexes,
            _ => true,
        };
        program.set_autoload(is_wanted);
    }
    Ok(())
}

/// The inode number of this process' PID namespace; 0 if it is the initial one.
fn namespace() -> u32 {
    let place = fs::metadata("/proc/self/ns/pid");
    place.map_or(0, |place| if place.ino() == FIRST_NAMESPACE { 0 } else { place.ino() as u32 })
}

/// Gives a process a `task_state` before it waits.
fn follow(object: &Object, pid: Pid, followed: u32) -> Result<(), String> {
    let task_states = object.maps().find(|map| map.name() == OsStr::new("task_states"));
    let task_states = task_states.ok_or("the BPF object has no map `task_states`")?;
    let process = pidfd_open(pid, PidfdFlags::empty())
        .map_err(|error| format!("there is no process {}: {error}", pid.as_raw_nonzero()))?;
    let mut task_state = vec![0_u8; task_states.value_size() as usize];
    task_state[..4].copy_from_slice(&followed.to_ne_bytes());
    task_states.update(&process.as_raw_fd().to_ne_bytes(), &task_state, MapFlags::ANY).map_err(text)
}

fn pid_of(pid: u32) -> Result<Pid, String> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| format!("no process has the number {pid}"))
}

/// How often the kernel left a program out.
fn misses(program: BorrowedFd<'_>) -> u64 {
    let mut info = libbpf_rs::libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `length` bytes into a structure of that length.
    let failed = unsafe {
        libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(
            program.as_raw_fd(),
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if failed == 0 { info.recursion_misses } else { 0 }
}

fn clear(map: &MapHandle) {
    for key in map.keys().collect::<Vec<_>>() {
        // Gone already if the kernel had it out.
        let _ = map.delete(&key);
    }
}

/// The entries of a map. If the map changes meanwhile, the walk may restart: each key counts once,
/// and the walk ends in any case.
fn entries(map: &MapHandle) -> HashMap<Vec<u8>, Vec<u8>> {
    let steps = 4 * map.max_entries() as usize;
    let value = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok().flatten()?;
        Some((key, value))
    };
    map.keys().take(steps).filter_map(value).collect()
}

/// A stack by its number; empty if the number is that of no stack.
fn stack_of(stacks: &MapHandle, number: u32) -> Vec<u64> {
    if number as i32 >= 0 { calls(stacks, &number.to_ne_bytes()) } else { Vec::new() }
}

/// The calls of a key in a map, innermost first.
fn calls(map: &MapHandle, key: &[u8]) -> Vec<u64> {
    let value = map.lookup(key, MapFlags::ANY).ok().flatten().unwrap_or_default();
    let calls = value.chunks_exact(8).take(CALLS);
    let calls = calls.map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")));
    calls.take_while(|call| *call != 0).collect()
}

fn sum_of(value: &[u8]) -> Sum {
    let mut value = Fields(value);
    let mut sum = Sum {
        waits: value.long(),
        total_ns: value.long(),
        max_ns: value.long(),
        spun_ns: value.long(),
        ..Sum::default()
    };
    for word in &mut sum.objects[..SKETCH] {
        *word = value.long();
    }
    for count in &mut sum.times[..BUCKETS] {
        *count = value.int();
    }
    sum
}

/// The fields of a structure from the kernel side, one after the other; zero beyond its end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => [0; N],
        }
    }

    fn long(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn int(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    /// A task's name.
    fn text(&mut self) -> String {
        let bytes: [u8; 16] = self.take();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// Keeps what libbpf says, instead of the terminal.
fn keep(_: PrintLevel, said: String) {
    if let Ok(mut kept) = SAID.lock() {
        kept.push_str(&said);
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The reason why the programs could not be loaded, in a line.
fn refusal(error: libbpf_rs::Error) -> String {
    let said = SAID.lock().map(|mut kept| mem::take(&mut *kept)).unwrap_or_default();
    if let Some(verdict) = verdict(&said) {
        return format!("the kernel refuses a program: {verdict}");
    }
    let last = said.lines().rev().map(str::trim).find(|line| line.starts_with("libbpf:"));
    match (error.kind(), last) {
        (libbpf_rs::ErrorKind::PermissionDenied, _) => REFUSED.to_owned(),
        (_, Some(line)) => format!("{error}: {line}"),
        (_, None) => error.to_string(),
    }
}

/// What the verifier's log ends with, before its counts; `None` if there is no such log.
fn verdict(said: &str) -> Option<&str> {
    let (log, _) = said.rsplit_once("\n-- END PROG LOAD LOG --")?;
    log.lines().rev().find(|line| !line.starts_with("processed "))
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_of_the_verifier_is_no_lack_of_permission() {
        let said = "libbpf: prog 'contention_begin': BPF program load failed: -EACCES\n\
            libbpf: prog 'contention_begin': -- BEGIN PROG LOAD LOG --\n\
            157: (7b) *(u64 *)(r1 +8) = r7\n\
            R1 unbounded memory access, make sure to bounds check any such access\n\
            processed 828 insns (limit 1000000) max_states_per_insn 3 total_states 62\n\
            -- END PROG LOAD LOG --\n\
            libbpf: prog 'contention_begin': failed to load: -EACCES\n";
        let expected = "R1 unbounded memory access, make sure to bounds check any such access";
        assert_eq!(verdict(said), Some(expected));
        let unprivileged = "libbpf: prog 'contention_begin': BPF program load failed: -EPERM\n";
        assert_eq!(verdict(unprivileged), None);
    }

    /// Waits now and then for the address space's lock, if other threads do the same.
    fn map_and_unmap() {
        // SAFETY: the mapping is new, at an address that the kernel chooses, and no other code uses
        // it.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            let pages = libc::mmap(null_mut(), 1 << 16, libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            libc::munmap(pages, 1 << 16);
        }
    }

    /// Here one stack is many.
    #[test]
    fn stacks_and_owners_are_forgotten_in_turn() {
        let request = Request { scope: Scope::Process(std::process::id()) };
        let mut programs = match Programs::start(&request, false, &Kallsyms::read()) {
            Ok(programs) => programs,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        map_and_unmap();
                    }
                });
            }
            let takes = [(); 4].map(|()| {
                thread::sleep(Duration::from_millis(200));
                (programs.take(), programs.turn)
            });
            done.store(true, Ordering::Relaxed);
            for (at, ((waits, totals), turn)) in takes.into_iter().enumerate() {
                let sum = |is_known: bool| {
                    let some = waits.iter().filter(|wait| wait.stack.is_empty() != is_known);
                    some.map(|wait| wait.sum.waits).sum::<u64>()
                };
                let (with, without) = (sum(true), sum(false));
                assert!(with > 0 && without <= totals.without_stack, "{at}: {with} {totals:?}");
                assert_eq!(turn as usize, at + 1);
            }
        });
        programs.stop();
        programs.forget();
        assert_eq!(programs.map("owners").keys().count(), 0);
        assert_eq!(programs.map(STACKS[(programs.turn as usize) % 2]).keys().count(), 0);
    }
}
