//! `manycore top`: programs that run, without a terminal and in one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    bare_manycore, compile, directory, eventually, failure, library, manycore, printed, skipped,
    stderr, stdout,
};
use serde_json::Value;

const CONTENDED: &str = include_str!("programs/contended.c");

fn contended(directory: &Path) -> String {
    let program = compile(directory, "contended", CONTENDED, &["-g", "-O1", "-pthread"]);
    program.to_str().unwrap().to_owned()
}

/// A program under statistics, ended with the test.
struct Running(Child);

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Self(manycore(arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// The program below the command.
    fn program(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        let mut found = None;
        eventually("a child", || {
            let list = std::fs::read_to_string(&children).unwrap_or_default();
            found = list.split_whitespace().next().and_then(|word| word.parse().ok());
            found.is_some()
        });
        found.unwrap()
    }

    /// The same, when it keeps statistics.
    fn ready(&self) -> u32 {
        let pid = self.program();
        eventually("statistics", || {
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            maps.contains(&format!("/{pid}-")) && maps.contains(".stats")
        });
        pid
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that was not waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        self.0.wait().unwrap();
    }
}

/// The words of the line of a lock.
fn words<'a>(text: &'a str, lock: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(lock));
    line.unwrap_or_else(|| panic!("no {lock} in {text}")).split_whitespace().collect()
}

#[test]
fn scripts_have_a_record_each_interval_until_the_program_ends() {
    let directory = directory();
    let program = contended(directory.path());
    let running = Running::start(&["run", "--stats", "--", &program, "60"]);
    let pid = running.ready();
    let mut top = manycore(&["top", "--json", "--pid", &pid.to_string(), "-d", "200ms"]);
    let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut records = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let seen: Vec<Value> = records.by_ref().take(3).collect();
    drop(running);
    let last = records.last().unwrap();
    assert!(top.wait().unwrap().success() && last["ended"].is_string(), "{last:#}");
    for record in &seen {
        assert_eq!((&record["pid"], &record["span"]), (&pid.into(), &"interval".into()));
        assert!(record["ended"].is_null() && record["seconds"].as_f64().unwrap() >= 0.2);
    }
    let locks = seen.iter().flat_map(|record| record["locks"].as_array().unwrap());
    let hot: Vec<&Value> = locks.filter(|lock| lock["short"] == "hot_lock").collect();
    assert!(hot.iter().all(|lock| lock["kind"] == "mutex"), "{hot:#?}");
    let has_waited = |lock: &&Value| lock["wait"]["total_ns"].as_u64() > Some(0);
    assert!(hot.iter().any(has_waited), "{hot:#?}");
}

/// The sum of two intervals is within the difference of the totals before and after them.
#[test]
fn scripts_have_what_happened_in_an_interval_or_until_now() {
    let directory = directory();
    let program = contended(directory.path());
    let running = Running::start(&["run", "--stats", "--", &program, "60"]);
    let pid = running.ready().to_string();
    let acquired = |span: &str, options: &[&str]| {
        let asked = [&["top", "--json", "--pid", &pid, "-d", "200ms"][..], options].concat();
        let text = printed(&mut manycore(&asked));
        let of_record = |line: &str| {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["span"], span, "{record:#}");
            let locks = record["locks"].as_array().unwrap().iter();
            locks.map(|lock| lock["acquired"].as_u64().unwrap()).sum::<u64>()
        };
        text.lines().map(of_record).sum::<u64>()
    };
    let before = acquired("total", &["--total", "-n", "1"]);
    let between = acquired("interval", &["-n", "2"]);
    let after = acquired("total", &["--total", "-n", "1"]);
    assert!(before > 0 && between > 0, "{before} {between}");
    assert!(between <= after - before, "{before} {between} {after}");
}

#[test]
fn it_attaches_to_a_run_and_prints_what_happens() {
    let directory = directory();
    let program = contended(directory.path());
    for how in [&["run", "--stats", "--"][..], &["profile", "--"]] {
        let running = Running::start(&[how, &[&program, "60"]].concat());
        let pid = running.ready().to_string();
        let arguments = ["top", "--pid", &pid, "-n", "2", "-d", "500ms"];
        let text = printed(&mut manycore(&arguments));
        assert_eq!(text.matches("), last ").count(), 2, "{text}");
        assert!(text.contains(&format!("(pid {pid})")) && text.contains("5 threads"), "{text}");
        assert_ne!(words(&text, "hot_lock")[1], "0", "no thread waited: {text}");
        let total =
            printed(&mut manycore(&["top", "--pid", &pid, "-n", "1", "--total", "-d", "100ms"]));
        let taken: u64 = words(&total, "cold_lock").last().unwrap().parse().unwrap();
        assert!(taken > 100, "{total}");
    }
}

