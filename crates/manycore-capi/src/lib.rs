//! The library `manycore` for C and C++.
//!
//! ```c
//! #include <manycore/lock.h>
//!
//! static manycore_mutex_t lock = MANYCORE_MUTEX_INIT;
//!
//! manycore_mutex_lock(&lock);
//! manycore_mutex_unlock(&lock);
//! ```
//!
//! ```console
//! $ make install-library PREFIX=$HOME/.local
//! $ export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig
//! $ cc program.c $(pkg-config --cflags --libs manycore) -pthread
//! ```
//!
//! | header | what is in it | in `examples/` | here |
//! |---|---|---|---|
//! | `manycore/rlu.h` | macros `RLU_*`: objects with versions | `list.c`, `transfers.cc` | `rlu` |
//! | `manycore/rcu.h` | grace periods | `rcu.c` | `rcu` |
//! | `manycore/ldu.h` | deferred update of objects that carry their node | `ldu.c` | `ldu` |
//! | `manycore/map.h` | byte strings: locked records, transactions, snapshots | `map.c` | `map` |
//! | `manycore/lock.h` | every lock, by name | `locks.c` | `lock` |
//! | `manycore/timestone.h` | durable transactions | `bank.c` | none: `timestone-capi` |
//! | `manycore/status.h` | what functions return, and the version | | `status` |
//!
//! The headers are the reference; they are written by hand, and a test compares them with the code
//! here. The chapter `docs/src/capi.md` has the binary interface, and the effects of a fork, of a
//! thread's end, and of mistakes.
//!
//! # What is here, and what is not
//!
//! The algorithms are those of [`manycore`]. The added layer is thin: null pointers and misuse are
//! detected where that is cheap, statuses are returned, and objects that a thread leaves open are
//! closed when it ends. Nothing unwinds out of a function, and no exception passes through one:
//! both end the process.
//!
//! A kernel in C does not want this crate, which needs `std` for the ends of threads. It wants the
//! same few lines over [`manycore`] without the feature `std`, with `--cfg manycore_bare`:
//! [`Handle::create_bytes`](manycore::mvrlu::Handle::create_bytes) and its like for RLU,
//! [`Node::try_log`](manycore::ldu::Node::try_log) for LDU,
//! [`PlainLock`](manycore::lock::PlainLock) for locks. Those need an allocator, and ten symbols
//! that the kernel supplies, listed in `crates/manycore/src/sync/bare.rs`.

mod ldu;
mod lock;
mod map;
mod rcu;
mod rlu;
mod stall;
mod status;
#[cfg(feature = "timestone")]
use timestone_capi as _;
