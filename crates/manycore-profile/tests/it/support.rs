//! Statistics files written by hand, and programs to look symbols up in.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;
// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;

use manycore_measure::Host;
use manycore_profile::analyze::assemble::{Run, Watched, assemble};
use manycore_profile::analyze::live::Snapshot;
use manycore_profile::analyze::process::ProcessStats;
use manycore_profile::analyze::process::StatsFile;
use manycore_profile::clock::Rate;
use manycore_profile::profile::{Exit, Profile};
use manycore_stats::{Kind, MAGIC, MAPPED_CODE, Mapping, Record, Slot};
use memmap2::MmapMut;

/// A statistics file under construction, with the header of a running process.
pub struct Synthetic {
    map: MmapMut,
    pub path: PathBuf,
}

impl Synthetic {
    pub fn new(directory: &Path, pid: u32) -> Self {
        let path = directory.join(format!("{pid}-1.stats"));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(size_of::<Mapping>() as u64).unwrap();
        // SAFETY: the test has just made the file, and no other process changes it.
        let map = unsafe { MmapMut::map_mut(&file).unwrap() };
        let this = Self { map, path };
        let header = &this.get().header;
        header.pid.store(pid, Relaxed);
        header.parent.store(1, Relaxed);
        header.started.store(u64::from(pid) * 1000, Relaxed);
        header.hold_period.store(64, Relaxed);
        header.spin_period.store(8, Relaxed);
        header.records.store(1, Relaxed);
        header.distributions.store(1, Relaxed);
        header.stacks.store(1, Relaxed);
        header.sites.store(1, Relaxed);
        store_bytes(&header.lock, b"futex");
        header.magic.store(MAGIC, Relaxed);
        this
    }

    pub fn get(&self) -> &Mapping {
        // SAFETY: of this size, aligned to a page, and atomics only.
        unsafe { &*self.map.as_ptr().cast::<Mapping>() }
    }

    /// A new record: its number, and itself.
    pub fn record(&self, kind: Kind, address: u64, frames: &[u64]) -> (u32, &Record) {
        let number = self.get().header.records.fetch_add(1, Relaxed);
        let record = &self.get().records[number as usize];
        record.objects.store(1, Relaxed);
        record.address.store(address, Relaxed);
        record.stack.store(self.stack(frames), Relaxed);
        record.kind.store(kind as u32, Relaxed);
        (number, record)
    }

    /// A record with `acquired` exclusive acquisitions and `waits`, in ticks.
    pub fn used(&self, kind: Kind, address: u64, frames: &[u64], acquired: u64, waits: &[u64]) {
        let (_, record) = self.record(kind, address, frames);
        record.acquired.store(acquired, Relaxed);
        self.wait(record, waits);
    }

    pub fn wait(&self, record: &Record, waits: &[u64]) {
        if waits.is_empty() {
            return;
        }
        if record.distributions.load(Relaxed) == 0 {
            let next = self.get().header.distributions.fetch_add(1, Relaxed);
            record.distributions.store(next, Relaxed);
        }
        let distributions = &self.get().distributions[record.distributions.load(Relaxed) as usize];
        for ticks in waits {
            record.contended.fetch_add(1, Relaxed);
            record.wait.fetch_add(*ticks, Relaxed);
            record.wait_max.fetch_max(*ticks, Relaxed);
            distributions.wait.count(*ticks);
        }
    }

    /// The number of a new stack; 0 for none at all.
    pub fn stack(&self, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        let number = self.get().header.stacks.fetch_add(1, Relaxed);
        for (place, frame) in self.get().stacks[number as usize].frames.iter().zip(frames) {
            place.store(*frame, Relaxed);
        }
        number
    }

    /// A place where threads waited for a record's lock, by sampled waits.
    pub fn waited_at(&self, record: u32, frames: &[u64], waits: &[u64]) {
        let number = self.get().header.sites.fetch_add(1, Relaxed);
        let site = &self.get().sites[number as usize];
        site.record.store(record, Relaxed);
        site.stack.store(self.stack(frames), Relaxed);
        site.waits.store(waits.len() as u64, Relaxed);
        site.wait.store(waits.iter().sum(), Relaxed);
    }

