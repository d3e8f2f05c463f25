//! Ctrl-C ends a soak in the same way as a failure: everything that the soak has started and
//! created is removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::Result;

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second signal ends the process at once, as it would have without this handler.
        flag::register_conditional_default(signal, asked.clone())
            .and_then(|_| flag::register(signal, asked.clone()))
            .expect("signals that may be caught");
    }
    asked
});

/// Fails once the test has been asked to end.
pub fn check() -> Result<()> {
    // Relaxed: the flag carries nothing but itself.
    super::ensure(!ASKED.load(Ordering::Relaxed), || "interrupted".to_owned())
}
