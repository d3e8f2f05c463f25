//! The file system, natively: call by call, beside the host's, and with threads.

mod calls;
mod data;
#[cfg(target_os = "linux")]
mod differential;
mod histories;
mod names;
mod stress;
