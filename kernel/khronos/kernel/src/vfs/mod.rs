//! Files.
/// s
pub mod console {
    /// s
    pub fn receive(_b: u8) {}
}
