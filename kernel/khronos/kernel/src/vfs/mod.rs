//! Objects that programs open: files of khronos-fs, pipes, the console and other devices.

pub mod console;
pub mod cpio;
pub mod dev;
pub mod durable;
pub mod file;
pub mod node;
pub mod path;
pub mod pipe;
pub mod poll;
pub mod proc;
pub mod table;
pub mod tree;
