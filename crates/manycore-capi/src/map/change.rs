//! Locks records, and then asks the program, once, for their new values.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

use super::threads::Map;
use super::{Bytes, bytes, with};
use manycore_capi_base::status::Status;

/// The program's function. It gets the index of a key and the key's value, and returns the record's
/// new state.
type Decide = Option<
    unsafe extern "C-unwind" fn(*mut c_void, usize, *const c_void, usize, *mut Bytes) -> c_int,
>;

/// What it may say.
enum Decision<'a> {
    Keep,
    Remove,
    Put(&'a [u8]),
}

/// # Safety
///
/// Calls the program's function with its context, for a record of this call. The new value stays
/// valid until the function is called again.
unsafe fn ask<'a>(
    decide: Decide,
    context: *mut c_void,
    index: usize,
    value: Option<&[u8]>,
) -> Result<Decision<'a>, Status> {
    let decide = decide.ok_or(Status::Null)?;
    let mut new = Bytes { data: null(), size: 0 };
    let (data, size) = value.map_or((null(), 0), |value| (value.as_ptr(), value.len()));
    // SAFETY: the program passes `decide` with its context (contract of this function); the value's
    // bytes outlive the call.
    let decision = unsafe { decide(context, index, data.cast(), size, &raw mut new) };
    match decision {
        0 => Ok(Decision::Keep),
        1 => Ok(Decision::Remove),
        // SAFETY: the program has written a value that stays valid until its next call (contract of
        // this function).
        2 => Ok(Decision::Put(unsafe { bytes(new.data, new.size) }?)),
        _ => Err(Status::Invalid),
    }
}

/// # Safety
///
/// As of [`with`], and of [`bytes`]; `decide` may be called with its context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_change(
    map: *const Map,
    key: *const c_void,
    key_size: usize,
    decide: Decide,
    context: *mut c_void,
) -> Status {
    if decide.is_none() {
        return Status::Null;
    }
    // SAFETY: the map is null or is not destroyed meanwhile, the key has this many bytes, and
    // `decide` may be called with `context` (contract of this function).
    unsafe {
        with(map, |me| {
            let mut locked = me.lock_for(bytes(key, key_size)?)?;
            match ask(decide, context, 0, locked.value())? {
                Decision::Keep => return Ok(()),
                Decision::Remove => locked.remove(),
                Decision::Put(value) => locked.put(value)?,
            }
            locked.commit();
            Ok(())
        })
    }
}

/// # Safety
///
/// As of [`with`], and of [`bytes`], for this many keys, or null; `decide` may be called with its
/// context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_map_change_all(
    map: *const Map,
    keys: *const Bytes,
    count: usize,
    decide: Decide,
    context: *mut c_void,
) -> Status {
    if decide.is_none() || (keys.is_null() && count > 0) {
        return Status::Null;
    }
    let keys = if count == 0 { null_mut() } else { keys.cast_mut() };
    // SAFETY: the map is null or is not destroyed meanwhile, `keys` leads to `count` keys, and
    // `decide` may be called with `context` (contract of this function).
    unsafe {
        with(map, |me| {
            let all = (0..count).map(|index| {
                let Bytes { data, size } = keys.add(index).read();
                bytes(data, size)
            });
            let all = all.collect::<Result<Vec<_>, _>>()?;
            let mut locked = me.lock_all(all)?;
            for index in 0..count {
                match ask(decide, context, index, locked.value(index))? {
                    Decision::Keep => {}
                    Decision::Remove => locked.remove(index),
                    Decision::Put(value) => locked.put(index, value)?,
                }
            }
            locked.commit();
            Ok(())
        })
    }
}
