//! Calls on memory.

use super::Arguments;
use super::errno::{Errno, Result};
use super::files::file;
use crate::arch::frame::Frame;
use crate::mm::area::{Protection, Shared, Source};
use crate::mm::space::{self, Space};

const SHARED: u64 = 1;
const FIXED: u64 = 0x10;
const ANONYMOUS: u64 = 0x20;
const FIXED_NO_REPLACE: u64 = 0x10_0000;

fn space() -> Result<&'static Space> {
    space::current().ok_or(Errno::NO_PROCESS)
}

pub fn mmap(
    _: &mut Frame,
    [wish, bytes, protection, how, number, offset]: Arguments,
) -> Result<u64> {
    if !offset.is_multiple_of(4096) || offset > i64::MAX as u64 {
        return Err(Errno::INVALID);
    }
    let protection = Protection(protection & 7);
    let is_shared = how & 3 == SHARED || how & 3 == 3;
    let source = match (how & ANONYMOUS != 0, is_shared) {
        (true, false) => Source::Zeros,
        (true, true) => Source::Shared(Shared::new(), 0),
        (false, _) => {
            let file = file(number)?;
            file.check_readable().map_err(|_| Errno::ACCESS)?;
            // Writes to a mapping do not reach the file, so they are not permitted.
            if is_shared && protection.allows(Protection::WRITE) {
                return Err(Errno::NO_DEVICE);
            }
            let object = file.object.clone();
            let size = object.stat().size;
            object.source(offset, size.saturating_sub(offset))?
        }
    };
    let fixed = how & (FIXED | FIXED_NO_REPLACE) != 0;
    space()?.map(wish, bytes, fixed, protection, source)
}

pub fn munmap(_: &mut Frame, [start, bytes, ..]: Arguments) -> Result<u64> {
    space()?.unmap(start, bytes).map(|()| 0)
}

pub fn mprotect(_: &mut Frame, [start, bytes, protection, ..]: Arguments) -> Result<u64> {
    space()?.protect(start, bytes, Protection(protection & 7)).map(|()| 0)
}

pub fn mremap(_: &mut Frame, [start, old, new, how, ..]: Arguments) -> Result<u64> {
    const MAY_MOVE: u64 = 1;
    space()?.grow(start, old, new, how & MAY_MOVE != 0)
}

pub fn madvise(_: &mut Frame, [start, bytes, advice, ..]: Arguments) -> Result<u64> {
    const DONT_NEED: u64 = 4;
    if advice == DONT_NEED {
        space()?.discard(start, bytes)?;
    }
    Ok(0)
}

pub fn brk(_: &mut Frame, [end, ..]: Arguments) -> Result<u64> {
    Ok(space()?.set_heap_end(end))
}