#[test]
fn it_starts_a_program_and_says_how_that_ended() {
    let text = {
        let arguments = ["top", "-n", "9", "-d", "200ms", "--", "sh", "-c", "echo said; exit 3"];
        let output = manycore(&arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let note = crate::support::stderr(&output);
        let (_, file) = note.trim_end().split_once("output is in ").expect(&note);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "said\n");
        std::fs::remove_file(file).unwrap();
        crate::support::stdout(&output)
    };
    assert!(text.contains("ENDED (exit status 3)"), "{text}");
    assert_eq!(text.matches("ENDED").count(), 1, "nothing after the end: {text}");
}

#[test]
fn the_end_is_noticed_however_long_the_interval_is() {
    let directory = directory();
    let program = contended(directory.path());
    // Ends by itself, within the only interval.
    let mut own = manycore(&["top", "-n", "1", "-d", "1h", "--", &program, "1"]);
    let text = printed_soon(&mut own);
    assert!(text.contains("ENDED (killed by SIGALRM)") && text.contains("last "), "{text}");
    assert!(text.contains("\nprogram ") && !text.contains("\nprogram 0 %"), "{text}");
    assert_ne!(words(&text, "hot_lock")[1], "0", "{text}");

    let running = Running::start(&["run", "--stats", "--", &program, "5"]);
    let pid = running.ready().to_string();
    let text = printed_soon(&mut manycore(&["top", "-n", "1", "-d", "1h", "--pid", &pid]));
    assert!(text.contains("ENDED (it is gone)") && text.contains("CPU time not known"), "{text}");
}

/// The output of a command that must end long before a minute is over.
fn printed_soon(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it does not end: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    crate::support::stdout(&output)
}

#[test]
fn what_cannot_be_shown_says_what_to_do() {
    let directory = directory();
    let program = contended(directory.path());
    let no_terminal = failure(2, &mut manycore(&["top"]));
    assert!(no_terminal.contains("no terminal") && no_terminal.contains("--iterations"));
    let gone = failure(2, &mut manycore(&["top", "-n", "1", "--pid", "99999999"]));
    assert!(gone.contains("there is no process 99999999"), "{gone}");
    // The command becomes the program.
    let running = Running::start(&["run", "--", &program, "60"]);
    let pid = running.0.id().to_string();
    eventually("the library in it", || {
        std::fs::read_to_string(format!("/proc/{pid}/maps"))
            .unwrap()
            .contains("libmanycore_preload")
    });
    let without = failure(2, &mut manycore(&["top", "-n", "1", "--pid", &pid]));
    assert!(
        without.contains("keeps no statistics") && without.contains("run --stats"),
        "{without}"
    );
    let short = failure(2, &mut manycore(&["top", "-n", "1", "-d", "1ms"]));
    assert!(short.contains("not from 100ms to 1h"), "{short}");
    let glibc = ["top", "-n", "1", "--lock", "glibc", "--", program.as_str(), "1"];
    assert!(failure(2, &mut manycore(&glibc)).contains("--lock futex"));
}

