//! Threads of the simulated program.

/// The number of the calling thread.
pub fn id() -> u32 {
    manycore_sim::backend::thread()
}

/// Two words that the calling thread has noted for itself, 0 at its start: the place that it has in
/// a lock's queue.
pub fn noted() -> [usize; 2] {
    manycore_sim::backend::thread_words().map(|word| word as usize)
}

/// Notes them.
pub fn note(words: [usize; 2]) {
    manycore_sim::backend::set_thread_words(words.map(|word| word as u64));
}
