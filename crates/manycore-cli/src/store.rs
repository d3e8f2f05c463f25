//! `manycore store`: the files of a durable store that no program has open.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use timestone::inspect::{self, Contents};
use timestone::offline::{self, Sizes};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::print;

/// Look at the files of a store of TimeStone, copy and compact them
#[derive(Args, Debug)]
#[command(disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Probe(ProbeOptions),
    Verify(VerifyOptions),
    Dump(DumpOptions),
    Backup(BackupOptions),
    Compact(CompactOptions),
    Bench(BenchOptions),
}

const PROBE_NOTES: &str = "\
Examples:
  manycore store probe bank
  manycore store probe bank --json

Output:
  What recovery would have to do when the store is opened, without the objects.

Exit status:
  0   done
  1   the files are damaged
  2   there is no store, or a program has it open
";

/// Describe the contents of a store's files, and the work for recovery
#[derive(Args, Debug)]
#[command(after_long_help = PROBE_NOTES)]
struct ProbeOptions {
    /// The store
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const VERIFY_NOTES: &str = "\
Examples:
  manycore store verify bank && cp -r bank backup

Output:
  As of `probe`, with the objects. Every checksum was compared, and every change was
  applied to its object, in memory: no file is written.

Exit status:
  0   the store is whole
  1   the files are damaged: which one, where, and how
  2   there is no store, or a program has it open
";

/// Read all of a store as recovery does, and compare its checksums
#[derive(Args, Debug)]
#[command(after_long_help = VERIFY_NOTES)]
struct VerifyOptions {
    /// The store
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const DUMP_NOTES: &str = "\
Examples:
  manycore store dump bank | head
  manycore store dump bank | grep '^journal' | tail -1

Output:
  A line for each entry: `image` or `journal`, the transaction's stamp, the object's
  place and number of words, what became of it (new, changed, ended), the first word
  that was written, and the words in hexadecimal.

Exit status:
  As of `verify`.
";

/// Print the contents of a store's files: objects of the image, and transactions of the journal
#[derive(Args, Debug)]
#[command(after_long_help = DUMP_NOTES)]
struct DumpOptions {
    /// The store
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const BACKUP_NOTES: &str = "\
Examples:
  manycore store backup bank bank.monday

Output:
  How much was copied. A program that has the store open makes its own backups, by
  `Store::backup`.

Exit status:
  0   done
  1   the files are damaged, or the copy could not be written
  2   there is no store, a program has it open, or there is a store in the other
      directory
";

/// Copy a store that no program has open; if a crash has left work for recovery, it is done in the
/// copy
#[derive(Args, Debug)]
#[command(after_long_help = BACKUP_NOTES)]
struct BackupOptions {
    /// The store, which is only read
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the copy is made
    #[arg(value_name = "TO")]
    to: PathBuf,
}

const COMPACT_NOTES: &str = "\
Examples:
  manycore store compact bank

Output:
  How much memory the objects took, and how much they take now.

Exit status:
  0   done
  1   the files are damaged, or could not be written: the store is as it was
  2   there is no store, or a program has it open
";

/// Move the objects of a store close together
#[derive(Args, Debug)]
#[command(after_long_help = COMPACT_NOTES)]
struct CompactOptions {
    /// The store
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const BENCH_NOTES: &str = "\
Examples:
  manycore store bench --threads 1,8 --update 100
  manycore store bench --in-flight 256 --threads 1 --update 100
  manycore store bench --promise eventual --json

Output:
  For each point, the operations a second on a store of 10,000 numbers by numbers: the
  median over the rounds, with its 95 % interval. With other engines in the build
  (`--features engines`), each of them, and the ratio of TimeStone to it, from pairs
  within rounds.

Exit status:
  0   done
  1   an engine has failed
  2   bad usage
";

/// Measure transactions on a durable store, beside other engines if the build has them
#[derive(Args, Debug)]
#[command(after_long_help = BENCH_NOTES)]
struct BenchOptions {
    #[command(flatten)]
    options: timestone_peers::Options,
}

/// Does what the options say.
pub fn run(options: &Options) -> Result<()> {
    match &options.what {
        What::Probe(ProbeOptions { directory, json }) => {
            let contents = inspect::probe(directory).map_err(failure)?;
            show(&contents, *json, false)
        }
        What::Verify(VerifyOptions { directory, json }) => {
            let contents = inspect::verify(directory).map_err(failure)?;
            show(&contents, *json, true)
        }
        What::Dump(DumpOptions { directory }) => dump(directory),
        What::Bench(BenchOptions { options }) => bench(options),
        What::Backup(BackupOptions { directory, to }) => {
            print(&sizes("copied", offline::backup(directory, to).map_err(failure)?))
        }
        What::Compact(CompactOptions { directory }) => {
            let (before, after) = offline::compact(directory).map_err(failure)?;
            print(&(sizes("before", before) + &sizes("after", after)))
        }
    }
}

fn bench(options: &timestone_peers::Options) -> Result<()> {
    let bad = |usage: timestone_peers::BadUsage| Failure::bad_input(usage.culprit, usage.remedy);
    options.check().map_err(bad)?;
    let mut printed = Ok(());
    let show = |text: &str| {
        if printed.is_ok() {
            printed = print(text);
        }
    };
    options.run(show).map_err(Failure::failed)?;
    printed
}

/// A line with how much there is.
fn sizes(what: &str, sizes: Sizes) -> String {
    let Sizes { objects, object_bytes, heap_bytes, .. } = sizes;
    format!("{what:<8}{objects} objects of {object_bytes} bytes, {heap_bytes} bytes of memory\n")
}

fn failure(error: timestone::Error) -> Failure {
    match &error {
        timestone::Error::Locked(_) => {
            Failure::bad_input(error, "end the program that has it open first")
        }
        timestone::Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => {
            Failure::bad_input(error, "name the directory that a program has opened as a store")
        }
        timestone::Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::AlreadyExists => {
            Failure::bad_input(error, "name a directory that is empty, or not there yet")
        }
        timestone::Error::UnknownOperation { .. } => {
            Failure::bad_input(error, "start and end the program that has written it")
        }
        timestone::Error::Version { .. } => {
            Failure::bad_input(error, "use the version of manycore that has written it")
        }
        _ => Failure::failed(error),
    }
}

fn show(contents: &Contents, as_json: bool, has_objects: bool) -> Result<()> {
    let superblock = &contents.superblock;
    if as_json {
        let mut json = json!({
            "schema": 1,
            "uuid": format!("{:032x}", superblock.uuid),
            "generation": superblock.number,
            "closed": contents.is_closed,
            "image_horizon": superblock.horizon,
            "image_bytes": superblock.image.bytes,
            "journal_capacity": superblock.journal_bytes,
            "journal_bytes": contents.journal_bytes,
            "transactions": contents.transactions,
            "operations": contents.operations,
            "horizon": contents.horizon,
        });
        if has_objects {
            json["objects"] = contents.objects.into();
            json["object_bytes"] = contents.object_bytes.into();
        }
        return print(&format!("{json:#}\n"));
    }
    let mut text = String::new();
    let mut line = |name: &str, value: String| _ = writeln!(text, "{name:<14}{value}");
    line("uuid", format!("{:032x}", superblock.uuid));
    line("generation", superblock.number.to_string());
    line("closed", if contents.is_closed { "yes" } else { "no: opening it recovers" }.to_owned());
    line("image", format!("{} bytes, up to {}", superblock.image.bytes, superblock.horizon));
    let (used, capacity) = (contents.journal_bytes, superblock.journal_bytes);
    let Contents { transactions, operations, .. } = contents;
    line("journal", format!("{used} of {capacity} bytes, {transactions} transactions"));
    if *operations > 0 {
        line("operations", format!("{operations} of them are calls, which the program recovers"));
    }
    line("horizon", contents.horizon.to_string());
    if has_objects {
        line("objects", format!("{}, {} bytes", contents.objects, contents.object_bytes));
    }
    print(&text)
}

fn dump(directory: &Path) -> Result<()> {
    let mut failed = None;
    let dumped = inspect::dump(directory, |record, entry| {
        let from = record.map_or("image".to_owned(), |record| format!("journal {}", record.stamp));
        let what = match (record.is_some(), entry.is_new(), entry.is_end()) {
            (_, true, _) => "new",
            (_, _, true) => "ended",
            _ => "changed",
        };
        let mut text = format!("{from} {} {} {what} {}", entry.place, entry.size, entry.first);
        for word in entry.words.as_chunks().0 {
            let _ = write!(text, " {:x}", u64::from_le_bytes(*word));
        }
        text.push('\n');
        if failed.is_none() {
            failed = print(&text).err();
        }
    });
    dumped.map_err(failure)?;
    failed.map_or(Ok(()), Err)
}
