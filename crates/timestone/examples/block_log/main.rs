//! A store on a disk whose writes are logged, and the power cut after any of them: for
//! `scripts/test-block-log`, which runs the first part in a virtual machine.
//!
//! ```text
//! block_log commit DIRECTORY DEVICE ACKNOWLEDGED [unflushed]
//! block_log replay LOG DISK ACKNOWLEDGED [unflushed | lying]
//! ```
//!
//! `commit` has two threads commit to a store in a directory of a disk. When a commit has returned,
//! its thread writes the commit's number to the disk itself, at a byte offset where no file system
//! is: so the log has both in their order.
//!
//! `replay` reads the log (of QEMU's `blklogwrites`, which has the format of dm-log-writes) and the
//! disk's earlier state. It judges each prefix of the log that ends before a flush, first without
//! the writes since the last flush, and then with some of them. `e2fsck` recovers the file system,
//! `debugfs` copies the store from it, the store is opened, and all acknowledged transactions have
//! to be in it. So it needs neither root nor a loop device.
//!
//! The last word is a fault, which `replay` has to find: a store that does not flush its journal,
//! and a disk that leaves out some flushes.

mod commit;
mod log;
mod numbers;
mod replay;

use replay::Fault;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: block_log commit DIRECTORY DEVICE OFFSET [unflushed]
       block_log replay LOG DISK OFFSET [unflushed | lying]";

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["commit", directory, device, at] => commit::commit(directory, device, at.parse()?, true),
        ["commit", directory, device, at, "unflushed"] => {
            commit::commit(directory, device, at.parse()?, false)
        }
        ["replay", log, disk, at] => replay::replay(log, disk, at.parse()?, Fault::None),
        ["replay", log, disk, at, "unflushed"] => {
            replay::replay(log, disk, at.parse()?, Fault::Store)
        }
        ["replay", log, disk, at, "lying"] => replay::replay(log, disk, at.parse()?, Fault::Disk),
        _ => Err(USAGE.into()),
    }
}
