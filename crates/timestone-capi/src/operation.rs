//! Operations: functions whose calls are stored instead of their writes.

use core::ffi::{c_char, c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use std::borrow::Cow;

use timestone::untyped::{self, BYTES_MAX, ByteMap};
use timestone::{Error, Operations, Registered, Stop, Transaction};

use super::config::durability;
use super::member::{TsMember, change, get};
use super::store::{TsMap, TsStore, are_sizes_of_a_map};
use super::{give, refuse, status, text};
use manycore_capi_base::status::Status;

/// What an operation does.
type Run = unsafe extern "C-unwind" fn(*mut TsMember, *const c_void, usize) -> c_int;

/// `ts_operation_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TsOperation {
    name: *const c_char,
    version: u32,
    reserved: u32,
    run: Option<Run>,
}

const _: () = assert!(size_of::<TsOperation>() == 24);

/// An operation, whose name is the program's or a copy.
struct Known<'a> {
    name: Cow<'a, str>,
    version: u32,
    run: Run,
}

impl<'a> Known<'a> {
    /// # Safety
    ///
    /// Null, or a pointer to an operation whose name is valid as long as this.
    unsafe fn of(operation: *const TsOperation) -> Result<Self, Status> {
        // SAFETY: null, or an operation (contract of this function).
        let TsOperation { name, version, run, .. } =
            *unsafe { operation.as_ref() }.ok_or(Status::Null)?;
        // SAFETY: the name is null or a string, as is said of operations.
        let name: &'a str = unsafe { text(name) }?;
        Ok(Self { name: name.into(), version, run: run.ok_or(Status::Null)? })
    }

    /// With a copy of its name.
    fn into_owned(self) -> Known<'static> {
        Known { name: self.name.into_owned().into(), version: self.version, run: self.run }
    }

    /// Runs it in a transaction; returns the reason why it must not commit, and its own status.
    fn run(
        &self,
        tx: &mut Transaction<'_, '_>,
        store: *const TsStore,
        arguments: &[u8],
    ) -> (Result<(), Stop>, c_int) {
        // The member is gone before the transaction.
        let mut me = TsMember::called(NonNull::from(tx).cast(), store);
        let first = match arguments.is_empty() {
            true => core::ptr::null(),
            false => arguments.as_ptr().cast(),
        };
        // SAFETY: the program has registered the function for this, with these arguments.
        let status = unsafe { (self.run)(&raw mut me, first, arguments.len()) };
        let stop = me.into_stop().or((status != 0).then_some(Stop::Cancel));
        (stop.map_or(Ok(()), Err), status)
    }
}

impl fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} version {}", self.name, self.version)
    }
}

impl Registered for Known<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn replay(&self, tx: &mut Transaction<'_, '_>, arguments: &[u8]) -> Result<(), Stop> {
        // In words, as aligned as a program in C has them.
        let mut words = vec![0_u64; arguments.len().div_ceil(8)];
        // SAFETY: the words have room for this many bytes, and any bytes are numbers.
        let bytes = unsafe {
            core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), arguments.len())
        };
        bytes.copy_from_slice(arguments);
        self.run(tx, core::ptr::null(), bytes).0
    }
}

