//! Disks of KhronOS, on the host: in files, as QEMU has them.

mod file_disk;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use khronos_disk::{BLOCK_BYTES, Disk, ROOT};

use crate::file_disk::FileDisk;

/// Makes, checks and reads disks of KhronOS.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes a disk with an empty file system; the file's old contents are lost.
    Mkfs {
        /// The file.
        disk: PathBuf,
        /// Its size in MiB.
        #[arg(default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
        mebibytes: u64,
    },
    /// Checks a disk, and says what is on it. Writes nothing.
    Fsck {
        /// The file.
        disk: PathBuf,
    },
    /// Prints the bytes of a file on a disk.
    Cat {
        /// The file with the disk.
        disk: PathBuf,
        /// The path on the disk, without symbolic links.
        path: String,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("khronos-disk: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Mkfs { disk, mebibytes } => {
            Disk::format(FileDisk::create(&disk, mebibytes << 20)?)?;
        }
        Command::Fsck { disk } => fsck(&Disk::open(FileDisk::open(&disk)?)?)?,
        Command::Cat { disk, path } => cat(&Disk::open(FileDisk::open(&disk)?)?, &path)?,
    }
    Ok(())
}

fn fsck(disk: &Disk<FileDisk>) -> Result<(), Box<dyn Error>> {
    disk.check()?;
    let (inodes, names) = disk.image().files().fold((0, 0_u64), |(inodes, names), (number, _)| {
        (inodes + 1, names + disk.image().names_in(number).count() as u64)
    });
    let (batches, free) = (disk.batches(), disk.free_blocks());
    println!("clean: {inodes} inodes, {names} names, {batches} batches, {free} free blocks");
    Ok(())
}

fn cat(disk: &Disk<FileDisk>, path: &str) -> Result<(), Box<dyn Error>> {
    let find = |directory, name: &str| {
        let found = disk.image().find(directory, name.as_bytes());
        found.ok_or_else(|| format!("{path}: there is no {name} on the disk"))
    };
    let number = path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, find)?;
    let file = disk.image().file(number).ok_or("the name leads nowhere: see fsck")?;
    let (mut left, mut block) = (file.size, Box::new([0; BLOCK_BYTES]));
    for page in 0..file.size.div_ceil(BLOCK_BYTES as u64) {
        disk.read_page(number, page, &mut block)?;
        let length = left.min(BLOCK_BYTES as u64);
        io::stdout().write_all(&block[..usize::try_from(length)?])?;
        left -= length;
    }
    Ok(())
}
