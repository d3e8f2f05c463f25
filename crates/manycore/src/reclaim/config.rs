//! What a domain can be asked for.

use alloc::boxed::Box;
use core::fmt;

/// The largest batch.
pub(super) const BATCH_MAX: usize = 253;

/// How readers and those who wait for them make sure that one of the two sees the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barriers {
    /// If the system lets one thread make all others pass a fence (membarrier on Linux), readers do
    /// without where they are many for each scan for what can be freed, and with one where such
    /// looks are frequent; always with one if it refuses.
    Auto,
    /// With a fence in every reader.
    Fences,
}

/// A reader that keeps garbage from being freed.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// The thread, by [`thread::id`](crate::sync::thread::id): on Linux what `ps -L` calls `LWP`.
    pub thread: u32,
    /// A moment of [`clock::now`](crate::sync::clock::now), in ticks, since when nothing can be
    /// freed because of it: it has been inside for at least that long.
    pub since: u64,
    /// What waits to be freed, in bytes.
    pub held_bytes: usize,
}

/// What is told of stalls.
pub type OnStall = Box<dyn Fn(&Stall) + Send + Sync>;

/// What a [`Domain`](super::Domain) is to be like.
pub struct Config {
    /// See there.
    pub barriers: Barriers,
    /// How many bytes of garbage there may be. Near the limit, a thread that has retired something
    /// waits, at the end of its section, until there is room. It may be exceeded by what the
    /// threads retire in the sections they are in when it is reached.
    pub limit_bytes: usize,
    /// How long a thread waits for room before it goes on all the same, in ticks of
    /// [`clock`](crate::sync::clock).
    pub wait_ticks_max: u64,
    /// After how many ticks a reader that keeps garbage from being freed is a stall, and how often
    /// it is told of again.
    pub patience_ticks: u64,
    /// Called with such a reader, by a thread that has retired something, at the end of its
    /// section. It must not use the domain.
    pub on_stall: Option<OnStall>,
    /// How many objects a thread collects at most before it looks what can be freed: 1 to 253. More
    /// is faster, and holds more. A thread that retires slowly looks earlier, see [the
    /// module](super#bounded-garbage).
    pub batch: usize,
}

impl Default for Config {
    /// 64 MiB of garbage; waits for room as long as it takes; patience for 2^31 ticks, which is
    /// about a second.
    fn default() -> Self {
        Self {
            barriers: Barriers::Auto,
            limit_bytes: 64 << 20,
            wait_ticks_max: u64::MAX,
            patience_ticks: 1 << 31,
            on_stall: None,
            batch: BATCH_MAX,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Config")
            .field("barriers", &self.barriers)
            .field("limit_bytes", &self.limit_bytes)
            .field("wait_ticks_max", &self.wait_ticks_max)
            .field("patience_ticks", &self.patience_ticks)
            .field("on_stall", &self.on_stall.is_some())
            .field("batch", &self.batch)
            .finish()
    }
}