/// A terminal whose screen the test reads.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// None, and a word on it, without tmux.
    fn start(directory: &Path, width: u16, height: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: there is no tmux; apt-get install --no-install-recommends tmux");
            return None;
        }
        let tmux = Self { socket: directory.join("tmux").to_str().unwrap().to_owned() };
        let size = [width.to_string(), height.to_string()];
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], "sh"]);
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-S", &self.socket]).args(arguments).env_remove("TMUX");
        printed(&mut command)
    }

    fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits for a screen on which something is so.
    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "never: {what}\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether lines are edited and keys are shown, as a shell's terminal does.
    fn is_cooked(&self) -> bool {
        let tty = self.run(&["display-message", "-p", "#{pane_tty}"]);
        let settings = printed(Command::new("stty").args(["-a", "-F", tty.trim()]));
        let words: Vec<&str> = settings.split([' ', ';', '\n']).collect();
        words.contains(&"icanon") && words.contains(&"echo")
    }

    fn is_alternate(&self) -> bool {
        self.run(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Starts `manycore top` in the shell, and waits for its first interval.
    fn top(&self, arguments: &str) {
        let command = env!("CARGO_BIN_EXE_manycore");
        let preload = library().display();
        // The mark is in two parts, so that the line that is typed does not have it.
        let line =
            format!("MANYCORE_PRELOAD={preload} {command} top {arguments}; echo status=$?' 'over");
        self.keys(&[&line, "Enter"]);
        self.until("the first interval", |screen| {
            screen.contains("last ") && screen.contains("hot_lock")
        });
        assert!(self.is_alternate() && !self.is_cooked());
    }

    /// The command's process number, and that of the program that it has started.
    fn own_program(&self) -> (i32, i32) {
        let screen = self.screen();
        let (_, rest) = screen.split_once("(pid ").unwrap();
        let own = rest.split_once(')').unwrap().0.parse().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{own}/stat")).unwrap();
        let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
        (parent.parse().unwrap(), own)
    }

    fn assert_restored(&self, status: &str) {
        let over = format!("status={status} over");
        let screen = self.until("the shell again", |screen| screen.contains(&over));
        assert!(!self.is_alternate() && !screen.contains("hot_lock"), "{screen}");
        eventually("a terminal as before", || self.is_cooked());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Fails only when it is gone.
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}

/// Where two words stand among the lines.
fn order(screen: &str, first: &str, second: &str) -> bool {
    let line = |word: &str| screen.lines().position(|line| line.starts_with(word));
    line(first).zip(line(second)).is_some_and(|(first, second)| first < second)
}

#[test]
fn in_a_terminal_it_sorts_opens_filters_and_gives_the_terminal_back() {
    let directory = directory();
    let program = contended(directory.path());
    let running = Running::start(&["run", "--stats", "--", &program, "120"]);
    let pid = running.ready();
    let Some(tmux) = Tmux::start(directory.path(), 100, 30) else { return };
    tmux.top(&format!("--pid {pid} -d 200ms"));
    let screen = tmux.until("waits", |screen| order(screen, "hot_lock", "cold_lock"));
    assert!(screen.contains("waited*") && screen.contains("5 threads"), "{screen}");

    tmux.keys(&["1"]);
    tmux.until("names from A to Z", |screen| {
        screen.contains("lock*") && order(screen, "cold_lock", "hot_lock")
    });
    tmux.keys(&["r"]);
    tmux.until("and from Z to A", |screen| {
        screen.contains("lock^") && order(screen, "hot_lock", "cold_lock")
    });

    tmux.keys(&["Home", "Enter"]);
    tmux.until("who waits where", |screen| {
        screen.contains("Where threads wait for it") && screen.contains("hot_work contended.c:")
    });
    tmux.keys(&["Escape"]);
    tmux.until("the list", |screen| screen.contains("lock^"));
    tmux.keys(&["/", "c", "o", "l", "d", "Enter"]);
    tmux.until("one lock", |screen| screen.contains("cold_lock") && !screen.contains("hot_lock"));
    tmux.keys(&["Escape"]);
    tmux.until("both", |screen| screen.contains("hot_lock"));

    tmux.run(&["resize-window", "-x", "40", "-y", "10"]);
    let narrow = tmux.until("fewer columns", |screen| {
        screen.contains("hot_lock") && !screen.contains("worst") && screen.contains("waited")
    });
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.until("all columns", |screen| screen.contains("worst"));

    tmux.keys(&["q"]);
    tmux.assert_restored("0");
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "it was only looked at");
}

#[test]
fn in_a_terminal_the_last_picture_stays_and_signals_give_the_terminal_back() {
    let directory = directory();
    let program = contended(directory.path());
    let Some(tmux) = Tmux::start(directory.path(), 100, 30) else { return };
    let running = Running::start(&["run", "--stats", "--", &program, "120"]);
    let pid = running.ready();
    tmux.top(&format!("--pid {pid} -d 200ms"));
    drop(running);
    tmux.until("the end", |screen| screen.contains("ENDED") && screen.contains("hot_lock"));
    tmux.keys(&["q"]);
    tmux.assert_restored("0");

    // A program of its own, and a signal: both end.
    tmux.keys(&["clear", "Enter"]);
    tmux.top(&format!("-d 200ms -- {program} 120"));
    let (top, own) = tmux.own_program();
    // SAFETY: sends a signal to the command, which was not reaped before.
    unsafe { libc::kill(top, libc::SIGTERM) };
    tmux.assert_restored("143");
    eventually("the program's end", || !Path::new(&format!("/proc/{own}")).exists());
}

const MAPPING: &str = include_str!("programs/mapping.c");

#[test]
fn locks_of_the_kernel_are_among_them() {
    let directory = directory();
    let program = compile(directory.path(), "mapping", MAPPING, &["-O1", "-pthread"]);
    let running = Running::start(&["run", "--stats", "--", program.to_str().unwrap(), "120"]);
    let pid = running.ready().to_string();
    for means in ["--kernel", "--kernel=perf"] {
        let asked = ["top", "--json", "--pid", &pid, "-d", "300ms", means];
        let pictures = |options: &[&str]| {
            let output = manycore(&[&asked[..], options].concat()).output().unwrap();
            let said = stderr(&output);
            if output.status.code() == Some(2) && said.contains("the kernel cannot be watched") {
                skipped(said);
                return None;
            }
            assert!(output.status.success(), "{said}");
            let lines = stdout(&output);
            let records = lines.lines().map(|line| serde_json::from_str(line).unwrap());
            Some(records.collect::<Vec<Value>>())
        };
        let waits = |record: &Value| {
            let locks = record["kernel"]["locks"].as_array().unwrap().iter();
            let mut found = locks.filter(|lock| lock["name"] == "mm->mmap_lock");
            found.next().map_or(0, |lock| lock["contended"].as_u64().unwrap())
        };
        let Some(intervals) = pictures(&["-n", "3"]) else { continue };
        assert_eq!(intervals.len(), 3);
        assert!(
            intervals.iter().map(waits).filter(|waits| *waits > 0).count() >= 2,
            "{intervals:?}"
        );
        let totals: Vec<u64> =
            pictures(&["-n", "3", "--total"]).unwrap().iter().map(waits).collect();
        assert!(totals.is_sorted() && totals[2] > totals[0], "{totals:?}");
    }
    let Some(tmux) = Tmux::start(directory.path(), 100, 30) else { return };
    tmux.top(&format!("--pid {pid} -d 200ms --kernel"));
    tmux.keys(&["/", "m", "m", "a", "p", "Enter"]);
    tmux.until("a lock of the kernel", |screen| screen.contains("[k] mm->mmap_lock"));
    tmux.keys(&["Home", "Enter"]);
    tmux.until("who waits for it", |screen| {
        screen.contains("Who waits for it") && screen.contains("task mapping")
    });
    tmux.keys(&["q"]);
    tmux.assert_restored("0");
}

#[test]
fn when_its_terminal_is_gone_it_ends_and_so_does_its_program() {
    let directory = directory();
    let program = contended(directory.path());
    let Some(tmux) = Tmux::start(directory.path(), 100, 30) else { return };
    // As under a shell that leaves its jobs running when it exits.
    tmux.keys(&["trap '' HUP", "Enter"]);
    tmux.top(&format!("-d 200ms -- {program} 120"));
    let (top, own) = tmux.own_program();
    drop(tmux);
    for pid in [top, own] {
        eventually("an end", || !Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn without_the_library_a_program_cannot_be_started() {
    let mut command = bare_manycore();
    command.args(["top", "-n", "1", "--", "true"]).env("MANYCORE_PRELOAD", "/nonexistent.so");
    assert!(failure(2, &mut command).contains("preload library is missing"));
}

#[test]
fn prometheus_reads_what_a_program_does() {
    let directory = directory();
    let program = contended(directory.path());
    let mut top = manycore(&["top", "--listen", "0", "-d", "100ms", "--", &program, "20"]);
    let mut top = top.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(top.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let (_, address) = said.trim_end().split_once("http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    eventually("metrics", || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.lines().any(|line| line.starts_with("manycore_lock_acquisitions_total{lock=\""))
            && text.contains("manycore_program_running 1")
    });
    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(top.id() as i32, libc::SIGTERM) };
    top.wait().unwrap();
}
