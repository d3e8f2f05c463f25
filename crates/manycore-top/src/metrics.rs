//! A program's lock activity, in the format that Prometheus and similar programs read: the
//! OpenMetrics text format, and Prometheus' own, which is older.
//!
//! Counters only grow: they are sums of what happened in each interval. The first [`SERIES_MAX`]
//! locks have series of their own for as long as the program runs, and those that come later are
//! counted together. Arguments of the program are in no label: there may be a password among them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use manycore_profile::analyze::live::{LiveLock, Picture};
use manycore_profile::profile::Cpu;

use crate::follow::{Facts, Pictures};
use crate::kernel::KernelLocks;

/// The most locks of the program, and of the kernel, that have series of their own.
const SERIES_MAX: usize = 200;
/// A label is cut here, in characters.
const LABEL_MAX: usize = 200;

/// Which text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/openmetrics-text`.
    OpenMetrics,
    /// `text/plain; version=0.0.4`.
    Prometheus,
}

/// The labels of a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    lock: String,
    kind: String,
    module: String,
}

impl Labels {
    fn of(one: &LiveLock) -> Self {
        let lock = &one.lock;
        let module = lock.module.clone().unwrap_or_default();
        Self { lock: lock.title(), kind: lock.kind.clone(), module }
    }

    /// What has no series of its own.
    fn others() -> Self {
        Self { lock: "(others)".into(), kind: String::new(), module: String::new() }
    }
}

/// Sums of a lock, and its present state.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    acquired: f64,
    contended: f64,
    wait_ns: f64,
    held_ns: f64,
    moved: f64,
    waiting: f64,
    worst_ns: f64,
}

/// Sums over the intervals until now.
#[derive(Debug, Default)]
pub struct Metrics {
    facts: Facts,
    cpu: Cpu,
    locks: BTreeMap<Labels, Sums>,
    kernel: BTreeMap<Labels, Sums>,
    kernel_dropped: f64,
}

impl Metrics {
    /// Adds what happened since the picture before.
    pub fn take(&mut self, pictures: &Pictures, kernel: Option<&KernelLocks>) {
        for sums in self.locks.values_mut().chain(self.kernel.values_mut()) {
            (sums.waiting, sums.worst_ns) = (0.0, 0.0);
        }
        // The first picture has no interval, and all until then.
        let picture = pictures.interval.as_ref().unwrap_or(&pictures.total);
        self.facts = pictures.facts.clone();
        if !(pictures.misses_cpu && pictures.interval.is_some()) {
            self.add_cpu(picture);
        }
        for one in &picture.locks {
            let sums = series(&mut self.locks, Labels::of(one));
            sums.acquired += one.lock.acquired as f64;
            sums.contended += one.lock.contended as f64;
            sums.wait_ns += one.lock.wait.total_ns as f64;
            sums.held_ns += one.lock.held_ns().unwrap_or_default();
            sums.moved += one.lock.handoffs as f64;
            sums.waiting += one.waiting.len() as f64;
            sums.worst_ns = sums.worst_ns.max(one.lock.wait.max_ns.unwrap_or_default() as f64);
        }
        for lock in kernel.iter().flat_map(|kernel| &kernel.interval) {
            let labels =
                Labels { lock: lock.title(), kind: lock.kind.clone(), module: "kernel".into() };
            let sums = series(&mut self.kernel, labels);
            sums.contended += lock.contended as f64;
            sums.wait_ns += lock.wait.total_ns as f64;
        }
        self.kernel_dropped = kernel.map_or(0.0, |kernel| kernel.dropped as f64);
    }

    fn add_cpu(&mut self, picture: &Picture) {
        self.cpu.program += picture.cpu.program.max(0.0);
        self.cpu.kernel += picture.cpu.kernel.max(0.0);
        self.cpu.lock_spin += picture.cpu.lock_spin.max(0.0);
        self.cpu.lock_wait += picture.cpu.lock_wait.max(0.0);
    }

    /// The text.
    pub fn text(&self, format: Format) -> String {
        let mut out = Text { format, text: String::new() };
        self.about(&mut out);
        out.locks("manycore_lock", "a lock of the program", &self.locks, &LOCK);
        out.locks("manycore_kernel_lock", "a lock of the kernel", &self.kernel, &KERNEL);
        if !self.kernel.is_empty() {
            let dropped = [(String::new(), self.kernel_dropped)];
            let means = "Waits in the kernel that were seen and could not be kept.";
            out.family("manycore_kernel_dropped", Type::Counter, means, dropped);
        }
        if format == Format::OpenMetrics {
            out.text.push_str("# EOF\n");
        }
        out.text
    }

