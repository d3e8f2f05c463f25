//! The rows of the table: the data of each lock, as numbers that sort.

use std::cmp::Ordering;
use std::collections::HashMap;

use clap::ValueEnum;
use manycore_kernel_trace::KernelLock;
use manycore_measure::{count, duration};
use manycore_profile::analyze::live::{LiveLock, LockId, Picture};
use manycore_profile::profile::{Lock, Times};

use crate::follow::Pictures;
use crate::kernel::KernelLocks;
use manycore_profile::percent;

/// Which lock a row is of, from one picture to the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowId {
    /// One of the program's.
    Program(LockId),
    /// One of the kernel's, by name and kind.
    Kernel(String, String),
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Column {
    /// Name of the lock
    Lock,
    /// Time waited for it
    Waited,
    /// Waits
    Waits,
    /// Mean wait
    Mean,
    /// Longest wait
    Worst,
    /// Threads that wait now
    Now,
    /// Share of the time in which it was held
    Held,
    /// Acquisitions
    Acquired,
}

/// What the numbers are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Span {
    /// The last interval
    Interval,
    /// All until now
    Total,
}

/// A lock.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub id: RowId,
    /// The beginning of its name, and the rest, which may be cut.
    pub title: (&'static str, String),
    /// What else a filter finds it by.
    words: String,
    numbers: Numbers,
}

/// What is not known is none.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// Nanoseconds.
    waited: f64,
    /// Over the time of all threads, if that is known.
    waited_share: Option<f64>,
    waits: f64,
    mean: Option<f64>,
    worst: Option<f64>,
    now: Option<f64>,
    held: Option<f64>,
    acquired: Option<f64>,
}

/// For a lock without waits: no share of any time.
const NO_WAITS: Numbers = Numbers {
    waited: 0.0,
    waited_share: Some(0.0),
    waits: 0.0,
    mean: None,
    worst: None,
    now: None,
    held: None,
    acquired: None,
};

impl Column {
    /// All, from left to right.
    pub const ALL: [Self; 8] = [
        Self::Lock,
        Self::Waited,
        Self::Waits,
        Self::Mean,
        Self::Worst,
        Self::Now,
        Self::Held,
        Self::Acquired,
    ];

    /// What stands above it.
    pub fn heading(self, span: Span) -> &'static str {
        match (self, span) {
            (Self::Lock, _) => "lock",
            (Self::Waited, _) => "waited",
            (Self::Waits, Span::Interval) => "waits/s",
            (Self::Waits, Span::Total) => "waits",
            (Self::Mean, _) => "mean",
            (Self::Worst, _) => "worst",
            (Self::Now, _) => "now",
            (Self::Held, _) => "held",
            (Self::Acquired, Span::Interval) => "taken/s",
            (Self::Acquired, Span::Total) => "taken",
        }
    }

    /// How wide it is; the first takes what is left.
    pub fn width(self) -> u16 {
        match self {
            Self::Lock => 0,
            Self::Now => 4,
            Self::Held | Self::Waited => 7,
            _ => 8,
        }
    }
}

impl Row {
    /// Its number in a column: what it is sorted by.
    fn number(&self, column: Column) -> Option<f64> {
        let Numbers { waited, waits, mean, worst, now, held, acquired, .. } = self.numbers;
        match column {
            Column::Lock => None,
            Column::Waited => Some(waited),
            Column::Waits => Some(waits),
            Column::Mean => mean,
            Column::Worst => worst,
            Column::Now => now,
            Column::Held => held,
            Column::Acquired => acquired,
        }
    }

    /// What stands in a column but the first.
    pub fn text(&self, column: Column, span: Span) -> String {
        let Some(number) = self.number(column) else { return String::new() };
        match (column, span) {
            (Column::Lock, _) => String::new(),
            (Column::Waited, Span::Interval) => {
                self.numbers.waited_share.map_or_else(String::new, percent)
            }
            (Column::Waited, Span::Total) | (Column::Mean | Column::Worst, _) => duration(number),
            (Column::Now, _) => format!("{number:.0}"),
            (Column::Held, _) => percent(number),
            // Whole numbers as they are, as long as there is room.
            (Column::Waits | Column::Acquired, Span::Total) if number < 1e7 => {
                format!("{number:.0}")
            }
            (Column::Waits | Column::Acquired, _) => count(number),
        }
    }

