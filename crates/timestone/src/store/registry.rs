//! The operations that a store knows: a list of objects that begins at the heap's root.
//!
//! ```text
//!   root    | first of the catalog | first of these | 0 |
//!   entry   | next | number u32, version u32 | length of name | name, 80 bytes |
//! ```

use zerocopy::IntoBytes;

use super::calling::Known;
use super::transaction::sealed::Objects;
use super::transaction::{Stop, Transaction};
use crate::error::Error;
use crate::heap::{ROOT, ROOT_WORDS};

/// Which word of the root leads to the first.
pub const FIRST: usize = 1;
const NAME_AT: usize = 3;
const NAME_BYTES: usize = 80;
const ENTRY_WORDS: usize = NAME_AT + NAME_BYTES / 8;

/// All of them, the newest first.
pub fn all(session: &impl Objects) -> Vec<Known> {
    let (mut found, mut place) = (Vec::new(), session.object(ROOT, ROOT_WORDS)[FIRST]);
    while place != 0 {
        let words = session.object(place, ENTRY_WORDS);
        let bytes = words[NAME_AT..].as_bytes();
        let name = &bytes[..(words[2] as usize).min(NAME_BYTES)];
        found.push(Known {
            number: words[1] as u32,
            name: String::from_utf8_lossy(name).into_owned(),
            version: (words[1] >> 32) as u32,
        });
        place = words[0];
    }
    found
}

/// The number of an operation in the store, which gets one if it has none.
pub fn known(tx: &mut Transaction<'_, '_>, name: &str, version: u32) -> Result<Known, Stop> {
    let known = all(tx);
    if let Some(it) = known.iter().find(|known| known.is(name, version)) {
        return Ok(it.clone());
    }
    if name.len() > NAME_BYTES {
        return Err(Error::TooLarge { bytes: name.len(), max: NAME_BYTES }.into());
    }
    let number = known.first().map_or(1, |newest| newest.number + 1);
    let mut entry = [0; ENTRY_WORDS];
    entry[0] = tx.object(ROOT, ROOT_WORDS)[FIRST];
    entry[1] = u64::from(number) | u64::from(version) << 32;
    entry[2] = name.len() as u64;
    entry[NAME_AT..].as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    let entry = tx.allocate(&entry)?;
    tx.lock_words(ROOT, ROOT_WORDS)?[FIRST] = entry;
    Ok(Known { number, name: name.to_owned(), version })
}
