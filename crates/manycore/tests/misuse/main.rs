//! The misuse matrix: possible misuses of the library without `unsafe`, made on purpose.
//!
//! Each file is a kind of misuse, over all types that it can be done to. A result may be anything
//! that the type's contract allows, a panic included; never is memory touched that is freed, a
//! value dropped twice, or one lost that no contract gives up.
//! [`live`] counts values, so that the last two show; the first is seen by sanitizers and by Miri.
#![cfg(not(any(loom, manycore_bare)))]
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "threads and locks of the standard library, beside what is tested"
)]

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

mod conflicts;
mod deferred;
mod delegated;
mod ends;
mod guards;
mod handles;
mod intervals;
mod live;
mod lying;
mod panics;
mod reentrance;
mod tables;
mod within;

/// How often loops go round. One constant, because Miri is a thousand times slower than a
/// processor.
pub const ROUNDS: u64 = if cfg!(miri) { 4 } else { 200 };

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, whose panics on this thread are on purpose: they print nothing.
pub fn quietly<R>(f: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.try_with(Cell::get).unwrap_or(true) {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    // An assertion that fails there is printed by the thread that learns of it.
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    QUIET.set(false);
    result.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        panic!("{}", text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a panic"))
    })
}

/// From now on this thread's panics print nothing.
pub fn be_quiet() {
    QUIET.set(true);
}
