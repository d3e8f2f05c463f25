//! The list of engines.

use crate::engine::Open;
use crate::{fjall, lmdb, ours, redb, sqlite};

/// All engines, by name. The first is the one that is compared with the others.
pub const ENGINES: &[(&str, Open)] = &[
    ("timestone", ours::open),
    ("redb", redb::open),
    ("lmdb", lmdb::open),
    ("sqlite", sqlite::open),
    ("fjall", fjall::open),
];
