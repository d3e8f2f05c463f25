//! How much is shown, in which order, and how names and figures are written.

use std::io;
use std::os::fd::AsFd;

use manycore_measure::{Cell, Column, Table, duration};
use rustix::termios::tcgetwinsize;

use crate::profile::Times;

/// The width of a whole table by default.
const WIDTH: usize = 100;
/// The width of the other columns of the locks' table.
pub(super) const NUMBERS: usize = 73;
/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Time waited.
    Wait,
    /// Acquisitions that had to wait.
    Contended,
    /// Acquisitions.
    Acquired,
    /// Time held.
    Hold,
}

impl Sort {
    /// All sort orders: the name on the command line, and the meaning.
    pub const ALL: [(Self, &str, &str); 4] = [
        (Self::Wait, "wait", "Time waited"),
        (Self::Contended, "contended", "Acquisitions that had to wait"),
        (Self::Acquired, "acquired", "Acquisitions"),
        (Self::Hold, "hold", "Time held, as the samples say"),
    ];
}

/// How a profile is shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Rows of a table, at most.
    pub top: usize,
    /// What comes first.
    pub sort: Sort,
    /// Makes a table for where it is shown.
    pub table: fn(Vec<Column>) -> Table,
    /// Room for a name.
    name_width: usize,
}

impl View {
    /// The width for a name in a table whose other columns have this width.
    pub fn name_width(&self, numbers: usize) -> usize {
        (self.name_width + NUMBERS).saturating_sub(numbers)
    }

    /// The same with at most this many rows.
    pub fn with_rows(self, rows: usize) -> Self {
        Self { top: self.top.min(rows), ..self }
    }

    /// For a file or a pipe.
    pub fn plain(top: usize, sort: Sort) -> Self {
        Self { top, sort, table: Table::plain, name_width: WIDTH - NUMBERS }
    }

    /// A view for the standard error, which may be a terminal of any width.
    pub fn for_stderr(top: usize, sort: Sort) -> Self {
        Self { top, sort, table: Table::for_stderr, name_width: name_width(io::stderr()) }
    }

    /// A view for the standard output, which may be a terminal of any width.
    pub fn for_stdout(top: usize, sort: Sort) -> Self {
        Self { top, sort, table: Table::new, name_width: name_width(io::stdout()) }
    }
}

/// The width for a name, on what may be a terminal, and one that may not know its size.
fn name_width(terminal: impl AsFd) -> usize {
    let size = tcgetwinsize(terminal).ok().filter(|size| size.ws_col > 0);
    let width = size.map_or(WIDTH, |size| size.ws_col.into());
    width.saturating_sub(NUMBERS).clamp(20, 80)
}

/// A name that fits. Name spaces are omitted first, then the middle is cut.
pub fn shortened(name: &str, width: usize) -> String {
    let mut name = name;
    while name.chars().count() > width
        && let Some((_, rest)) = name.split_once("::")
    {
        name = rest;
    }
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= width {
        return name.to_owned();
    }
    let (head, tail) = (width / 2 - 1, width - width / 2 - 1);
    chars[..head].iter().chain(&['.', '.']).chain(&chars[chars.len() - tail..]).collect()
}

pub(super) fn rest(all: usize, top: usize, what: &str) -> String {
    match all.saturating_sub(top) {
        0 => String::new(),
        more => format!("{more} more {what} (--top, --json)\n"),
    }
}

pub(super) fn ns(ns: u64) -> String {
    duration(ns as f64)
}

pub(super) fn times(times: &Times, total: String) -> [Cell; 4] {
    let shown = |value: Option<u64>| value.map(ns).unwrap_or_default();
    let total = if times.count == 0 { String::new() } else { total };
    [total, shown(times.mean_ns), shown(times.p99_ns), shown(times.max_ns)].map(Cell::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_what_tells_least() {
        assert_eq!(shortened("main+0x12", 28), "main+0x12");
        let name = "kyotocabinet::CacheDB::accept_visitor+0x5c";
        assert_eq!(shortened(name, 28), "CacheDB::accept_visitor+0x5c");
        let long = shortened("a_function_whose_name_never_seems_to_end+0x5c", 28);
        assert_eq!(long, "a_function_wh..s_to_end+0x5c");
        assert_eq!(long.len(), 28);
    }
}
