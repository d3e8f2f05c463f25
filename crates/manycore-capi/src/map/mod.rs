//! `manycore/map.h`: a map of byte strings, over [`manycore::collections::bytes`].

mod change;
mod threads;

use core::ffi::{c_int, c_void};

use manycore::clock::Ordo;
use manycore::collections::bytes::{ByteMap, From, Handle};
use manycore::mvrlu;

use manycore_capi_base::status::Status;
use threads::Map;

/// `manycore_map_config_t`. Zero is the usual value of each member.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    size: usize,
    records: usize,
    log_bytes: usize,
}

/// `manycore_map_bytes_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Bytes {
    data: *const c_void,
    size: usize,
}

const _: () = assert!(size_of::<Config>() == 24 && size_of::<Bytes>() == 16);

/// The program's function for a record. It returns whether it may be called again.
type Visit = Option<
    unsafe extern "C-unwind" fn(*mut c_void, *const c_void, usize, *const c_void, usize) -> c_int,
>;

/// # Safety
///
/// This many bytes that do not change, or null.
unsafe fn bytes<'a>(data: *const c_void, size: usize) -> Result<&'a [u8], Status> {
    if size == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Status::Null);
    }
    if size > isize::MAX as usize {
        return Err(Status::Invalid);
    }
    // SAFETY: `data` is not null, and leads to `size` bytes that do not change (contract of this
    // function); they are no more than `isize::MAX`.
    Ok(unsafe { core::slice::from_raw_parts(data.cast(), size) })
}

/// # Safety
///
/// Calls the program's function with its context, for a record of this call.
unsafe fn call(visit: Visit, context: *mut c_void, key: &[u8], value: &[u8]) -> bool {
    // SAFETY: the program passes `visit` with its context (contract of this function); the two
    // slices outlive the call.
    visit.is_some_and(|visit| unsafe {
        visit(context, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len()) != 0
    })
}

/// # Safety
///
/// Null, or a map that is not destroyed meanwhile.
#[inline]
unsafe fn with(
    map: *const Map,
    f: impl FnOnce(&mut Handle<'static>) -> Result<(), Status>,
) -> Status {
    // SAFETY: `map` is null or leads to a map that is not destroyed meanwhile (contract of this
    // function).
    let Some(map) = (unsafe { map.as_ref() }) else { return Status::Null };
    map.with(f).err().unwrap_or(Status::Ok)
}

/// See `manycore/map.h`, as for all of these.
///
/// # Safety
///
/// Null, or a configuration; null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_create(config: *const Config, out: *mut *mut Map) -> Status {
    if out.is_null() {
        return Status::Null;
    }
    const USUAL: Config = Config { size: size_of::<Config>(), records: 0, log_bytes: 0 };
    // SAFETY: `config` is null or leads to a configuration (contract of this function).
    let asked = unsafe { config.as_ref() }.unwrap_or(&USUAL);
    // More than there is memory for ends the process.
    if asked.size != size_of::<Config>() || asked.records > 1 << 40 {
        return Status::Invalid;
    }
    let log_bytes = if asked.log_bytes == 0 { 64 << 20 } else { asked.log_bytes };
    let config = mvrlu::Config::default().with_log_bytes(log_bytes);
    let map = Map::new(ByteMap::new(Ordo::default(), config, asked.records));
    // SAFETY: `out` is not null, and so may be written (contract of this function).
    unsafe { out.write(Box::into_raw(Box::new(map))) };
    Status::Ok
}

/// # Safety
///
/// Null, or a map that no other thread uses now; and none uses it later if this succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_destroy(map: *mut Map) -> Status {
    if map.is_null() {
        return Status::Null;
    }
    // SAFETY: from `manycore_map_create`, and used by no other thread (contract of this function).
    match unsafe { Box::from_raw(map).destroy() } {
        Ok(()) => Status::Ok,
        Err(map) => {
            // It stays where it is.
            _ = Box::into_raw(map);
            Status::Busy
        }
    }
}