    fn about(&self, out: &mut Text) {
        let facts = &self.facts;
        let program = facts.command.split(' ').next().unwrap_or_default();
        let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let info = labels(&[
            ("program", &program),
            ("pid", &facts.pid.to_string()),
            ("algorithm", &facts.lock),
            ("version", env!("CARGO_PKG_VERSION")),
        ]);
        let one = |value: f64| [(String::new(), value)];
        out.family("manycore_program", Type::Info, "The program that is watched.", [(info, 1.0)]);
        let runs = f64::from(u8::from(!facts.is_over));
        out.family("manycore_program_running", Type::Gauge, "1 while it runs.", one(runs));
        let processes = one(facts.processes as f64);
        out.family("manycore_processes", Type::Gauge, "Its processes with statistics.", processes);
        out.family("manycore_threads", Type::Gauge, "Their threads.", one(facts.threads as f64));
        let cpu = &self.cpu;
        let states = [
            ("program", cpu.program),
            ("kernel", cpu.kernel),
            ("spinning", cpu.lock_spin),
            ("waiting", cpu.lock_wait),
        ];
        let states = states.map(|(state, seconds)| (labels(&[("state", state)]), seconds));
        let means = "Time of all threads: on a CPU in the program, in the kernel and in waits for \
                     locks, and off it in those.";
        out.family("manycore_thread_seconds", Type::Counter, means, states);
    }
}

/// The series of a lock: its own, unless there are too many.
fn series(all: &mut BTreeMap<Labels, Sums>, labels: Labels) -> &mut Sums {
    let has_room = all.len() < SERIES_MAX || all.contains_key(&labels);
    all.entry(if has_room { labels } else { Labels::others() }).or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
    Info,
}

/// The values of each lock: the end of the name, the kind, and the value.
type Family = (&'static str, Type, &'static str, fn(&Sums) -> f64);

const LOCK: [Family; 7] = [
    ("acquisitions", Type::Counter, "Acquisitions of", |sums| sums.acquired),
    ("contentions", Type::Counter, "Attempts that had to wait for", |sums| sums.contended),
    ("wait_seconds", Type::Counter, "Time that threads waited for", |sums| sums.wait_ns / 1e9),
    ("hold_seconds", Type::Counter, "Time, from samples, of holds of", |sums| sums.held_ns / 1e9),
    ("moves", Type::Counter, "Acquisitions on another CPU than the one before, of", |sums| {
        sums.moved
    }),
    ("waiting_threads", Type::Gauge, "Threads that wait now for", |sums| sums.waiting),
    ("longest_wait_seconds", Type::Gauge, "The longest wait in the last interval for", |sums| {
        sums.worst_ns / 1e9
    }),
];

const KERNEL: [Family; 2] = [LOCK[1], LOCK[2]];

struct Text {
    format: Format,
    text: String,
}

impl Text {
    fn locks(
        &mut self,
        prefix: &str,
        what: &str,
        locks: &BTreeMap<Labels, Sums>,
        families: &[Family],
    ) {
        let named: Vec<(String, &Sums)> =
            locks.iter().map(|(one, sums)| (one.text(), sums)).collect();
        for (name, of_type, means, value) in families {
            let series = named.iter().map(|(labels, sums)| (labels.clone(), value(sums)));
            self.family(&format!("{prefix}_{name}"), *of_type, &format!("{means} {what}."), series);
        }
    }

    /// One family. A family without series is left out.
    fn family(
        &mut self,
        name: &str,
        of_type: Type,
        means: &str,
        series: impl IntoIterator<Item = (String, f64)>,
    ) {
        let (suffix, word) = match of_type {
            Type::Counter => ("_total", "counter"),
            Type::Gauge => ("", "gauge"),
            Type::Info => {
                ("_info", if self.format == Format::OpenMetrics { "info" } else { "gauge" })
            }
        };
        // The older format has the whole name here.
        let of_family = if self.format == Format::OpenMetrics { "" } else { suffix };
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return;
        }
        let out = &mut self.text;
        let _ = writeln!(out, "# TYPE {name}{of_family} {word}");
        if self.format == Format::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(out, "# UNIT {name} seconds");
        }
        let _ = writeln!(out, "# HELP {name}{of_family} {means}");
        for (labels, value) in series {
            let _ = writeln!(out, "{name}{suffix}{labels} {value}");
        }
    }
}

impl Labels {
    fn text(&self) -> String {
        labels(&[("lock", &self.lock), ("kind", &self.kind), ("module", &self.module)])
    }
}

/// `{name="value",...}`
fn labels(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

/// Escapes a function's name, which may contain anything and have any length.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for one in value.chars().take(LABEL_MAX) {
        match one {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            one if one.is_control() => text.push(' '),
            one => text.push(one),
        }
    }
    text
}

