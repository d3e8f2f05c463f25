//! `/proc`: the files for `ps`, `free`, `mount` and `readlink /proc/self/exe`. A file's text is
//! made when it is opened.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use khronos_fs::{Kind, Stat};

use super::dev::stat_of;
use super::file::Object;
use super::node::put_name;
use crate::arch::{cpu, tsc};
use crate::call::errno::{Errno, Result};
use crate::mm::frames;
use crate::task::process::{self, Process};
use crate::watch::{counters, sampler};

struct Text(Vec<u8>);

struct Directory(Vec<(Vec<u8>, Kind)>);

/// Opens a path below `/proc`; `None` for any other path.
pub fn open(path: &[u8]) -> Option<Result<Arc<dyn Object>>> {
    let path = path.strip_prefix(b"/proc")?;
    if !path.is_empty() && path[0] != b'/' {
        return None;
    }
    let path = core::str::from_utf8(path).unwrap_or("?").trim_matches('/');
    Some(find(path).ok_or(Errno::NO_ENTRY))
}

fn find(path: &str) -> Option<Arc<dyn Object>> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let number = match first {
        "self" | "thread-self" => process::current()?.number,
        _ => first.parse().unwrap_or(0),
    };
    if number > 0 {
        return of_process(&process::find(number)?, rest);
    }
    let text = match path {
        "" => return Some(root()),
        "mounts" | "self/mounts" => String::from("khronos / khronos rw 0 0\n"),
        "filesystems" => String::from("nodev\tkhronos\n"),
        "uptime" => {
            let centiseconds = tsc::now() / 10_000_000;
            format!("{}.{:02} 0.00\n", centiseconds / 100, centiseconds % 100)
        }
        "loadavg" => String::from("0.00 0.00 0.00 1/1 1\n"),
        "version" => String::from("Linux version 6.1.0 (khronos)\n"),
        "cmdline" => format!("{}\n", crate::arch::boot::information().command_line()),
        "stat" => (0..cpu::count()).fold(String::from("cpu 0 0 0 0 0 0 0 0 0 0\n"), |text, cpu| {
            text + &format!("cpu{cpu} 0 0 0 0 0 0 0 0 0 0\n")
        }),
        "cpuinfo" => (0..cpu::count())
            .fold(String::new(), |text, cpu| text + &format!("processor\t: {cpu}\n\n")),
        "meminfo" => memory(),
        "counters" => counters::totals()
            .fold(String::new(), |text, (name, count)| text + &format!("{name} {count}\n")),
        "file_system" => file_system(),
        "samples" => samples(),
        _ => return None,
    };
    Some(Arc::new(Text(text.into_bytes())))
}

fn memory() -> String {
    let (free, total) = frames::free_and_total();
    let kb = |frames: u64| frames * frames::BYTES as u64 / 1024;
    format!(
        "MemTotal: {} kB\nMemFree: {} kB\nMemAvailable: {} kB\nBuffers: 0 kB\nCached: 0 kB\n\
         Shmem: 0 kB\nSReclaimable: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        kb(total),
        kb(free),
        kb(free)
    )
}

/// The sampler's samples since the last call, one in each line: a CPU and an address.
fn samples() -> String {
    let mut text = String::new();
    sampler::take(|cpu, address| text += &format!("{cpu} {address:x}\n"));
    text
}

fn file_system() -> String {
    let fs = super::tree::fs();
    let mut text = format!("sync {}\n", fs.options().sync);
    fs.statistics(&mut |name, count| text += &format!("{name} {count}\n"));
    text
}

fn root() -> Arc<dyn Object> {
    let mut names: Vec<(Vec<u8>, Kind)> = process::all()
        .iter()
        .map(|process| (format!("{}", process.number).into_bytes(), Kind::Directory))
        .collect();
    names.push((b"self".to_vec(), Kind::Symlink));
    for name in
        ["counters", "cpuinfo", "file_system", "meminfo", "mounts", "samples", "stat", "uptime"]
    {
        names.push((name.as_bytes().to_vec(), Kind::File));
    }
    Arc::new(Directory(names))
}

