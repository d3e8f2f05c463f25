//! Stores are opened, with the operations of the program.

use core::ffi::c_char;

use timestone::{Options, Store};

use super::config::Config;
use super::operation::Registry;
use super::store::TsStore;
use super::{give, refuse, text};
use manycore_capi_base::status::Status;

/// The arguments for opening a store: options, and the operations to which they lead.
///
/// # Safety
///
/// Null, or a pointer to a configuration. The store is closed before the operations are freed.
unsafe fn settings(config: *const Config) -> Result<(Options, Registry), Status> {
    // SAFETY: `config` is null or leads to a configuration (contract of this function).
    let config = unsafe { Config::read(config) }?;
    let mut options = Config::options(config.as_ref())?;
    let (first, count) =
        config.map_or((core::ptr::null(), 0), |config| (config.operations, config.operation_count));
    // SAFETY: a configuration has the number of operations to which `operations` leads (contract of
    // this function).
    let registry = unsafe { Registry::of(first.cast(), count) }?;
    // SAFETY: the store ends before (contract of this function).
    options.operations = unsafe { registry.operations() };
    Ok((options, registry))
}

/// # Safety
///
/// The pointer may be written.
unsafe fn give_store(
    opened: timestone::Result<Store>,
    (options, registry): (Options, Registry),
    out: *mut *mut TsStore,
) -> Status {
    match opened {
        Err(error) => refuse(&error),
        Ok(store) => {
            let store = TsStore::new(store, options.window, Box::new(registry));
            // SAFETY: `out` may be written (contract of this function).
            unsafe { give(out, Box::into_raw(Box::new(store))) }
        }
    }
}

/// # Safety
///
/// Null or a string; null or a configuration; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_open(
    directory: *const c_char,
    config: *const Config,
    out: *mut *mut TsStore,
) -> Status {
    // SAFETY: `directory` is null or a string, and `config` is null or leads to a configuration
    // (contract of this function).
    let (directory, settings) = match unsafe { (text(directory), settings(config)) } {
        (Ok(directory), Ok(settings)) => (directory, settings),
        (Err(status), _) | (_, Err(status)) => return status,
    };
    if out.is_null() {
        return Status::Null;
    }
    // SAFETY: `out` is not null, and so it may be written (contract of this function).
    unsafe { give_store(Store::open_with(directory, settings.0), settings, out) }
}

/// # Safety
///
/// Null or a configuration; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_open_memory(config: *const Config, out: *mut *mut TsStore) -> Status {
    // SAFETY: null or a configuration (contract of this function).
    let settings = match unsafe { settings(config) } {
        Ok(settings) => settings,
        Err(status) => return status,
    };
    if out.is_null() {
        return Status::Null;
    }
    // SAFETY: `out` is not null, and so it may be written (contract of this function).
    unsafe { give_store(Store::in_memory_with(settings.0), settings, out) }
}
