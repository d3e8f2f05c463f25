//! The log of a disk's writes, as QEMU's `blklogwrites` has it.
//!
//! ```text
//!   sector 0   | magic u64 | version u64 | entries u64 | bytes of a sector u32 |
//!   entry      | first sector u64 | sectors u64 | flags u64 | ... to the sector's end | data |
//! ```
//!
//! An entry is there when the disk has executed its request: so a write that had returned before a
//! flush was requested comes before that flush.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::Outcome;

/// What a disk writes as a whole.
pub const BLOCK: usize = 4096;
/// The beginning of a block of acknowledgements. The thread and the number follow.
pub const MARK: u64 = 0x6465_676b_6361_7374;
/// The distance between the blocks of two threads.
pub const THREAD_BYTES: u64 = BLOCK as u64;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const SECTOR: u64 = 512;
const FLUSH: u64 = 1;

/// What was done to the disk.
pub enum Entry {
    Write {
        offset: usize,
        bytes: Vec<u8>,
    },
    /// What was written before is on the disk.
    Flush,
    Acknowledged {
        thread: u64,
        number: u64,
    },
}

fn word(bytes: &[u8], place: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * place..][..8].try_into().expect("eight bytes"))
}

/// All entries of a log. The file system ends at byte `acknowledged` of the disk.
pub fn read(log: &str, acknowledged: u64) -> Outcome<Vec<Entry>> {
    let log = File::open(log)?;
    let mut header = [0; SECTOR as usize];
    log.read_exact_at(&mut header, 0)?;
    let (count, sector) = (word(&header, 2), word(&header, 3) & u64::from(u32::MAX));
    if (word(&header, 0), word(&header, 1), sector) != (MAGIC, VERSION, SECTOR) {
        return Err("this is no log of writes of version 1 with sectors of 512 bytes".into());
    }
    let (mut at, mut entries) = (SECTOR, Vec::new());
    for index in 0..count {
        log.read_exact_at(&mut header, at)?;
        let [first, sectors, flags] = [0, 1, 2].map(|place| word(&header, place));
        let (offset, length) = (first * SECTOR, sectors * SECTOR);
        let mut bytes = vec![0; usize::try_from(length)?];
        match flags {
            FLUSH if length == 0 => entries.push(Entry::Flush),
            0 if offset.is_multiple_of(BLOCK as u64) && length.is_multiple_of(BLOCK as u64) => {
                log.read_exact_at(&mut bytes, at + SECTOR)?;
                push(&mut entries, offset, bytes, acknowledged)?;
            }
            // The disk is one that is not told of them.
            _ => {
                return Err(format!(
                    "entry {index} of the log: {length} bytes at {offset}, flags {flags}; only writes of blocks and flushes are expected"
                )
                .into());
            }
        }
        at += SECTOR + length;
    }
    Ok(entries)
}

/// Adds a write of whole blocks. The kernel joins adjacent writes, as the acknowledgements of two
/// threads may be.
fn push(entries: &mut Vec<Entry>, offset: u64, bytes: Vec<u8>, acknowledged: u64) -> Outcome {
    if offset < acknowledged {
        entries.push(Entry::Write { offset: usize::try_from(offset)?, bytes });
        return Ok(());
    }
    for block in bytes.chunks(BLOCK) {
        if word(block, 0) != MARK {
            return Err(format!("a write at {offset}, where only acknowledgements are").into());
        }
        entries.push(Entry::Acknowledged { thread: word(block, 1), number: word(block, 2) });
    }
    Ok(())
}
