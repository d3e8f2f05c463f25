//! The waits of the threads of a process and its children, as far as the kernel knows them: the
//! trace of a hang, without a debugger.
//!
//! ```text
//! 24061 mariadbd S 0 ticks  futex_wait_queue   futex(0x55d0c8a2e1d8 0x80 0x2) at libc.so.6+0x8b1d8
//!       [heap]: 00000000 00000000 00005dfd 00000000 00000000 00000001 *00000002 00000000 ...
//! ```
//!
//! is a thread that sleeps (`S`), has used no CPU time in the second of observation, and waits on
//! the futex word that is marked among its neighbours in the line below. A thread that runs (`R`),
//! uses CPU time, and makes no progress spins.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// How long CPU time is measured.
const LOOK: Duration = Duration::from_secs(1);
/// More threads than these are only counted.
const THREADS_MAX: usize = 64;
const FUTEX: &str = "202";
/// The number of bytes shown around a futex word: enough for the `pthread_mutex_t` or
/// `pthread_cond_t` that contains it.
const WORDS_BEFORE: u64 = 10;
const WORDS: usize = 24;

/// A few lines for each thread of a process, then for those of its descendants.
pub fn account(pid: u32) -> String {
    let processes: Vec<_> = family(pid).into_iter().map(ProcessSample::at).collect();
    let before: Vec<_> = processes.iter().map(ProcessSample::all_ticks).collect();
    thread::sleep(LOOK);
    let accounts = processes.iter().zip(before).map(|(process, before)| process.account(&before));
    accounts.collect::<Vec<_>>().join("\n")
}

/// A process and its descendants, parents first.
fn family(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        found.extend(children(*parent));
        next += 1;
    }
    found
}

/// The children of all threads of a process; none if the process has ended.
pub fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|one| fs::read_to_string(one.path().join("children")).ok());
    lists.flat_map(numbers).collect()
}