    /// Whether it is one of the kernel's.
    pub fn is_kernel(&self) -> bool {
        matches!(self.id, RowId::Kernel(..))
    }

    /// Whether a filter in lower case finds it.
    pub fn matches(&self, filter: &str) -> bool {
        self.words.contains(filter)
    }
}

/// A row for each lock that was used until now.
pub fn rows(pictures: &Pictures, kernel: Option<&KernelLocks>, span: Span) -> Vec<Row> {
    let nothing = Picture::default();
    let picture = match span {
        Span::Total => &pictures.total,
        Span::Interval => pictures.interval.as_ref().unwrap_or(&nothing),
    };
    let cpu = picture.cpu;
    // A thread that sleeps for a lock of the kernel counts in none of the program's parts.
    let asleep = kernel.map_or(0, |kernel| {
        let locks = if span == Span::Total { &kernel.total } else { &kernel.interval };
        locks.iter().map(|lock| lock.wait.total_ns.saturating_sub(lock.spin_ns)).sum()
    });
    let threads = cpu.kernel + cpu.program + cpu.lock_spin + cpu.lock_wait;
    let threads_ns = threads * 1e9 + asleep as f64;
    let threads_ns = (span == Span::Total || !pictures.misses_cpu).then_some(threads_ns);
    let base = Base { span, seconds: picture.seconds, threads_ns };
    let in_span: HashMap<LockId, &LiveLock> =
        picture.locks.iter().map(|one| (one.id, one)).collect();
    let own = pictures.total.locks.iter().map(|one| base.row(one, in_span.get(&one.id).copied()));
    let mut rows: Vec<Row> = own.collect();
    if let Some(kernel) = kernel {
        let interval: HashMap<_, _> =
            kernel.interval.iter().map(|lock| ((&lock.name, &lock.kind), lock)).collect();
        rows.extend(kernel.total.iter().map(|lock| match span {
            Span::Total => base.kernel_row(lock, Some(lock)),
            Span::Interval => {
                base.kernel_row(lock, interval.get(&(&lock.name, &lock.kind)).copied())
            }
        }));
    }
    rows
}

/// What numbers are divided by.
struct Base {
    span: Span,
    seconds: f64,
    /// None where it is not known.
    threads_ns: Option<f64>,
}

impl Base {
    /// A lock, with its activity in the span if it had any.
    fn row(&self, one: &LiveLock, in_span: Option<&LiveLock>) -> Row {
        let Lock { name, kind, module, .. } = &one.lock;
        let (what, title) = one.lock.title_parts();
        let mut numbers = in_span.map_or(NO_WAITS, |in_span| {
            let lock = &in_span.lock;
            Numbers {
                held: lock.held_share(self.seconds),
                acquired: Some(self.rate(lock.acquired)),
                ..self.waits(&lock.wait, lock.contended)
            }
        });
        numbers.now = Some(one.waiting.len() as f64);
        numbers.acquired.get_or_insert(0.0);
        let module = module.as_deref().unwrap_or_default();
        let words = format!("{what}{title} {name} {kind} {module}").to_lowercase();
        Row { id: RowId::Program(one.id), title: (what, title.to_owned()), words, numbers }
    }

    /// The row of one of the kernel's locks, of which only the waits are known.
    fn kernel_row(&self, lock: &KernelLock, in_span: Option<&KernelLock>) -> Row {
        let KernelLock { name, kind, is_named, .. } = lock;
        let what = if *is_named { "" } else { "in " };
        let numbers = in_span.map(|lock| self.waits(&lock.wait, lock.contended));
        let words = format!("{what}{name} {kind} kernel").to_lowercase();
        let id = RowId::Kernel(name.clone(), kind.clone());
        Row { id, title: (what, name.clone()), words, numbers: numbers.unwrap_or(NO_WAITS) }
    }

    fn waits(&self, wait: &Times, contended: u64) -> Numbers {
        let waited = wait.total_ns as f64;
        Numbers {
            waited,
            waited_share: self.threads_ns.map(|all| if all > 0.0 { waited / all } else { 0.0 }),
            waits: self.rate(contended),
            mean: wait.mean_ns.map(|ns| ns as f64),
            worst: wait.max_ns.map(|ns| ns as f64),
            ..Numbers::default()
        }
    }

