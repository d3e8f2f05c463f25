//! How much memory is in use.

/// The number of bytes that this process has from the allocator, and that the allocator has mapped
/// for large requests.
pub(crate) fn in_use() -> u64 {
    // SAFETY: takes nothing and returns numbers.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}
