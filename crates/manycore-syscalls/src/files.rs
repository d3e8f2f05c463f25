//! The files that any thread may read and write: those of file systems that only store bytes.
//!
//! Objects of `/proc`, tracefs or a control group look like files, too, but a read may wait for
//! another process, and a write may concern the thread that makes it. On FUSE and in networks other
//! programs answer, maybe this program itself.

use core::ffi::c_int;

use syscalls::{Sysno, raw_syscall};

/// The file systems, by the numbers that `statfs(2)` tells.
const PLAIN: [u64; 21] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs
    0x6167_6673, // aufs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x3153_464A, // JFS
    0x5265_4973, // ReiserFS
    0x0000_3434, // NILFS
    0x2405_1905, // UBIFS
    0x7371_7368, // SquashFS
    0xE0F5_E1E2, // EROFS
    0x0000_9660, // ISO 9660
    0x1501_3346, // UDF
    0x0000_4D44, // FAT
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS
];

/// Whether a descriptor's file is on one of those.
pub fn are_plain(fd: c_int) -> bool {
    // SAFETY: the structure consists of numbers, for which zero is a value.
    let mut about: libc::statfs = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is as large as the kernel writes.
    let failed = unsafe { raw_syscall!(Sysno::fstatfs, fd, &raw mut about) } != 0;
    !failed && PLAIN.contains(&(about.f_type as u64 & 0xFFFF_FFFF))
}