    fn rate(&self, number: u64) -> f64 {
        match self.span {
            Span::Total => number as f64,
            Span::Interval => number as f64 / self.seconds.max(f64::MIN_POSITIVE),
        }
    }
}

/// Sorts by a column: most first, names from A to Z; the other way round if requested. Unknown
/// values come last, and equal ones are sorted by the time waited and the name.
pub fn sort(rows: &mut [Row], column: Column, is_reversed: bool) {
    let turned = |order: Ordering| if is_reversed { order.reverse() } else { order };
    let names = |a: &Row, b: &Row| a.title.1.cmp(&b.title.1).then_with(|| a.words.cmp(&b.words));
    rows.sort_by(|a, b| {
        let first = match (a.number(column), b.number(column)) {
            _ if column == Column::Lock => turned(names(a, b)),
            (Some(a), Some(b)) => turned(b.total_cmp(&a)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        first.then_with(|| b.numbers.waited.total_cmp(&a.numbers.waited)).then_with(|| names(a, b))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn shown(span: Span, column: Column, is_reversed: bool) -> Vec<Row> {
        let mut rows = rows(&example::pictures(), Some(&example::kernel()), span);
        sort(&mut rows, column, is_reversed);
        rows
    }

    fn names(rows: &[Row]) -> Vec<String> {
        let first = |row: &Row| row.title.1.split(['+', ':']).next().unwrap_or_default().to_owned();
        rows.iter().map(first).collect()
    }

    #[test]
    fn each_column_sorts_its_own_numbers() {
        let sorted = |column| names(&shown(Span::Total, column, false));
        assert_eq!(sorted(Column::Waited), ["cache_lock", "mmap_lock", "kyotocabinet", "server"]);
        assert_eq!(sorted(Column::Waits), ["cache_lock", "mmap_lock", "kyotocabinet", "server"]);
        assert_eq!(sorted(Column::Mean), ["kyotocabinet", "mmap_lock", "cache_lock", "server"]);
        assert_eq!(sorted(Column::Worst), ["cache_lock", "kyotocabinet", "mmap_lock", "server"]);
        assert_eq!(sorted(Column::Acquired), ["cache_lock", "kyotocabinet", "server", "mmap_lock"]);
        assert_eq!(sorted(Column::Lock), ["cache_lock", "kyotocabinet", "mmap_lock", "server"]);
    }

    #[test]
    fn what_is_not_known_comes_last_in_either_direction() {
        let rows = shown(Span::Total, Column::Acquired, true);
        assert_eq!(names(&rows), ["server", "kyotocabinet", "cache_lock", "mmap_lock"]);
        assert_eq!(names(&shown(Span::Total, Column::Mean, true)).last().unwrap(), "server");
        // With several locks, or with readers, the sum of the holds does not give the share.
        let held = |row: &Row| row.text(Column::Held, Span::Total);
        assert_eq!(held(&rows[2]), "51 %");
        assert_eq!((held(&rows[1]), held(&rows[3])), (String::new(), String::new()));
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let rows = shown(Span::Interval, Column::Waited, false);
        let texts = |row: &Row| Column::ALL.map(|column| row.text(column, Span::Interval));
        // 0.4 s of the second that all threads ran or waited; 50 000 waits in half a second.
        let busy = ["", "40 %", "100 k", "8.00 us", "900 us", "1", "40 %", "200 k"];
        assert_eq!(texts(&rows[0]), busy);
        let idle = rows.iter().find(|row| row.title.1.starts_with("server")).unwrap();
        assert_eq!(texts(idle), ["", "0 %", "0", "", "", "0", "", "0"]);
        let kernel = rows.iter().find(|row| row.is_kernel()).unwrap();
        assert_eq!(texts(kernel), ["", "0 %", "0", "", "", "", "", ""]);
    }

    #[test]
    fn a_filter_finds_names_kinds_and_modules() {
        let rows = shown(Span::Total, Column::Waited, false);
        let found = |filter: &str| {
            names(&rows.iter().filter(|row| row.matches(filter)).cloned().collect::<Vec<_>>())
        };
        assert_eq!(found("recursive"), ["server"]);
        assert_eq!(found("kernel"), ["mmap_lock"]);
        assert_eq!(found("libkyoto"), ["kyotocabinet"]);
        assert_eq!(found("").len(), 4);
    }
}
