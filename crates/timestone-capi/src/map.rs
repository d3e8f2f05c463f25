//! Maps of keys and values of any bytes.

use core::ffi::c_void;

use timestone::Session;
use timestone::untyped::ByteMap;

use super::member::{Query, TsMember, change, get, read};
use super::objects::there;
use super::store::TsMap;
use manycore_capi_base::status::Status;

/// A key of a map.
struct Entry<'a> {
    map: &'a ByteMap,
    key: &'a [u8],
}

/// # Safety
///
/// As of `ts_unregister`; null or a map of a store that is open.
unsafe fn of_same_store<'a>(me: *mut TsMember, map: *const TsMap) -> Result<&'a ByteMap, Status> {
    // SAFETY: `me` is null or a member that this thread uses, and `map` is null or of an open store
    // (contract of this function).
    let (me, map) = unsafe { (get(me)?, map.as_ref().ok_or(Status::Null)?) };
    if me.is_of(map.store) { Ok(&map.map) } else { Err(Status::Invalid) }
}

/// # Safety
///
/// As of `ts_unregister`; null or a map of a store that is open; null or a key of it.
unsafe fn entry<'a>(
    me: *mut TsMember,
    map: *const TsMap,
    key: *const c_void,
) -> Result<Entry<'a>, Status> {
    // SAFETY: `me` is null or a member that this thread uses, and `map` is null or of an open store
    // (contract of this function).
    let map = unsafe { of_same_store(me, map) }?;
    if key.is_null() {
        return Err(Status::Null);
    }
    // SAFETY: not null, and so a key of the map (contract of this function).
    let key = unsafe { core::slice::from_raw_parts(key.cast::<u8>(), map.sizes().0) };
    Ok(Entry { map, key })
}

/// Copies the value of a key, if the key has one.
struct Copied<'a>(Entry<'a>, *mut c_void);

impl Query for Copied<'_> {
    type Seen = bool;

    fn run(self, session: &impl Session) -> bool {
        let Self(Entry { map, key }, into) = self;
        let Some(value) = map.get(session, key) else { return false };
        if !into.is_null() {
            // SAFETY: not null, and so it has room for a value (contract of `ts_map_get`), and is
            // the program's own memory.
            unsafe { into.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
        }
        true
    }
}

/// # Safety
///
/// As of `ts_unregister`; null or a map of the same store; null or a key; null, or room for a
/// value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_map_get(
    me: *mut TsMember,
    map: *const TsMap,
    key: *const c_void,
    value: *mut c_void,
) -> Status {
    // SAFETY: `me` is null or a member that this thread uses, `map` is null or of an open store,
    // and `key` is null or a key of it (contract of this function).
    match unsafe { entry(me, map, key) } {
        Err(status) => status,
        // SAFETY: `me` is a member that this thread uses, and `value` is null or has room for a
        // value (contract of this function).
        Ok(entry) => there(unsafe { read(me, Copied(entry, value)) }, Status::NotFound),
    }
}

/// # Safety
///
/// As of `ts_map_get`; null, or a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_map_put(
    me: *mut TsMember,
    map: *const TsMap,
    key: *const c_void,
    value: *const c_void,
) -> Status {
    // SAFETY: `me` is null or a member that this thread uses, `map` is null or of an open store,
    // and `key` is null or a key of it (contract of this function).
    let Entry { map, key } = match unsafe { entry(me, map, key) } {
        Ok(entry) => entry,
        Err(status) => return status,
    };
    let bytes = map.sizes().1;
    if value.is_null() && bytes > 0 {
        return Status::Null;
    }
    let value = if bytes == 0 {
        &[]
    } else {
        // SAFETY: not null, and so a value (contract of this function).
        unsafe { core::slice::from_raw_parts(value.cast::<u8>(), bytes) }
    };
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    there(unsafe { change(me, |tx| map.put(tx, key, value)) }.map(|()| true), Status::Ok)
}

/// # Safety
///
/// As of `ts_map_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_map_remove(
    me: *mut TsMember,
    map: *const TsMap,
    key: *const c_void,
) -> Status {
    // SAFETY: `me` is null or a member that this thread uses, `map` is null or of an open store,
    // and `key` is null or a key of it (contract of this function).
    match unsafe { entry(me, map, key) } {
        Err(status) => status,
        Ok(Entry { map, key }) => {
            // SAFETY: `me` is null or a member that this thread uses (contract of this function).
            there(unsafe { change(me, |tx| map.remove(tx, key)) }, Status::NotFound)
        }
    }
}

/// # Safety
///
/// As of `ts_unregister`; null or a map of the same store; null or a function that may be called
/// with the context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_map_each(
    me: *mut TsMember,
    map: *const TsMap,
    visit: Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_void, *const c_void)>,
    context: *mut c_void,
) -> Status {
    let Some(visit) = visit else { return Status::Null };
    // SAFETY: `me` is null or a member that this thread uses, and `map` is null or of an open store
    // (contract of this function).
    let map = match unsafe { of_same_store(me, map) } {
        Ok(map) => map,
        Err(status) => return status,
    };
    // A copy first: the program may use the session when it is called.
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { read(me, All(map)) } {
        Err(status) => status,
        Ok(all) => {
            for (key, value) in &all {
                // SAFETY: the program has given the function and the context for this (contract of
                // this function).
                unsafe { visit(context, key.as_ptr().cast(), value.as_ptr().cast()) };
            }
            Status::Ok
        }
    }
}

/// All keys and values.
struct All<'a>(&'a ByteMap);

impl Query for All<'_> {
    type Seen = Vec<(Box<[u8]>, Box<[u8]>)>;

    fn run(self, session: &impl Session) -> Self::Seen {
        let mut all = Vec::new();
        self.0.for_each(session, |key, value| all.push((key.into(), value.into())));
        all
    }
}
