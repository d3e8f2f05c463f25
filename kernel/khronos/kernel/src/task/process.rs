//! stub
use super::thread::Thread;
/// stub
pub struct User;
impl User {
    /// stub
    pub fn number(&self) -> u32 { 0 }
}
/// stub
pub fn leave(_t: &Thread) {}
/// stub
pub fn enter(_c: &crate::arch::cpu::Cpu, _t: &Thread) {}
