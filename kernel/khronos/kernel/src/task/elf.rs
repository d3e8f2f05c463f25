//! Programs in files: ELF of 64 bits, for x86-64.

use alloc::vec::Vec;

use crate::call::errno::{Errno, Result};

/// A part of the file that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Where it is in the file.
    pub offset: u64,
    /// Its address in memory, relative to the program's base.
    pub address: u64,
    /// Its bytes in the file.
    pub file_bytes: u64,
    /// Its size in memory. Zeros follow the bytes of the file.
    pub memory_bytes: u64,
    /// 1 execute, 2 write, 4 read.
    pub flags: u32,
}

/// What the kernel needs to know of a program.
#[derive(Debug)]
pub struct Program {
    /// Whether it can be anywhere.
    pub is_movable: bool,
    /// Where it begins.
    pub entry: u64,
    /// The address in memory of its program headers, and their number.
    pub headers: (u64, u64),
    /// What is mapped.
    pub segments: Vec<Segment>,
    /// The position in the file of the path of its interpreter: start and length.
    pub interpreter: Option<(u64, u64)>,
}

/// The length of the beginning of a file that contains the headers.
pub const HEADER_BYTES: usize = 4096;

fn half(bytes: &[u8], at: usize) -> Result<u64> {
    let word = bytes.get(at..at + 2).ok_or(Errno::NOT_EXECUTABLE)?;
    Ok(u64::from(word[0]) | u64::from(word[1]) << 8)
}

fn word(bytes: &[u8], at: usize) -> Result<u64> {
    Ok(half(bytes, at)? | half(bytes, at + 2)? << 16)
}

fn double(bytes: &[u8], at: usize) -> Result<u64> {
    Ok(word(bytes, at)? | word(bytes, at + 4)? << 32)
}

/// Reads the headers at a file's beginning.
pub fn parse(bytes: &[u8]) -> Result<Program> {
    const EXECUTABLE: u64 = 2;
    const SHARED: u64 = 3;
    const X86_64: u64 = 62;
    let kind = half(bytes, 16)?;
    if !bytes.starts_with(b"\x7fELF\x02\x01") || half(bytes, 18)? != X86_64 {
        return Err(Errno::NOT_EXECUTABLE);
    }
    if kind != EXECUTABLE && kind != SHARED || half(bytes, 54)? != 56 {
        return Err(Errno::NOT_EXECUTABLE);
    }
    let (table, count) = (double(bytes, 32)?, half(bytes, 56)?);
    let mut program = Program {
        is_movable: kind == SHARED,
        entry: double(bytes, 24)?,
        headers: (0, count),
        segments: Vec::new(),
        interpreter: None,
    };
    for number in 0..count {
        let at = usize::try_from(table + 56 * number).map_err(|_| Errno::NOT_EXECUTABLE)?;
        let segment = segment(bytes, at)?;
        match word(bytes, at)? {
            1 => program.segments.push(segment),
            3 => program.interpreter = Some((segment.offset, segment.file_bytes)),
            _ => {}
        }
    }
    check(&program)?;
    let holds_table =
        |segment: &&Segment| (segment.offset..segment.offset + segment.file_bytes).contains(&table);
    if let Some(segment) = program.segments.iter().find(holds_table) {
        program.headers.0 = segment.address + (table - segment.offset);
    }
    Ok(program)
}

fn segment(bytes: &[u8], at: usize) -> Result<Segment> {
    Ok(Segment {
        flags: word(bytes, at + 4)? as u32,
        offset: double(bytes, at + 8)?,
        address: double(bytes, at + 16)?,
        file_bytes: double(bytes, at + 32)?,
        memory_bytes: double(bytes, at + 40)?,
    })
}

/// Checks that sums of the numbers do not overflow, and that addresses agree with offsets.
fn check(program: &Program) -> Result<()> {
    const MOST: u64 = 1 << 46;
    let is_right = |segment: &Segment| {
        segment.address < MOST
            && segment.offset < MOST
            && segment.memory_bytes < MOST
            && segment.file_bytes <= segment.memory_bytes
            && segment.address % 4096 == segment.offset % 4096
    };
    let interpreter_fits = program.interpreter.is_none_or(|(at, bytes)| at < MOST && bytes < 4096);
    let fits = !program.segments.is_empty()
        && program.entry < MOST
        && interpreter_fits
        && program.segments.iter().all(is_right);
    if fits { Ok(()) } else { Err(Errno::NOT_EXECUTABLE) }
}

impl Program {
    /// Bytes from the lowest page to behind the highest.
    pub fn extent(&self) -> (u64, u64) {
        let start = self.segments.iter().map(|segment| segment.address & !4095).min();
        let end = self.segments.iter().map(|segment| segment.address + segment.memory_bytes).max();
        (start.unwrap_or(0), end.unwrap_or(0).next_multiple_of(4096))
    }
}
