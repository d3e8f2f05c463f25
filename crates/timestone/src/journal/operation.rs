//! Records of operations: they name the function and its arguments, rather than the written words.
//!
//! ```text
//!   record   | length u32 | kind u8 | flags u8 | 0 u16 | stamp u64 |
//!            | operation u32 | digest u32 | bytes of arguments u32 | bytes of inputs u32 |
//!            | arguments, to whole words | inputs, to whole words | place u64 ... |
//! ```
//!
//! The places are those of the objects that the transaction has made, in their order. The digest
//! covers the transaction's writes, that is, the entries of a record of words.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    operation: U32,
    digest: U32,
    arguments: U32,
    inputs: U32,
}

/// What a transaction has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The number that the store has for the operation's name and version.
    pub operation: u32,
    /// The digest of what was written.
    pub digest: u32,
    /// What the operation was called with.
    pub arguments: &'a [u8],
    /// The inputs that the operation read from outside of the store, concatenated.
    pub inputs: &'a [u8],
    /// The offsets of the objects that it has created, in order: `u64` each.
    places: &'a [u8],
}

impl<'a> Operation<'a> {
    /// With objects at these places.
    pub fn new(
        (operation, digest): (u32, u32),
        arguments: &'a [u8],
        inputs: &'a [u8],
        places: &'a [u64],
    ) -> Self {
        Self { operation, digest, arguments, inputs, places: places.as_bytes() }
    }

    /// The offsets of the objects that it has created, in order.
    pub fn places(&self) -> impl Iterator<Item = u64> + use<'a> {
        let words = self.places.chunks_exact(8);
        words.map(|word| u64::from_le_bytes(word.try_into().expect("a word has 8 bytes")))
    }

    /// Words of its record, behind that one's header.
    pub(super) fn words(&self) -> usize {
        let parts = [self.arguments, self.inputs, self.places].map(|part| part.len().div_ceil(8));
        size_of::<Header>() / 8 + parts.into_iter().sum::<usize>()
    }

    /// Appends them.
    pub(super) fn push(&self, into: &mut Vec<u64>) {
        let narrow =
            |number: usize| u32::try_from(number).expect("a record is smaller than a ring");
        let header = Header {
            operation: self.operation.into(),
            digest: self.digest.into(),
            arguments: narrow(self.arguments.len()).into(),
            inputs: narrow(self.inputs.len()).into(),
        };
        let words: [u64; size_of::<Header>() / 8] = zerocopy::transmute!(header);
        into.extend(words);
        for part in [self.arguments, self.inputs, self.places] {
            let start = into.len();
            into.resize(start + part.len().div_ceil(8), 0);
            into[start..].as_mut_bytes()[..part.len()].copy_from_slice(part);
        }
    }

    /// What these bytes of a record say.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, &'static str> {
        let cut = "an operation that is cut off";
        let (header, rest) = Header::read_from_prefix(body).map_err(|_| cut)?;
        let (arguments, rest) = part(rest, header.arguments).ok_or(cut)?;
        let (inputs, places) = part(rest, header.inputs).ok_or(cut)?;
        if !places.len().is_multiple_of(8) {
            return Err("an operation with a part of a place");
        }
        let (operation, digest) = (header.operation.get(), header.digest.get());
        Ok(Self { operation, digest, arguments, inputs, places })
    }
}

/// Takes a number of bytes, and the padding up to a whole word.
fn part(bytes: &[u8], length: U32) -> Option<(&[u8], &[u8])> {
    let length = length.get() as usize;
    let (whole, rest) = bytes.split_at_checked(length.next_multiple_of(8))?;
    Some((&whole[..length], rest))
}

#[cfg(test)]
mod tests {
    use super::super::record;
    use super::*;

    #[test]
    fn a_record_says_what_it_was_made_of() {
        for (arguments, inputs) in [(0, 0), (1, 9), (8, 16), (21, 3)] {
            let bytes: Vec<u8> = (0..arguments + inputs).collect();
            let (arguments, inputs) = bytes.split_at(arguments.into());
            let operation = Operation::new((7, 8), arguments, inputs, &[64, 96]);
            let mut words = Vec::new();
            record::push_operation(&mut words, &operation);
            assert_eq!(words.len(), record::operation_words(&operation));
            let mut bytes = words.as_bytes();
            let record = record::take(&mut bytes).unwrap();
            assert_eq!(record.operation(), Some(operation));
            assert_eq!(operation.places().collect::<Vec<_>>(), [64, 96]);
            assert!(bytes.is_empty() && record.entries().next().is_none());
        }
    }
}
