//! KhronOS: a research kernel whose structures are those of `manycore`.
//!
//! | module | what is in it |
//! |---|---|
//! | [`arch`] | x86-64: boot, interrupts, CPUs |
//! | [`mm`] | frames, heap, page tables, address spaces |
//! | [`sync`] | locks and waiting, over the raw locks of `manycore` |
//! | [`task`] | threads, scheduler, processes, signals |
//! | [`vfs`] | files: what programs open |
//! | [`call`] | system calls: those of Linux on x86-64 |
//! | [`drive`] | devices |
//! | [`watch`] | counters, profiler, panics, self-tests |
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod arch;
mod call;
mod drive;
mod mm;
mod sync;
mod task;
mod vfs;
mod watch;

use arch::boot;
use task::fork;

/// The kernel's task: to test itself, or to run programs.
fn main() {
    let information = boot::information();
    let asked = [
        information.option("test").map(watch::selftest::run),
        information.option("bench").map(watch::bench::run),
        information.option("provoke").map(watch::provoke::run),
    ];
    if let Some(went_well) = asked.into_iter().flatten().next() {
        println!("khronos: {}", if went_well { "PASSED" } else { "FAILED" });
        arch::exit::exit(went_well);
    }
    vfs::tree::start();
    let files = match information.option("disk").map_or(0, vfs::durable::start) {
        0 => {
            let archive = boot::module(0);
            let archive = archive.expect("no root: give an archive, by -initrd or as a module");
            vfs::cpio::unpack(archive).expect("the root's archive is not of the form newc")
        }
        on_disk => on_disk,
    };
    vfs::dev::make_names().expect("the names of devices can be made");
    vfs::durable::begin();
    println!("root: {files} files, sync={}", vfs::tree::fs().options().sync);
    let init = information.option("init").unwrap_or("/init");
    let environment = ["PATH=/bin:/sbin:/usr/bin", "HOME=/root", "TERM=linux"];
    let environment = environment.map(|text| text.as_bytes().to_vec());
    if let Err(error) = fork::first(init.as_bytes(), &[init.as_bytes().to_vec()], &environment) {
        panic!("the first program, {init}, cannot be run: error {}", error.0);
    }
}