#[cfg(test)]
pub mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::example;

    /// The metrics of two pictures of the example.
    pub fn metrics() -> Metrics {
        let mut metrics = Metrics::default();
        let first = Pictures { interval: None, ..example::pictures() };
        let kernel = example::kernel();
        let kernel = KernelLocks { interval: kernel.total.clone(), ..kernel };
        metrics.take(&first, Some(&kernel));
        metrics.take(&example::pictures(), Some(&KernelLocks::default()));
        metrics
    }

    /// The value of the only series of a family whose labels contain `labels`.
    fn value(text: &str, name: &str, label: &str) -> f64 {
        let of_name = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(label);
        let lines: Vec<&str> = text.lines().filter(of_name).collect();
        let [line] = lines[..] else { panic!("{name} {label}: {lines:?} in {text}") };
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    #[test]
    fn counters_are_sums_of_intervals() {
        let text = metrics().text(Format::OpenMetrics);
        let first = &example::pictures().total.locks[0].lock;
        let waits = value(&text, "manycore_lock_contentions_total", "\"cache_lock\"");
        assert_eq!(waits, (first.contended + 50_000) as f64);
        let waited = value(&text, "manycore_lock_wait_seconds_total", "\"cache_lock\"");
        assert!((waited - first.wait.total_ns as f64 / 1e9 - 0.4).abs() < 1e-9, "{waited}");
        assert_eq!(value(&text, "manycore_lock_waiting_threads", "\"cache_lock\""), 1.0);
        assert_eq!(value(&text, "manycore_kernel_lock_contentions_total", "mmap_lock"), 120.0);
        assert!(text.ends_with("# EOF\n") && !text.contains("--threads"), "{text}");
    }

    #[test]
    fn nobody_can_make_too_many_series_or_break_the_text() {
        let mut metrics = Metrics::default();
        let mut pictures = Pictures { interval: None, ..example::pictures() };
        let one = pictures.total.locks[0].clone();
        pictures.total.locks = (0..1000)
            .map(|number| {
                let mut one = one.clone();
                one.lock.short = format!("{number}\"}} 7\n\\{}", "x".repeat(10_000));
                one
            })
            .collect();
        metrics.take(&pictures, None);
        pictures.total.locks.reverse();
        metrics.take(&pictures, None);
        let text = metrics.text(Format::Prometheus);
        let of_one = text.lines().filter(|line| line.starts_with("manycore_lock_moves_total"));
        assert_eq!(of_one.count(), SERIES_MAX + 1);
        assert!(text.len() < 1 << 20, "{}", text.len());
        let others = value(&text, "manycore_lock_contentions_total", "(others)");
        assert_eq!(others, 800.0 * 2.0 * one.lock.contended as f64);
        promtool(&["check", "metrics"], &text);
    }

    /// Makes Prometheus' own tool check a text; does nothing if it is not installed.
    pub fn promtool(arguments: &[&str], text: &str) {
        let tool = Command::new("promtool").args(arguments).stdin(Stdio::piped()).spawn();
        let Ok(mut tool) = tool else {
            eprintln!("skipped in part: there is no promtool; apt-get install prometheus");
            return;
        };
        tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(tool.wait().unwrap().success(), "{text}");
    }

    #[test]
    fn prometheus_takes_both_formats() {
        promtool(&["check", "metrics"], &metrics().text(Format::Prometheus));
        // The reader of the other format fills in past values, and requires times.
        let text = metrics().text(Format::OpenMetrics);
        let timed = text.lines().map(|line| match line.starts_with('#') {
            true => format!("{line}\n"),
            false => format!("{line} 1700000000\n"),
        });
        let directory = tempfile::tempdir().unwrap();
        let [file, blocks] = ["metrics", "blocks"].map(|name| directory.path().join(name));
        std::fs::write(&file, timed.collect::<String>()).unwrap();
        let [file, blocks] = [&file, &blocks].map(|path| path.to_str().unwrap());
        promtool(&["tsdb", "create-blocks-from", "openmetrics", file, blocks], "");
    }

    /// The query of each panel uses metrics that exist, in a syntax that Prometheus understands.
    #[test]
    fn the_dashboard_of_the_book_asks_for_what_there_is() {
        let dashboard = include_str!("../../../docs/src/commands/manycore-grafana.json");
        let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let text = metrics().text(Format::Prometheus);
        let panels = dashboard["panels"].as_array().unwrap().iter();
        let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
        let questions: Vec<&str> = targets.map(|one| one["expr"].as_str().unwrap()).collect();
        assert_eq!(questions.len(), 8);
        let is_word = |one: char| one.is_ascii_alphanumeric() || one == '_';
        let words = questions.iter().flat_map(|one| one.split(|one| !is_word(one)));
        for name in words.filter(|word| word.starts_with("manycore_")) {
            assert!(text.contains(&format!("\n{name}{{")), "{name}");
        }
        let rules: Vec<String> = questions
            .iter()
            .map(|one| one.replace("$__rate_interval", "1m").replace('\'', "''"))
            .map(|one| format!("  - {{ record: 'manycore:x', expr: '{one}' }}\n"))
            .enumerate()
            .map(|(number, rule)| rule.replace(":x", &format!(":x{number}")))
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rules.yml");
        let rules = format!("groups:\n- name: dashboard\n  rules:\n{}", rules.concat());
        std::fs::write(&file, rules).unwrap();
        promtool(&["check", "rules", file.to_str().unwrap()], "");
    }
}
