//! stub
use crate::arch::frame::Frame;
/// s
pub const SIGSEGV: u32 = 11;
/// s
pub const SIGFPE: u32 = 8;
/// s
pub const SIGILL: u32 = 4;
/// s
pub const SIGTRAP: u32 = 5;
/// s
pub fn is_due() -> bool { false }
/// s
pub fn deliver(_f: &mut Frame) {}
/// s
pub fn fault(_f: &mut Frame, _n: u32, _a: usize) {}