fn of_process(process: &Arc<Process>, path: &str) -> Option<Arc<dyn Object>> {
    let text = match path {
        "" => {
            let names = ["cmdline", "exe", "stat", "status", "statm", "comm"];
            let names = names.iter().map(|name| (name.as_bytes().to_vec(), Kind::File)).collect();
            return Some(Arc::new(Directory(names)));
        }
        "cmdline" => process.program.lock().1.clone(),
        "exe" => process.program.lock().0.clone(),
        "comm" => format!("{}\n", name_of(process)).into_bytes(),
        "stat" => stat_line(process).into_bytes(),
        "status" => format!(
            "Name:\t{}\nState:\t{}\nPid:\t{}\nPPid:\t{}\nUid:\t0 0 0 0\nGid:\t0 0 0 0\n",
            name_of(process),
            state_of(process),
            process.number,
            parent_of(process)
        )
        .into_bytes(),
        "statm" => {
            let (size, used) = sizes_of(process);
            format!("{} {} 0 0 0 0 0\n", size / 4096, used / 4096).into_bytes()
        }
        "mounts" => b"khronos / khronos rw 0 0\n".to_vec(),
        _ => return None,
    };
    Some(Arc::new(Text(text)))
}

/// The path of the running process' program, for `readlink`.
pub fn link(path: &[u8]) -> Option<Vec<u8>> {
    let path = core::str::from_utf8(path).ok()?.strip_prefix("/proc/")?;
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let this = process::current()?;
    match (first, rest) {
        ("self", "") => Some(format!("{}", this.number).into_bytes()),
        ("self", "exe") => Some(this.program.lock().0.clone()),
        (number, "exe") => Some(process::find(number.parse().ok()?)?.program.lock().0.clone()),
        _ => None,
    }
}

fn name_of(process: &Process) -> String {
    let program = process.program.lock();
    let name = program.0.rsplit(|&byte| byte == b'/').next().unwrap_or(b"?");
    String::from_utf8_lossy(&name[..name.len().min(15)]).into_owned()
}

fn state_of(process: &Process) -> char {
    use crate::task::thread::state;
    let relations = process.relations.lock();
    let is_running = |thread: &Arc<crate::task::thread::Thread>| {
        thread.state.load(Ordering::Relaxed) != state::SLEEPING // Relaxed: of a moment
    };
    match relations.status {
        Some(_) => 'Z',
        None if relations.threads.iter().any(is_running) => 'R',
        None => 'S',
    }
}

fn parent_of(process: &Process) -> u32 {
    process.relations.lock().parent.upgrade().map_or(0, |parent| parent.number)
}

fn sizes_of(process: &Process) -> (u64, u64) {
    process.find_space().map_or((0, 0), |space| space.sizes())
}

fn stat_line(process: &Process) -> String {
    let (size, used) = sizes_of(process);
    let group = process.group.load(Ordering::Relaxed); // Relaxed, both: settings
    let session = process.session.load(Ordering::Relaxed);
    format!(
        "{} ({}) {} {} {group} {session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 {} 0 {} {size} {} 0 0 0 0 0 0 \
         0 0 0 0 0 0 17 0 0 0 0 0 0\n",
        process.number,
        name_of(process),
        state_of(process),
        parent_of(process),
        process.live_threads.load(Ordering::Relaxed), // Relaxed: a number
        process.began / 10_000_000,
        used / 4096
    )
}

impl Object for Text {
    fn read(&self, offset: u64, into: &mut [u8], _wait: bool) -> Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or(&[]);
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn stat(&self) -> Stat {
        stat_of(Kind::File, 0o444, 0)
    }
}

impl Object for Directory {
    fn stat(&self) -> Stat {
        stat_of(Kind::Directory, 0o555, 0)
    }

    fn names(&self, from: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let mut list = Vec::new();
        let mut next = from;
        for (name, kind) in self.0.iter().skip(from as usize) {
            if !put_name(&mut list, most, name, 1, *kind, next + 1) {
                break;
            }
            next += 1;
        }
        Ok((list, next))
    }
}
