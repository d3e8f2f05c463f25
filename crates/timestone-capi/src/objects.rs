//! Objects of the program's own.

use core::ffi::c_void;

use timestone::Session;
use timestone::untyped::{self, BYTES_MAX};

use super::give;
use super::member::{Query, TsMember, change, read};
use manycore_capi_base::status::Status;

/// The object at an offset; null if there is none.
struct Object(u64);

impl Query for Object {
    type Seen = *const u64;

    fn run(self, session: &impl Session) -> *const u64 {
        untyped::object(session, self.0).map_or(core::ptr::null(), <[u64]>::as_ptr)
    }
}

/// # Safety
///
/// As of `ts_unregister`; null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_deref(me: *mut TsMember, id: u64, out: *mut *const c_void) -> Status {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { read(me, Object(id)) } {
        Err(status) => status,
        Ok(object) if object.is_null() => Status::Invalid,
        // SAFETY: null, or it may be written (contract of this function).
        Ok(object) => unsafe { give(out, object.cast()) },
    }
}

/// # Safety
///
/// As of `ts_deref`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_lock(me: *mut TsMember, id: u64, out: *mut *mut c_void) -> Status {
    if out.is_null() {
        return Status::Null;
    }
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    let locked = unsafe { change(me, |tx| Ok(untyped::lock(tx, id)?.map(<[u64]>::as_mut_ptr))) };
    match locked {
        Err(status) => status,
        Ok(None) => Status::Invalid,
        // SAFETY: `out` is not null, and so it may be written (contract of this function).
        Ok(Some(object)) => unsafe { give(out, object.cast()) },
    }
}

/// # Safety
///
/// As of `ts_unregister`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_lock_const(me: *mut TsMember, id: u64) -> Status {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    there(unsafe { change(me, |tx| untyped::lock_const(tx, id)) }, Status::Invalid)
}

/// # Safety
///
/// As of `ts_unregister`; null, or `size` bytes; null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_alloc(
    me: *mut TsMember,
    data: *const c_void,
    size: usize,
    id: *mut u64,
) -> Status {
    if id.is_null() {
        return Status::Null;
    }
    if size == 0 || size > BYTES_MAX {
        return Status::Invalid;
    }
    let bytes = if data.is_null() {
        &[0; BYTES_MAX][..size]
    } else {
        // SAFETY: not null, and so `size` bytes (contract of this function).
        unsafe { core::slice::from_raw_parts(data.cast::<u8>(), size) }
    };
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { change(me, |tx| untyped::alloc(tx, bytes)) } {
        Err(status) => status,
        // SAFETY: `id` is not null, and so it may be written (contract of this function).
        Ok(place) => unsafe { give(id, place) },
    }
}

/// # Safety
///
/// The errors of `ts_unregister`. No code uses the object in sessions that begin after the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_free(me: *mut TsMember, id: u64) -> Status {
    // SAFETY: `me` is null or a member that this thread uses, and no code uses the object after the
    // commit (contract of this function).
    there(unsafe { change(me, |tx| untyped::free(tx, id)) }, Status::Invalid)
}

/// Success, if it is there.
pub fn there(result: Result<bool, Status>, absent: Status) -> Status {
    match result {
        Ok(true) => Status::Ok,
        Ok(false) => absent,
        Err(status) => status,
    }
}
