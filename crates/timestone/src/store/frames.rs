//! Records that the leader has collected, for a frame.
//!
//! A thread stages the words that its transaction has written. If the transaction is an operation
//! and the record of its call is shorter, the thread stages that as well. Which of the two goes
//! into a frame is decided when the frame is written: while an image is written, a repeated call
//! would run on objects that the image may have in a later state. The leader decides, and only the
//! leader begins and ends an image, between two frames. So no other thread has to know.

use crate::journal::frame::Builder;

/// A frame that is being filled, in both forms.
#[derive(Default)]
pub struct Collected {
    /// With the words of all transactions.
    values: Builder,
    /// The frame in which calls replace words where possible; empty if there is no call.
    calls: Builder,
    /// How many there are.
    count: u64,
}

impl Collected {
    /// Takes what a thread has staged.
    pub fn push(&mut self, stamp: u64, words: &mut dyn Iterator<Item = u64>) {
        let first = words.next().expect("a record has a header");
        let length = first as u32 as usize / 8;
        let others = self.values.len();
        let from = self.values.push_words(stamp, [first].into_iter().chain(words.take(length - 1)));
        match words.next() {
            Some(first) => {
                if self.count == 0 && others > 0 {
                    self.calls.push_first(&self.values, from, others);
                }
                self.count += 1;
                self.calls.push_words(stamp, [first].into_iter().chain(words));
            }
            None if self.count > 0 => self.calls.push_last(&self.values, from),
            None => {}
        }
    }

    /// The frame with the words of all transactions.
    pub fn values(&self) -> &Builder {
        &self.values
    }

    /// The complete frame, and its number of calls.
    pub fn frame(&mut self, is_values_only: bool) -> (&mut Builder, u64) {
        if is_values_only || self.count == 0 {
            (&mut self.values, 0)
        } else {
            (&mut self.calls, self.count)
        }
    }

    /// Takes the frame with the words of all transactions, and leaves none.
    pub fn take(&mut self) -> Builder {
        let values = std::mem::take(&mut self.values);
        self.clear();
        values
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.values.clear();
        self.calls.clear();
        self.count = 0;
    }
}
