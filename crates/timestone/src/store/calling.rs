//! Calls of operations, as their records have them.

use crate::error::{Error, Result};
use crate::journal::operation::Operation;
use crate::journal::record::{RECORD_BYTES, digest, operation_words, push_operation};

/// An operation that the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What records call it.
    pub number: u32,
    pub name: String,
    pub version: u32,
}

impl Known {
    /// Whether it has this name and version.
    pub fn is(&self, name: &str, version: u32) -> bool {
        self.name == name && self.version == version
    }

    /// The number of an operation that is called.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownOperation`].
    pub fn number(known: &[Self], name: &str, version: u32) -> Result<u32> {
        let found = known.iter().find(|known| known.is(name, version));
        found.map(|known| known.number).ok_or_else(|| Error::UnknownOperation {
            name: name.to_owned(),
            version,
            records: 0,
        })
    }
}

/// The contents of a thread's transaction, and the data needed to run it again.
#[derive(Default)]
pub struct Calling {
    /// The operation that is called; 0 if none is.
    operation: u32,
    arguments: Vec<u8>,
    inputs: Vec<u8>,
    /// The places of the objects that were made.
    places: Vec<u64>,
}

impl Calling {
    /// A transaction begins.
    pub fn clear(&mut self) {
        self.operation = 0;
    }

    /// The transaction calls the operation of this number.
    pub fn begin(&mut self, operation: u32, arguments: &[u8]) {
        self.operation = operation;
        self.arguments.clear();
        self.arguments.extend_from_slice(arguments);
        self.inputs.clear();
        self.places.clear();
    }

    pub fn is_calling(&self) -> bool {
        self.operation != 0
    }

    /// Notes that the operation has read these bytes from outside of the store.
    pub fn note_input(&mut self, bytes: &[u8]) {
        if self.is_calling() {
            self.inputs.extend_from_slice(bytes);
        }
    }

    /// An object was made.
    #[inline]
    pub fn note_made(&mut self, place: u64) {
        if self.is_calling() {
            self.places.push(place);
        }
    }

    /// Appends the record of the call to the record of the written words, if the call's is shorter
    /// and both together have at most `max` words.
    pub fn push_shorter(&self, record: &mut Vec<u64>, max: usize) {
        if !self.is_calling() {
            return;
        }
        let call = |digest| {
            Operation::new((self.operation, digest), &self.arguments, &self.inputs, &self.places)
        };
        let words = operation_words(&call(0));
        if words < record.len() && record.len() + words <= max {
            let digest = digest(&record[RECORD_BYTES / 8..]);
            push_operation(record, &call(digest));
        }
    }
}
