//! libpmemobj, of PMDK, by Debian's package: transactions with an undo log in a mapping.
//!
//! On a disk it calls msync. With `PMEM_IS_PMEM_FORCE=1` in the environment it takes the mapping
//! for persistent memory, and calls nothing; it reads that when the program starts.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::engine::{Engine, Failure, Promise, Worker};

/// A pool that is open.
#[repr(C)]
struct Pool {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn numbers_create(path: *const c_char) -> *mut Pool;
    fn numbers_close(pool: *mut Pool);
    fn numbers_error() -> *const c_char;
    fn numbers_get(pool: *mut Pool, key: u64, value: *mut u64) -> c_int;
    fn numbers_put(pool: *mut Pool, keys: *const u64, count: usize, value: u64) -> c_int;
}

const FORCE: &str = "PMEM_IS_PMEM_FORCE";

struct Pmemobj(*mut Pool);

// SAFETY: any thread may use a pool; a transaction is one of its thread, under the table's lock.
unsafe impl Send for Pmemobj {}
// SAFETY: the library's pools may be used by several threads at once; a transaction is under the
// table's lock.
unsafe impl Sync for Pmemobj {}

/// What the library says of the last error of this thread.
fn failure(doing: &str) -> Failure {
    // SAFETY: the text is there until the thread's next call.
    let text = unsafe { CStr::from_ptr(numbers_error()) };
    format!("libpmemobj cannot {doing}: {}", text.to_string_lossy()).into()
}

pub fn open(directory: &Path, promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    let is_forced = std::env::var_os(FORCE).is_some_and(|value| value == "1");
    match promise {
        Promise::Eventual if !is_forced => Err(format!(
            "pmemobj is always durable unless the program is started with {FORCE}=1: start it so, \
             or leave pmemobj out by --against"
        )
        .into()),
        Promise::Durable if is_forced => {
            Err(format!("pmemobj is not durable on a disk with {FORCE}=1: start without").into())
        }
        _ => create(directory),
    }
}

fn create(directory: &Path) -> Result<Box<dyn Engine>, Failure> {
    let path = CString::new(directory.join("numbers").as_os_str().as_bytes())?;
    // SAFETY: `path` is a C string that outlives the call.
    let pool = unsafe { numbers_create(path.as_ptr()) };
    if pool.is_null() {
        return Err(failure("create a pool"));
    }
    Ok(Box::new(Pmemobj(pool)))
}

impl Drop for Pmemobj {
    fn drop(&mut self) {
        // SAFETY: open, and no worker has it any more: they borrow this.
        unsafe { numbers_close(self.0) };
    }
}

impl Engine for Pmemobj {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(PmemobjWorker(self)))
    }
}

struct PmemobjWorker<'a>(&'a Pmemobj);

impl Worker for PmemobjWorker<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        let mut value = 0;
        // SAFETY: the pool is open: this borrows it.
        match unsafe { numbers_get(self.0.0, key, &raw mut value) } {
            0 => Ok(None),
            1 => Ok(Some(value)),
            _ => Err(failure("read a number")),
        }
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        // SAFETY: the pool is open: this borrows it; `keys.len()` keys are there.
        match unsafe { numbers_put(self.0.0, keys.as_ptr(), keys.len(), value) } {
            0 => Ok(()),
            _ => Err(failure("commit")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn numbers_open(path: *const c_char) -> *mut Pool;
    }

    #[test]
    fn what_threads_have_put_is_there_when_the_pool_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let engine = create(directory.path()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let engine = &engine;
                scope.spawn(move || {
                    let mut worker = engine.worker().unwrap();
                    for key in 0..40 {
                        worker.put(&[key, 1000 + 40 * thread + key], thread).unwrap();
                    }
                });
            }
        });
        drop(engine);
        let path = CString::new(directory.path().join("numbers").as_os_str().as_bytes()).unwrap();
        // SAFETY: `path` is a C string that outlives the call.
        let pool = Pmemobj(unsafe { numbers_open(path.as_ptr()) });
        assert!(!pool.0.is_null());
        let mut worker = PmemobjWorker(&pool);
        for key in 0..40 {
            assert!(worker.get(key).unwrap().unwrap() < 3);
            for thread in 0..3 {
                assert_eq!(worker.get(1000 + 40 * thread + key).unwrap(), Some(thread));
            }
        }
        assert_eq!(worker.get(999).unwrap(), None);
    }

    #[test]
    fn a_promise_that_it_would_not_keep_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        // The tests run without the variable.
        let refused = open(directory.path(), Promise::Eventual).err().unwrap().to_string();
        assert!(refused.contains("PMEM_IS_PMEM_FORCE=1: start it so"), "{refused}");
    }
}