/// The operations of a store. They exist as long as this does.
pub struct Registry {
    all: *mut [&'static dyn Registered],
    each: *mut [Known<'static>],
}

// SAFETY: both are this one's own, and nothing is changed before its end.
unsafe impl Send for Registry {}
// SAFETY: a shared reference reads only, and nothing is changed before the registry ends.
unsafe impl Sync for Registry {}

impl Registry {
    /// # Safety
    ///
    /// Null, or leads to `count` operations.
    pub unsafe fn of(first: *const TsOperation, count: usize) -> Result<Self, Status> {
        if first.is_null() && count > 0 {
            return Err(Status::Null);
        }
        // SAFETY: `count` operations are there (contract of this function).
        let each = (0..count).map(|at| unsafe { Known::of(first.wrapping_add(at)) });
        let each = each.map(|known| known.map(Known::into_owned));
        let each: Box<[Known<'static>]> = each.collect::<Result<_, _>>()?;
        let each = Box::into_raw(each);
        // SAFETY: it is valid until `drop`, and all values borrowed from it are gone by then.
        let known: &'static [Known<'static>] = unsafe { &*each };
        let all: Box<[&'static dyn Registered]> =
            known.iter().map(|known| known as &dyn Registered).collect();
        Ok(Self { all: Box::into_raw(all), each })
    }

    /// # Safety
    ///
    /// The store that gets them ends before this.
    pub unsafe fn operations(&self) -> Operations {
        // SAFETY: it is valid until `drop`, which comes after the last use (contract of this
        // function).
        unsafe { &*self.all }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // SAFETY: `of` has made boxes of both; their users are gone (contract of `operations`).
        unsafe {
            drop(Box::from_raw(self.all));
            drop(Box::from_raw(self.each));
        }
    }
}

/// # Safety
///
/// As of `ts_unregister`; `operation` is null or an operation, `arguments` is null or leads to
/// `bytes` bytes, and `ticket` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_call(
    me: *mut TsMember,
    operation: *const TsOperation,
    arguments: *const c_void,
    bytes: usize,
    how: c_int,
    ticket: *mut u64,
) -> c_int {
    // SAFETY: `me` is null or a member that this thread uses, and `operation` is null or an
    // operation (contract of this function).
    let (me, known) = match unsafe { (get(me), Known::of(operation)) } {
        (Ok(me), Ok(known)) => (me, known),
        (Err(status), _) | (_, Err(status)) => return status as c_int,
    };
    if arguments.is_null() && bytes > 0 {
        return Status::Null as c_int;
    }
    let arguments: &[u8] = if bytes == 0 {
        &[]
    } else {
        // SAFETY: not null, and so as many bytes (contract of this function).
        unsafe { core::slice::from_raw_parts(arguments.cast(), bytes) }
    };
    let mut answer = 0;
    let called = me.call(|member, store| {
        // SAFETY: the store exists: it is busy while a member is registered.
        let durability = durability(how, unsafe { &*store }.window)?;
        let called = untyped::call(member, &known, arguments, |tx| {
            let (result, status) = known.run(tx, store, arguments);
            answer = status;
            result
        });
        Ok((called, durability))
    });
    match called {
        Err(status) | Ok(Err(status)) => status as c_int,
        Ok(Ok((Err(Error::Cancelled), _))) => answer,
        Ok(Ok((Err(error), _))) => refuse(&error) as c_int,
        Ok(Ok((Ok(committed), durability))) => {
            if !ticket.is_null() {
                // SAFETY: not null, and so it may be written (contract of this function).
                unsafe { ticket.write(committed.stamp()) };
            }
            status(committed.wait_for(durability)) as c_int
        }
    }
}

/// # Safety
///
/// The member of an operation; null or a string; null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_find_root(
    me: *mut TsMember,
    name: *const c_char,
    size: usize,
    id: *mut u64,
) -> Status {
    // SAFETY: `me` is null or the member of an operation, and `name` is null or a string (contract
    // of this function).
    let name = match unsafe { named(me, name, id.is_null()) } {
        Ok(name) => name,
        Err(status) => return status,
    };
    if size == 0 || size > BYTES_MAX {
        return Status::Invalid;
    }
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { change(me, |tx| Ok(untyped::find_root(tx, name, size)?)) } {
        // SAFETY: `id` is not null, and so it may be written (contract of this function).
        Ok(root) => unsafe { give(id, root) },
        Err(status) => status,
    }
}

/// # Safety
///
/// As of `ts_find_root`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_find_map(
    me: *mut TsMember,
    name: *const c_char,
    key_bytes: usize,
    value_bytes: usize,
    out: *mut *const TsMap,
) -> Status {
    // SAFETY: `me` is null or the member of an operation, and `name` is null or a string (contract
    // of this function).
    let name = match unsafe { named(me, name, out.is_null()) } {
        Ok(name) => name,
        Err(status) => return status,
    };
    if !are_sizes_of_a_map(key_bytes, value_bytes) {
        return Status::Invalid;
    }
    let find = |tx: &mut Transaction<'static, 'static>| {
        Ok(ByteMap::find(tx, name, key_bytes, value_bytes)?)
    };
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { change(me, find).and_then(|map| Ok(get(me)?.keep(map))) } {
        // SAFETY: `out` is not null, and so it may be written (contract of this function).
        Ok(map) => unsafe { give(out, map) },
        Err(status) => status,
    }
}

/// The name of what an operation is to find.
///
/// # Safety
///
/// As of `ts_find_root`.
unsafe fn named<'a>(
    me: *mut TsMember,
    name: *const c_char,
    is_out_null: bool,
) -> Result<&'a str, Status> {
    // SAFETY: `me` is null or the member of an operation, and `name` is null or a string (contract
    // of this function).
    let (me, name) = unsafe { (get(me)?, text(name)?) };
    match (me.is_called(), is_out_null) {
        (_, true) => Err(Status::Null),
        (false, _) => Err(Status::NoSession),
        (true, false) => Ok(name),
    }
}

/// # Safety
///
/// As of `ts_unregister`; null, or `size` bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_input(me: *mut TsMember, value: *mut c_void, size: usize) -> Status {
    if value.is_null() && size > 0 {
        return Status::Null;
    }
    let bytes: &mut [u8] = if size == 0 {
        &mut []
    } else {
        // SAFETY: not null, and so as many bytes, which are the program's (contract of this
        // function).
        unsafe { core::slice::from_raw_parts_mut(value.cast(), size) }
    };
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { change(me, |tx| untyped::input(tx, bytes)) } {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}