fn numbers(list: String) -> Vec<u32> {
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

struct ProcessSample {
    proc: PathBuf,
}

impl ProcessSample {
    fn at(pid: u32) -> Self {
        Self { proc: PathBuf::from(format!("/proc/{pid}")) }
    }

    fn all_ticks(&self) -> Vec<(u32, u64)> {
        self.threads().into_iter().map(|thread| (thread, self.ticks(thread))).collect()
    }

    fn account(&self, threads: &[(u32, u64)]) -> String {
        let shown = threads.iter().take(THREADS_MAX);
        let mut lines: Vec<_> =
            shown.map(|(thread, before)| self.describe(*thread, *before)).collect();
        if threads.len() > THREADS_MAX {
            lines.push(format!("... and {} more", threads.len() - THREADS_MAX));
        }
        lines.join("\n")
    }

    fn threads(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.proc.join("task")).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut threads: Vec<u32> = numbers.collect();
        threads.sort_unstable();
        threads
    }

    /// A thread's file, or an empty string: the thread may have ended meanwhile.
    fn read(&self, thread: u32, file: &str) -> String {
        let path = self.proc.join("task").join(thread.to_string()).join(file);
        fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    }

    /// State and CPU time so far, in the kernel's ticks.
    fn stat(&self, thread: u32) -> Option<(String, u64)> {
        let stat = self.read(thread, "stat");
        // The name, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = fields.split(' ').collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some((fields[0].to_owned(), ticks(11)? + ticks(12)?))
    }

    fn ticks(&self, thread: u32) -> u64 {
        self.stat(thread).map_or(0, |(_, ticks)| ticks)
    }

    fn describe(&self, thread: u32, ticks_before: u64) -> String {
        let Some((state, ticks)) = self.stat(thread) else {
            return format!("{thread} has ended");
        };
        let name = self.read(thread, "comm");
        let place = self.read(thread, "wchan");
        let call = self.call(&self.read(thread, "syscall"));
        format!("{thread} {name} {state} {} ticks  {place}   {call}", ticks - ticks_before)
    }

    /// The kernel's `NUMBER ARGUMENT... STACK CODE`, with the contents of the addresses.
    fn call(&self, text: &str) -> String {
        let fields: Vec<_> = text.split(' ').collect();
        let [number, arguments @ .., _stack, code] = fields.as_slice() else {
            return text.to_owned();
        };
        let at = address(code).map_or_else(|| (*code).to_owned(), |code| self.locate(code));
        if *number != FUTEX {
            return format!("system call {number}({}) at {at}", arguments.join(" "));
        }
        let word = arguments.first().and_then(|word| address(word)).unwrap_or(0);
        let shown = &arguments[..arguments.len().min(3)];
        format!("futex({}) at {at}\n      {}", shown.join(" "), self.around(word))
    }

    /// The words around a futex, itself marked.
    fn around(&self, word: u64) -> String {
        let start = word.saturating_sub(4 * WORDS_BEFORE);
        let mut bytes = [0; 4 * WORDS];
        let memory = File::open(self.proc.join("mem"));
        if memory.and_then(|memory| memory.read_exact_at(&mut bytes, start)).is_err() {
            return format!("{}: cannot be read", self.locate(word));
        }
        let words = bytes.chunks_exact(4).enumerate().map(|(index, chunk)| {
            let mark = if index as u64 == WORDS_BEFORE { "*" } else { "" };
            let value = chunk.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
            format!("{mark}{value}")
        });
        format!("{}: {}", self.locate(word), words.collect::<Vec<_>>().join(" "))
    }

    /// An address as file and offset.
    fn locate(&self, address: u64) -> String {
        let maps = fs::read_to_string(self.proc.join("maps")).unwrap_or_default();
        let found = maps.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (start, end) = fields.next()?.split_once('-')?;
            let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
            let offset = fields.nth(1).and_then(hexadecimal)?;
            let name = fields.nth(2).unwrap_or("[anonymous]");
            let name = name.rsplit('/').next().unwrap_or(name);
            (start..end)
                .contains(&address)
                .then(|| format!("{name}+{:#x}", address - start + offset))
        });
        found.unwrap_or_else(|| format!("{address:#x}"))
    }
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier, Mutex};

    #[test]
    fn a_thread_that_waits_for_a_lock_shows_the_futex() {
        let lock = Arc::new(Mutex::new(()));
        let started = Arc::new(Barrier::new(2));
        let held = lock.lock().unwrap();
        let waiter = thread::spawn({
            let (lock, started) = (lock.clone(), started.clone());
            move || {
                started.wait();
                drop(lock.lock());
            }
        });
        started.wait();
        let account = account(std::process::id());
        drop(held);
        waiter.join().unwrap();
        // The standard library's lock is a futex word with 2 in it while a thread waits.
        let waits = account.lines().any(|line| line.contains(": ") && line.contains("*00000002"));
        assert!(waits && account.contains("futex(") && account.contains("libc"), "{account}");
    }

    #[test]
    fn a_thread_that_spins_shows_its_time() {
        let program = &mut std::process::Command::new("sh");
        let mut child = program.args(["-c", "while :; do :; done"]).spawn().unwrap();
        thread::sleep(Duration::from_millis(50));
        let account = account(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(account.contains(" R ") && !account.contains(" 0 ticks"), "{account}");
    }

    #[test]
    fn what_a_process_started_is_shown_as_well() {
        let program = &mut std::process::Command::new("sh");
        let command = program.args(["-c", "sleep 1000 & echo up; wait"]);
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
        let account = account(child.id());
        let sleeper = account.lines().find(|line| line.contains(" sleep S ")).map(str::to_owned);
        let sleeper = sleeper.unwrap_or_else(|| panic!("{account}"));
        let number = sleeper.split(' ').next().and_then(|number| number.parse().ok());
        let number = number.and_then(rustix::process::Pid::from_raw).unwrap();
        // It is there until it is killed here.
        rustix::process::kill_process(number, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_gone_is_no_trouble() {
        assert_eq!(account(u32::MAX), "");
    }
}
