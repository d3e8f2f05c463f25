//! Names of structures: a list of objects that begins at the heap's root.
//!
//! ```text
//!   root    | first entry | 0 | 0 |
//!   entry   | next | structure | length of name u32, of schema u32 | name, 80 bytes | schema, 112 bytes |
//! ```

use zerocopy::IntoBytes;

use super::transaction::sealed::Objects;
use super::transaction::{Stop, Transaction};
use crate::error::{Error, Result};
use crate::heap::{ROOT, ROOT_WORDS};

const NAME_AT: usize = 3;
const NAME_WORDS: usize = 10;
const SCHEMA_AT: usize = NAME_AT + NAME_WORDS;
const SCHEMA_WORDS: usize = 14;
const ENTRY_WORDS: usize = SCHEMA_AT + SCHEMA_WORDS;

/// A type as a schema names it: its name, without its path, and its size.
pub fn type_text<T>() -> String {
    let name = std::any::type_name::<T>();
    let name = name.rsplit("::").next().unwrap_or(name);
    let short: String = name.chars().take(24).collect();
    format!("{short} ({} bytes)", size_of::<T>())
}

/// The object of a structure with this name, which is made of these words if there is none.
pub fn root(
    tx: &mut Transaction<'_, '_>,
    name: &str,
    schema: &str,
    words: &[u64],
) -> Result<u64, Stop> {
    if let Some(entry) = find(tx, name) {
        let found = text(entry, SCHEMA_AT, (entry[2] >> 32) as usize);
        if found != schema {
            let (name, found, wanted) = (name.to_owned(), found, schema.to_owned());
            return Err(Error::Schema { name, found, wanted }.into());
        }
        return Ok(entry[1]);
    }
    if name.len() > NAME_WORDS * 8 || schema.len() > SCHEMA_WORDS * 8 {
        let (bytes, max) = (name.len().max(schema.len()), NAME_WORDS * 8);
        return Err(Error::TooLarge { bytes, max }.into());
    }
    let structure = tx.allocate(words)?;
    let mut entry = [0; ENTRY_WORDS];
    (entry[0], entry[1]) = (tx.object(ROOT, ROOT_WORDS)[0], structure);
    entry[2] = name.len() as u64 | (schema.len() as u64) << 32;
    entry[NAME_AT..].as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    entry[SCHEMA_AT..].as_mut_bytes()[..schema.len()].copy_from_slice(schema.as_bytes());
    let entry = tx.allocate(&entry)?;
    tx.lock(ROOT, ROOT_WORDS)?[0] = entry;
    Ok(structure)
}

fn find<'t>(tx: &'t Transaction<'_, '_>, name: &str) -> Option<&'t [u64]> {
    let mut place = tx.object(ROOT, ROOT_WORDS)[0];
    while place != 0 {
        let entry = tx.object(place, ENTRY_WORDS);
        if text(entry, NAME_AT, entry[2] as u32 as usize) == name {
            return Some(entry);
        }
        place = entry[0];
    }
    None
}

fn text(entry: &[u64], at: usize, length: usize) -> String {
    let bytes = entry[at..].as_bytes();
    String::from_utf8_lossy(&bytes[..length.min(bytes.len())]).into_owned()
}
