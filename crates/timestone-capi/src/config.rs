//! Limits of a store, as a program in C sets them.

use core::ffi::c_void;
use std::time::Duration;

use timestone::{Durability, Isolation, Options};

use manycore_capi_base::status::Status;

/// `ts_config_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    size: usize,
    journal_bytes: u64,
    heap_bytes: u64,
    ring_bytes: u64,
    window_ns: u64,
    /// `ts_operation_t`s.
    pub operations: *const c_void,
    pub operation_count: usize,
}

const _: () = assert!(size_of::<Config>() == 56);

/// Its size in programs that were built before operations existed.
const OLD_BYTES: usize = 40;

impl Config {
    /// A copy; none of null.
    ///
    /// # Safety
    ///
    /// Null, or leads to a configuration.
    pub unsafe fn read(config: *const Self) -> Result<Option<Self>, Status> {
        if config.is_null() {
            return Ok(None);
        }
        // SAFETY: not null, and so a configuration, which begins with its size.
        let size = unsafe { (&raw const (*config).size).read() };
        if ![OLD_BYTES, size_of::<Self>()].contains(&size) {
            return Err(Status::Invalid);
        }
        let mut copy = Self {
            size,
            journal_bytes: 0,
            heap_bytes: 0,
            ring_bytes: 0,
            window_ns: 0,
            operations: core::ptr::null(),
            operation_count: 0,
        };
        // SAFETY: it has `size` bytes (contract of this function), which are at most those of the
        // copy.
        unsafe { config.cast::<u8>().copy_to_nonoverlapping((&raw mut copy).cast(), size) };
        Ok(Some(copy))
    }

    /// The options of a configuration, without operations; the defaults if there is no
    /// configuration.
    pub fn options(config: Option<&Self>) -> Result<Options, Status> {
        let mut options = Options::default();
        let Some(config) = config else { return Ok(options) };
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
