//! Names of code that a program generates while it runs, in the files that compilers write:
//! `/tmp/perf-PID.map`, and jitdump files.
//!
//! A map has lines of the form `START SIZE NAME`, with hexadecimal numbers. Compilers append to it,
//! so among several lines for one place the last one is right. The process that writes a jitdump
//! file also maps it, which shows its path.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use linux_perf_data::jitdump::{JitDumpReader, JitDumpRecord};

use crate::analyze::names::files::{self, Process};
use crate::analyze::names::modules::Key;

/// The most bytes of a map, and of a line, that are read.
const BYTES_MAX: u64 = 256 << 20;
const LINE_MAX: u64 = 4096;
/// More pieces of code than this are not kept.
const PIECES_MAX: usize = 2_000_000;

/// Pieces of code, by their addresses.
#[derive(Debug, Default)]
pub struct Made {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    start: u64,
    size: u64,
    name: Box<str>,
    /// Its number among those of a jitdump file.
    index: u64,
}

impl Made {
    /// What a process has told.
    pub fn of(owner: Key) -> Self {
        let process = files::process(owner);
        let mut made = Self::default();
        let map = PathBuf::from(format!("/tmp/perf-{}.map", process.pid));
        if let Ok(file) = process.open(&map) {
            made.read_map(BufReader::new(file.take(BYTES_MAX)));
        }
        made.read_dumps(&process);
        made.sort();
        made
    }

    fn read_dumps(&mut self, process: &Process) {
        for dump in process.dumps.iter().filter_map(|path| process.open(path).ok()) {
            // The data up to the first unreadable record: a process may end in the middle of a
            // record.
            let _ = self.read_dump(dump);
        }
    }

    fn read_map(&mut self, mut map: impl BufRead) {
        let mut line = Vec::new();
        while map.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if !line.ends_with(b"\n") {
                // The rest of a long one, unless it is the last.
                let _ = map.skip_until(b'\n');
            }
            if let Some(piece) = piece(&line) {
                self.add(piece);
            }
            line.clear();
        }
    }

    fn read_dump(&mut self, dump: File) -> Option<()> {
        let mut dump = JitDumpReader::new(dump.take(BYTES_MAX)).ok()?;
        while let Some(record) = dump.next_record().ok()? {
            match record.parse().ok()? {
                JitDumpRecord::CodeLoad(load) => {
                    let name = String::from_utf8_lossy(&load.function_name.as_slice()).into();
                    let size = load.code_bytes.len() as u64;
                    self.add(Piece { start: load.code_addr, size, name, index: load.code_index });
                }
                JitDumpRecord::CodeMove(moved) => {
                    let of = |piece: &&Piece| piece.index == moved.code_index;
                    if let Some(name) = self.pieces.iter().rfind(of).map(|piece| piece.name.clone())
                    {
                        let (start, size) = (moved.new_code_addr, moved.code_size);
                        self.add(Piece { start, size, name, index: moved.code_index });
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn add(&mut self, piece: Piece) {
        if piece.size > 0 && self.pieces.len() < PIECES_MAX {
            self.pieces.push(piece);
        }
    }

    /// Sorts the pieces by address. If one was put over another, keeps the later one. Call it when
    /// all pieces were added.
    fn sort(&mut self) {
        self.pieces.reverse();
        self.pieces.sort_by_key(|piece| piece.start);
        self.pieces.dedup_by_key(|piece| piece.start);
    }

    /// The piece that contains an address, and the offset in it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = self.pieces[..behind].last()?;
        let offset = address - piece.start;
        (offset < piece.size).then_some((&*piece.name, offset))
    }
}

/// Parses `START SIZE NAME`; some compilers write `0x` ahead of the numbers.
fn piece(line: &[u8]) -> Option<Piece> {
    let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
    let mut words = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (number()?, number()?);
    Some(Piece { start, size, name: words.next()?.into(), index: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(map: &[u8]) -> Made {
        let mut made = Made::default();
        made.read_map(map);
        made.sort();
        made
    }

    #[test]
    fn the_latest_line_of_a_place_is_right() {
        let made = made(
            b"1000 20 LazyCompile:*get lib/a b.js:7\n0x1100 0x10 Stub\nnot a line\n1000 40 new\n2000 0 none\n3000 8 last",
        );
        assert_eq!(made.find(0x103f), Some(("new", 0x3f)));
        assert_eq!(made.find(0x1104), Some(("Stub", 4)));
        assert_eq!([0xfff, 0x1040, 0x1110, 0x2000].map(|at| made.find(at)), [None; 4]);
        assert_eq!(made.find(0x3007), Some(("last", 7)));
    }

    #[test]
    fn lines_without_an_end_are_cut() {
        let long = format!("1000 10 {}\n2000 10 next\n", "x".repeat(1 << 20));
        let made = made(long.as_bytes());
        assert_eq!(made.find(0x1000).unwrap().0.len() as u64, LINE_MAX - 8);
        assert_eq!(made.find(0x2000), Some(("next", 0)));
    }
}
