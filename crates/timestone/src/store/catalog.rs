//! Names of structures: a list of objects that begins at the heap's root.
//!
//! ```text
//!   root    | first entry | 0 | 0 |
//!   entry   | next | structure | length of name u32, of schema u32 | name, 80 bytes
//!           | schema, 112 bytes |
//! ```

use zerocopy::IntoBytes;

use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use crate::error::{Error, Result};
use crate::heap::{ROOT, ROOT_WORDS};

const NAME_AT: usize = 3;
const NAME_WORDS: usize = 10;
const SCHEMA_AT: usize = NAME_AT + NAME_WORDS;
const SCHEMA_WORDS: usize = 14;
const ENTRY_WORDS: usize = SCHEMA_AT + SCHEMA_WORDS;

/// The name of a type of bytes in a schema: that of Rust's arrays.
pub fn bytes_text(bytes: usize) -> String {
    format!("[u8; {bytes}] ({bytes} bytes)")
}

/// The name of a type in a schema: without its path, and with its size.
pub fn type_text<T>() -> String {
    let name = std::any::type_name::<T>();
    let name = name.rsplit("::").next().unwrap_or(name);
    let short: String = name.chars().take(24).collect();
    format!("{short} ({} bytes)", size_of::<T>())
}

/// An entry of the catalog.
pub struct Known<'s> {
    pub words: &'s [u64],
    pub name: String,
    pub schema: String,
    /// The structure's object.
    pub root: u64,
}

impl Known<'_> {
    /// Its words, with another next entry and another object.
    pub fn moved(&self, next: u64, root: u64) -> Vec<u64> {
        let mut words = self.words[..ENTRY_WORDS].to_vec();
        (words[0], words[1]) = (next, root);
        words
    }
}

/// All entries, the first one first.
pub fn all(session: &impl Session) -> Vec<Known<'_>> {
    let (mut found, mut place) = (Vec::new(), session.object(ROOT, ROOT_WORDS)[0]);
    while place != 0 {
        let words = session.object(place, ENTRY_WORDS);
        let name = text(words, NAME_AT, words[2] as u32 as usize);
        let schema = text(words, SCHEMA_AT, (words[2] >> 32) as usize);
        found.push(Known { words, name, schema, root: words[1] });
        place = words[0];
    }
    found
}

/// The bytes of the types that a schema names.
pub fn sizes(schema: &str) -> Vec<usize> {
    let parts = schema.split(" bytes)");
    parts.filter_map(|part| part.rsplit_once('(')?.1.parse().ok()).collect()
}

/// The object of a structure with this name. If it does not exist, it is created with these words.
pub fn root(
    tx: &mut Transaction<'_, '_>,
    name: &str,
    schema: &str,
    words: &[u64],
) -> Result<u64, Stop> {
    if let Some(entry) = find(tx, name) {
        return Ok(checked(entry, name, schema)?);
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
    tx.lock_words(ROOT, ROOT_WORDS)?[0] = entry;
    Ok(structure)
}

/// The object of a structure that exists, with this name and schema.
pub fn find_root(session: &impl Session, name: &str, schema: &str) -> Result<u64> {
    match find(session, name) {
        Some(entry) => checked(entry, name, schema),
        None => {
            let (name, found) = (name.to_owned(), "nothing".to_owned());
            Err(Error::Schema { name, found, wanted: schema.to_owned() })
        }
    }
}

/// The structure of an entry, if it is of the caller's expected type.
fn checked(entry: &[u64], name: &str, schema: &str) -> Result<u64> {
    let found = text(entry, SCHEMA_AT, (entry[2] >> 32) as usize);
    if found == schema {
        return Ok(entry[1]);
    }
    Err(Error::Schema { name: name.to_owned(), found, wanted: schema.to_owned() })
}

fn find<'t>(session: &'t impl Session, name: &str) -> Option<&'t [u64]> {
    let mut place = session.object(ROOT, ROOT_WORDS)[0];
    while place != 0 {
        let entry = session.object(place, ENTRY_WORDS);
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