/// # Safety
///
/// As of [`with`], and of [`bytes`]; `visit` may be called with its context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_get(
    map: *const Map,
    key: *const c_void,
    key_size: usize,
    visit: Visit,
    context: *mut c_void,
) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile, the key has this many bytes, and
    // `visit` may be called with `context` (contract of this function).
    unsafe {
        with(map, |me| {
            let key = bytes(key, key_size)?;
            let found = me.get(key, |value| _ = call(visit, context, key, value));
            found.ok_or(Status::NotFound)
        })
    }
}

/// # Safety
///
/// As of [`with`], and of [`bytes`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_set(
    map: *const Map,
    key: *const c_void,
    key_size: usize,
    value: *const c_void,
    value_size: usize,
) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile, and key and value have this many bytes
    // (contract of this function).
    unsafe {
        with(map, |me| {
            me.set(bytes(key, key_size)?, bytes(value, value_size)?)?;
            Ok(())
        })
    }
}

/// # Safety
///
/// As of [`with`], and of [`bytes`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_remove(
    map: *const Map,
    key: *const c_void,
    key_size: usize,
) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile, and the key has this many bytes
    // (contract of this function).
    unsafe {
        with(
            map,
            |me| {
                if me.remove(bytes(key, key_size)?)? { Ok(()) } else { Err(Status::NotFound) }
            },
        )
    }
}

/// # Safety
///
/// As of [`with`]; `visit` may be called with its context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_for_each(
    map: *const Map,
    visit: Visit,
    context: *mut c_void,
) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile, and `visit` may be called with
    // `context` (contract of this function).
    unsafe { manycore_map_for_each_of(map, 0, 1, visit, context) }
}

/// # Safety
///
/// As of [`with`]; `visit` may be called with its context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_for_each_of(
    map: *const Map,
    part: usize,
    parts: usize,
    visit: Visit,
    context: *mut c_void,
) -> Status {
    if visit.is_none() {
        return Status::Null;
    }
    if part >= parts {
        return Status::Invalid;
    }
    // SAFETY: the map is null or is not destroyed meanwhile, and `visit` may be called with
    // `context` (contract of this function).
    unsafe {
        with(map, |me| {
            me.for_each_of(part, parts, |key, value| call(visit, context, key, value));
            Ok(())
        })
    }
}

/// # Safety
///
/// As of [`with`], and of [`bytes`]; `visit` may be called with its context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_next(
    map: *const Map,
    from: c_int,
    key: *const c_void,
    key_size: usize,
    visit: Visit,
    context: *mut c_void,
) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile, the key has this many bytes, and
    // `visit` may be called with `context` (contract of this function).
    unsafe {
        with(map, |me| {
            let from = match from {
                0 => From::First,
                1 => From::At(bytes(key, key_size)?),
                2 => From::After(bytes(key, key_size)?),
                _ => return Err(Status::Invalid),
            };
            let found = me.next(from, |key, value| _ = call(visit, context, key, value));
            found.ok_or(Status::NotFound)
        })
    }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_begin(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.begin()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_try_begin(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.try_begin()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_commit(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.commit()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_abort(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.abort()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_clear(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.clear()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_keep_others_out(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.keep_others_out()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_let_others_in(map: *const Map) -> Status {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { with(map, |me| Ok(me.let_others_in()?)) }
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_count(map: *const Map) -> u64 {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { map.as_ref() }.map_or(0, |map| count(map).0)
}

/// # Safety
///
/// As of [`with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_bytes(map: *const Map) -> u64 {
    // SAFETY: the map is null or is not destroyed meanwhile (contract of this function).
    unsafe { map.as_ref() }.map_or(0, |map| count(map).1)
}

/// The numbers of records and of bytes as the calling thread sees them: within its transaction,
/// those of the transaction.
fn count(map: &Map) -> (u64, u64) {
    let of_all = || (map.map().len(), map.map().bytes());
    let (records, bytes) = map.with(|me| Ok((me.len(), me.bytes()))).unwrap_or_else(|_| of_all());
    (records as u64, bytes as u64)
}
