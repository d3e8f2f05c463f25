//! The list of engines.

use crate::engine::Open;
use crate::ours;
#[cfg(has_pmemobj)]
use crate::pmemobj;
#[cfg(feature = "engines")]
use crate::{fjall, lmdb, redb, sqlite};

/// All engines of this build, by name. The first one is compared with the others.
pub const ENGINES: &[(&str, Open)] = &[
    ("timestone", ours::open),
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
