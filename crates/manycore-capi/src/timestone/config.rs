//! Limits of a store, as a program in C sets them.

use std::time::Duration;

use timestone::{Durability, Isolation, Options};

use crate::status::Status;

/// `ts_config_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    size: usize,
    journal_bytes: u64,
    heap_bytes: u64,
    ring_bytes: u64,
    window_ns: u64,
}

const _: () = assert!(size_of::<Config>() == 40);

impl Config {
    /// The options that a configuration says; null: the usual ones.
    ///
    /// # Safety
    ///
    /// Null, or leads to a configuration.
    pub unsafe fn options(config: *const Self) -> Result<Options, Status> {
        let mut options = Options::default();
        // SAFETY: null or a configuration (contract of this function).
        let Some(config) = (unsafe { config.as_ref() }) else { return Ok(options) };
        if config.size != size_of::<Self>() {
            return Err(Status::Invalid);
        }
        let bytes = |bytes| usize::try_from(bytes).map_err(|_| Status::Invalid);
        if config.journal_bytes > 0 {
            options.journal_bytes = config.journal_bytes;
        }
        if config.heap_bytes > 0 {
            options.heap_bytes = bytes(config.heap_bytes)?;
        }
        if config.ring_bytes > 0 {
            options.ring_bytes = bytes(config.ring_bytes)?;
        }
        if config.window_ns > 0 {
            options.window = Duration::from_nanos(config.window_ns);
        }
        if options.journal_bytes > 1 << 50
            || options.heap_bytes > 1 << 46
            || options.ring_bytes > 1 << 30
        {
            return Err(Status::Invalid);
        }
        Ok(options)
    }
}

/// `ts_durability_t`.
pub fn durability(number: i32, window: Duration) -> Result<Durability, Status> {
    match number {
        0 => Ok(Durability::Durable),
        1 => Ok(Durability::Buffered),
        2 => Ok(Durability::Eventual { window }),
        _ => Err(Status::Invalid),
    }
}

/// What `ts_begin` begins: `ts_session_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Transaction(Isolation),
    Durable,
    Latest,
}

impl Kind {
    pub fn of(number: i32) -> Result<Self, Status> {
        match number {
            0 => Ok(Self::Transaction(Isolation::Snapshot)),
            1 => Ok(Self::Transaction(Isolation::Serializable)),
            2 => Ok(Self::Transaction(Isolation::Linearizable)),
            3 => Ok(Self::Durable),
            4 => Ok(Self::Latest),
            _ => Err(Status::Invalid),
        }
    }
}