    pub fn hold(&self, record: &Record, holds: &[u64]) {
        let number = record.distributions.load(Relaxed) as usize;
        for ticks in holds {
            record.holds.fetch_add(1, Relaxed);
            record.hold.fetch_add(*ticks, Relaxed);
            record.hold_max.fetch_max(*ticks, Relaxed);
            self.get().distributions[number].hold.count(*ticks);
        }
    }

    /// The counters of thread `slab` for a record.
    pub fn slot(&self, slab: usize, record: u32) -> &Slot {
        self.get().header.slabs.fetch_max(slab as u32 + 1, Relaxed);
        let slots = &self.get().slabs[slab].slots;
        let slot = &slots[record as usize % slots.len()];
        slot.record.store(record, Relaxed);
        slot
    }

    pub fn module(&self, start: u64, end: u64, offset: u64, path: &Path) {
        let number = self.get().header.modules.fetch_add(1, Relaxed);
        let module = &self.get().modules[number as usize];
        module.start.store(start, Relaxed);
        module.end.store(end, Relaxed);
        module.offset.store(offset, Relaxed);
        // As pages of a library that are noted without the kernel's numbers.
        module.flags.store(MAPPED_CODE, Relaxed);
        let path = path.to_str().unwrap().as_bytes();
        let words = path.len().div_ceil(8) as u32;
        let place = self.get().header.paths.fetch_add(words, Relaxed);
        store_bytes(&self.get().paths[place as usize..], path);
        module.path.store(place, Relaxed);
        module.length.store(path.len() as u32, Relaxed);
    }

    /// Thread `thread`, which has this slab, waits for a record's lock since then; a time of 0
    /// means that it does not wait.
    pub fn waits(&self, slab: usize, thread: u32, record: u32, since: u64) {
        self.get().header.slabs.fetch_max(slab as u32 + 1, Relaxed);
        let slab = &self.get().slabs[slab];
        slab.thread.store(thread, Relaxed);
        slab.waiting_since.store(since, Relaxed);
        slab.waiting.store(record, Relaxed);
    }

    pub fn sample(&self, now: u64) -> Snapshot {
        Snapshot::at(self.get(), Some(now))
    }

    pub fn read(&self) -> ProcessStats {
        ProcessStats::read(StatsFile::open(&self.path).unwrap().unwrap().get())
    }
}

fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    for (word, part) in words.iter().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        padded[..part.len()].copy_from_slice(part);
        word.store(u64::from_le_bytes(padded), Relaxed);
    }
}

fn host() -> Host {
    Host {
        cpu: "A CPU".into(),
        cpus: 2,
        sockets: 1,
        numa_nodes: 1,
        is_virtual: false,
        kernel: "6.1.0".into(),
        glibc: "2.36".into(),
    }
}

/// A run of ten seconds, with three seconds of CPU time in the kernel and seven elsewhere. A tick
/// is a nanosecond.
pub fn run() -> Run {
    Run {
        command: vec!["./server".into(), "--name".into(), "two words".into()],
        host: host(),
        exit: Exit::Status(0),
        lock: "futex".into(),
        is_interposed: true,
        wall: 10.0,
        kernel: 3.0,
        user: 7.0,
        rate: Rate { ticks_per_ns: 1.0, origin: 0 },
        is_server: false,
        running: vec![],
        not_interposed: vec![],
        silent: 0,
        watched: Watched::default(),
    }
}

pub fn profile_of(files: &[&Synthetic]) -> Profile {
    let stats: Vec<_> = files.iter().map(|file| file.read()).collect();
    assemble(run(), &stats)
}

/// Compiles a program or a library from source text.
pub fn compile(
    directory: &Path,
    name: &str,
    source: &str,
    compiler: &str,
    flags: &[&str],
) -> PathBuf {
    let extension = if compiler == "c++" { "cc" } else { "c" };
    let (text, output) = (directory.join(format!("{name}.{extension}")), directory.join(name));
    std::fs::write(&text, source).unwrap();
    let status = Command::new(compiler)
        .args(["-o".as_ref(), output.as_os_str(), text.as_os_str()])
        .args(flags)
        .arg("-pthread")
        .status()
        .unwrap();
    assert!(status.success(), "{compiler} {name}");
    output
}

/// The address of a symbol in the file.
pub fn address_of(file: &Path, symbol: &str) -> u64 {
    let output = Command::new("nm").arg("-C").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.splitn(3, ' ').nth(2) == Some(symbol));
    let line = line.unwrap_or_else(|| panic!("no symbol {symbol} in {text}"));
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}
