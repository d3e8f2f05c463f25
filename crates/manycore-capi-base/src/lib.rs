//! What the libraries for C have in common: statuses, and the numbers of threads.
//!
//! It defines no function of C, so that each library has only its own.
//!
//! ```
//! use manycore_capi_base::status::Status;
//!
//! assert_eq!(Status::text(Status::Deadlock as i32), c"the calling thread would wait for itself");
//! ```

pub mod process;
pub mod status;
