//! Ways of passing simulated time.

use manycore_sim::backend;
pub use manycore_sim::backend::unforeseen_branch;

/// One iteration of a polling loop: the CPU is parked until a line changes that the loop has read.
pub fn spin_loop() {
    backend::spin_loop();
}

/// One turn of a loop that ends by itself.
pub fn pause() {
    backend::pause();
}

/// Passes `ticks` of the clock without giving up the CPU.
pub fn delay(ticks: u64) {
    backend::delay(ticks);
}

/// Lets another runnable thread have the CPU; returns at once if there is none.
pub fn yield_now() {
    backend::yield_now();
}

/// Sleeps for no time, which gives up the CPU for as long as the simulated kernel's timer slack.
pub fn sleep_zero() {
    sleep(0);
}

/// Sleeps for at least `nanoseconds` (below 10^9).
pub fn sleep(nanoseconds: u32) {
    backend::sleep(u64::from(nanoseconds));
}

/// Memory that is going to be used: no machine models its pages.
pub fn huge_pages(_address: *mut u8, _bytes: usize) {}

/// Reads a value of a large object of which only the head has been charged.
pub fn touch<T>(value: *const T) {
    backend::read_plain(value.addr(), size_of::<T>());
}

/// Asks for the line of an address ahead of its use.
pub fn prefetch<T>(address: *const T) {
    backend::prefetch(address.addr());
}
