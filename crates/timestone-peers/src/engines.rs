//! The list of engines.

use crate::engine::Open;
#[cfg(has_pmemobj)]
use crate::pmemobj;
#[cfg(feature = "engines")]
use crate::{fjall, lmdb, redb, sqlite};
use crate::{memory, ours};

/// The engine that keeps nothing. It is compared only where the user names it.
pub const VOLATILE: &str = "memory";

/// All engines of this build, by name. The first one is compared with the others.
pub const ENGINES: &[(&str, Open)] = &[
    ("timestone", ours::open),
    (VOLATILE, memory::open),
    #[cfg(feature = "engines")]
    ("redb", redb::open),
    #[cfg(feature = "engines")]
    ("lmdb", lmdb::open),
    #[cfg(feature = "engines")]
    ("sqlite", sqlite::open),
    #[cfg(feature = "engines")]
    ("fjall", fjall::open),
    #[cfg(has_pmemobj)]
    ("pmemobj", pmemobj::open),
];
