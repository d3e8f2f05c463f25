//! Stores: closed, copied, waited for.

use core::ffi::c_char;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use timestone::Store;
use timestone::untyped::{self, BYTES_MAX, ByteMap};

use super::{give, refuse, status, text};
use manycore_capi_base::status::Status;

/// `ts_store_t`.
pub struct TsStore {
    pub store: Store,
    pub window: Duration,
    /// How many threads are registered.
    pub members: AtomicUsize,
    /// Maps that the program has opened. They exist as long as the store.
    maps: Mutex<BTreeMap<String, Box<TsMap>>>,
    /// The operations of the store. They are freed after the store.
    _registry: Box<dyn Send + Sync>,
}

impl TsStore {
    /// A store that has lent things of `registry`.
    pub fn new(store: Store, window: Duration, registry: Box<dyn Send + Sync>) -> Self {
        let (members, maps) = (AtomicUsize::new(0), Mutex::default());
        Self { store, window, members, maps, _registry: registry }
    }
}

/// `ts_map_t`.
pub struct TsMap {
    /// The store that has it.
    pub store: *const TsStore,
    pub map: ByteMap,
}

/// # Safety
///
/// Null, or a store that is open.
unsafe fn get<'a>(store: *const TsStore) -> Result<&'a TsStore, Status> {
    // SAFETY: null, or a store (contract of this function).
    unsafe { store.as_ref() }.ok_or(Status::Null)
}

/// # Safety
///
/// Null, or an open store that no other thread uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_close(store: *mut TsStore) -> Status {
    // SAFETY: null, or a store (contract of this function).
    let found = match unsafe { get(store) } {
        Ok(found) => found,
        Err(status) => return status,
    };
    // Acquire: partner of the Release in `ts_unregister`, for those threads' accesses.
    if found.members.load(Ordering::Acquire) > 0 {
        return Status::Busy;
    }
    // SAFETY: `ts_open` has made a box of it, and no code uses it any more (contract of this
    // function); no member has it.
    let store = unsafe { Box::from_raw(store) };
    status(store.store.close())
}

/// # Safety
///
/// Null, or a store that is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_sync(store: *mut TsStore) -> Status {
    // SAFETY: `store` is null or open (contract of this function).
    unsafe { get(store) }.map_or_else(|status| status, |found| status(found.store.sync()))
}

/// # Safety
///
/// Null, or a store that is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_checkpoint(store: *mut TsStore) -> Status {
    // SAFETY: `store` is null or open (contract of this function).
    unsafe { get(store) }.map_or_else(|status| status, |found| status(found.store.checkpoint()))
}

/// # Safety
///
/// Null, or a store that is open; null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_backup(store: *mut TsStore, directory: *const c_char) -> Status {
    // SAFETY: `store` is null or open, and `directory` is null or a string (contract of this
    // function).
    match unsafe { (get(store), text(directory)) } {
        (Ok(found), Ok(directory)) => status(found.store.backup(directory)),
        (Err(status), _) | (_, Err(status)) => status,
    }
}

/// # Safety
///
/// Null, or a store that is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_wait(store: *mut TsStore, ticket: u64) -> Status {
    // SAFETY: `store` is null or open (contract of this function).
    let found = match unsafe { get(store) } {
        Ok(found) => found,
        Err(status) => return status,
    };
    // No commit is that late: the store would wait for its clock.
    if ticket > found.store.now() {
        return Status::Invalid;
    }
    status(found.store.wait(ticket))
}

/// # Safety
///
/// Null, or a store that is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_durable(store: *const TsStore) -> u64 {
    // SAFETY: `store` is null or open (contract of this function).
    unsafe { get(store) }.map_or(0, |found| found.store.durable())
}

/// # Safety
///
/// Null, or a store that is open; null or a string; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_root(
    store: *mut TsStore,
    name: *const c_char,
    size: usize,
    id: *mut u64,
) -> Status {
    // SAFETY: `store` is null or open, and `name` is null or a string (contract of this function).
    let (found, name) = match unsafe { (get(store), text(name)) } {
        (Ok(found), Ok(name)) => (found, name),
        (Err(status), _) | (_, Err(status)) => return status,
    };
    if id.is_null() {
        return Status::Null;
    }
    if size == 0 || size > BYTES_MAX {
        return Status::Invalid;
    }
    match untyped::root(&found.store, name, size) {
        // SAFETY: `id` is not null, and so it may be written (contract of this function).
        Ok(root) => unsafe { give(id, root) },
        Err(error) => refuse(&error),
    }
}

/// # Safety
///
/// Null, or a store that is open; null or a string; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_map(
    store: *mut TsStore,
    name: *const c_char,
    key_bytes: usize,
    value_bytes: usize,
    out: *mut *const TsMap,
) -> Status {
    // SAFETY: `store` is null or open, and `name` is null or a string (contract of this function).
    let (found, name) = match unsafe { (get(store), text(name)) } {
        (Ok(found), Ok(name)) => (found, name),
        (Err(status), _) | (_, Err(status)) => return status,
    };
    if out.is_null() {
        return Status::Null;
    }
    if !are_sizes_of_a_map(key_bytes, value_bytes) {
        return Status::Invalid;
    }
    let mut maps = found.maps.lock().unwrap_or_else(PoisonError::into_inner);
    let map = match maps.get(name) {
        Some(known) if known.map.sizes() == (key_bytes, value_bytes) => &raw const **known,
        _ => match ByteMap::open(&found.store, name, key_bytes, value_bytes) {
            Ok(map) => {
                let known = maps.entry(name.to_owned());
                &raw const **known.or_insert_with(|| Box::new(TsMap { store, map }))
            }
            Err(error) => return refuse(&error),
        },
    };
    // SAFETY: `out` is not null, and so it may be written (contract of this function).
    unsafe { give(out, map) }
}

/// Whether a map may have keys and values of these lengths, in bytes.
pub fn are_sizes_of_a_map(key_bytes: usize, value_bytes: usize) -> bool {
    // A leaf is an object: the word that links it into its list, the key and the value, each padded
    // to whole words.
    let room = BYTES_MAX - 8;
    (1..=room).contains(&key_bytes) && value_bytes <= room - key_bytes.next_multiple_of(8)
}
