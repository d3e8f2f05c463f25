//! Keys and values of an index, made of numbers.
//!
//! A value carries a *mark* of its key, by which a thread checks that it has read the key's own
//! value, and a *count*, which changes with each update.

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::{Bound, RangeBounds};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What keys are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Numbers of 64 bits.
    #[default]
    U64,
    /// Strings of 20 bytes, as YCSB has them.
    String,
}

impl KeyKind {
    /// Its name in flags and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::U64 => "u64",
            Self::String => "string",
        }
    }
}

/// How large values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum ValueSize {
    /// A word.
    #[default]
    #[value(name = "8")]
    Word,
    /// 100 bytes, which is one field of YCSB.
    #[value(name = "100")]
    Field,
}

impl ValueSize {
    /// In bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Word => 8,
            Self::Field => 100,
        }
    }
}

/// A key. Keys have the order of their numbers.
pub trait Key: Ord + Hash + Clone + Send + Sync + Borrow<Self::Asked> + 'static {
    /// What an index is asked for.
    type Asked: Ord + Hash + ?Sized;

    /// A key for one look-up, which takes no memory from the allocator.
    type Spelled: Borrow<Self::Asked>;

    /// The key of a number.
    fn new(number: u64) -> Self;

    /// What an index is asked for to find it.
    fn spell(number: u64) -> Self::Spelled;

    /// A number that usually differs between keys.
    fn mark(asked: &Self::Asked) -> u32;
}

/// The form of a key for look-ups.
#[inline]
pub(crate) fn asked<K: Key>(spelled: &K::Spelled) -> &K::Asked {
    spelled.borrow()
}

impl Key for u64 {
    type Asked = u64;
    type Spelled = u64;

    #[inline]
    fn new(number: u64) -> Self {
        number
    }

    #[inline]
    fn spell(number: u64) -> u64 {
        number
    }

    #[inline]
    fn mark(asked: &u64) -> u32 {
        *asked as u32
    }
}

/// `user` and the 16 digits of a number.
#[derive(Clone, Copy, Debug)]
pub struct Spelling([u8; 20]);

impl Borrow<str> for Spelling {
    #[inline]
    fn borrow(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits")
    }
}

impl Key for String {
    type Asked = str;
    type Spelled = Spelling;

    fn new(number: u64) -> Self {
        let spelling = Self::spell(number);
        Borrow::<str>::borrow(&spelling).to_owned()
    }

    #[inline]
    fn spell(number: u64) -> Spelling {
        let mut text = *b"user0000000000000000";
        for (place, digit) in text[4..].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (60 - 4 * place)) as usize & 15];
        }
        Spelling(text)
    }

    /// The last four digits.
    #[inline]
    fn mark(asked: &str) -> u32 {
        asked.as_bytes().last_chunk().map_or(0, |digits| u32::from_le_bytes(*digits))
    }
}

/// A value.
pub trait Value: Copy + Send + Sync + 'static {
    /// Made of a word.
    fn new(word: u64) -> Self;

    /// The word from which it was made; another word if it was not made from one.
    fn word(&self) -> u64;
}

impl Value for u64 {
    #[inline]
    fn new(word: u64) -> Self {
        word
    }

    #[inline]
    fn word(&self) -> u64 {
        *self
    }
}

/// 100 bytes, which begin and end with the word.
#[derive(Clone, Copy, Debug)]
pub struct Field([u8; 100]);

impl Value for Field {
    #[inline]
    fn new(word: u64) -> Self {
        let mut bytes = [0; 100];
        bytes[..8].copy_from_slice(&word.to_le_bytes());
        bytes[92..].copy_from_slice(&word.to_le_bytes());
        Self(bytes)
    }

    #[inline]
    fn word(&self) -> u64 {
        let [first, last] = [&self.0[..8], &self.0[92..]]
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        if first == last { first } else { !first }
    }
}

/// The value of a key, from its mark and a count.
#[inline]
fn value_of<V: Value>(mark: u32, count: u32) -> V {
    V::new(u64::from(mark) << 32 | u64::from(count))
}

/// The value of a number's key with this count.
#[inline]
pub(crate) fn value<K: Key, V: Value>(number: u64, count: u32) -> V {
    value_of(K::mark(asked::<K>(&K::spell(number))), count)
}

/// The same value with the next count.
#[inline]
pub(crate) fn next<V: Value>(value: &V) -> V {
    let word = value.word();
    value_of((word >> 32) as u32, (word as u32).wrapping_add(1))
}

/// What was found where a key's value should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Nothing,
    /// A value of the key, with this count.
    Count(u32),
    /// What is no value of this key.
    Wrong,
}

impl Seen {
    /// What a value of this key is.
    #[inline]
    pub fn at<K: Key, V: Value>(asked: &K::Asked, value: &V) -> Self {
        let word = value.word();
        match (word >> 32) as u32 == K::mark(asked) {
            true => Self::Count(word as u32),
            false => Self::Wrong,
        }
    }
}

/// The range of all keys from this one on.
#[derive(Clone, Copy, Debug)]
pub struct Onward<'a, Q: ?Sized>(pub &'a Q);

impl<Q: ?Sized> RangeBounds<Q> for Onward<'_, Q> {
    fn start_bound(&self) -> Bound<&Q> {
        Bound::Included(self.0)
    }

    fn end_bound(&self) -> Bound<&Q> {
        Bound::Unbounded
    }
}

/// A scan under way.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    most: u32,
    /// Entries that it has seen.
    pub entries: u32,
    /// How many of them had a value that is not the key's.
    pub wrong: u32,
}

impl Scan {
    /// A scan of at most `most` entries.
    pub fn new(most: u32) -> Self {
        Self { most, entries: 0, wrong: 0 }
    }

    /// Whether it wants more.
    #[inline]
    pub fn is_hungry(&self) -> bool {
        self.entries < self.most
    }

    /// Takes an entry; returns whether it wants more.
    #[inline]
    pub fn take<K: Key, V: Value>(&mut self, asked: &K::Asked, value: &V) -> bool {
        self.entries += 1;
        self.wrong += u32::from(Seen::at::<K, V>(asked, value) == Seen::Wrong);
        self.is_hungry()
    }

    /// Visits entries as long as `take` wants more and there are more.
    #[inline]
    pub fn take_all<'a, K: Key, V: Value>(
        &mut self,
        entries: impl Iterator<Item = (&'a K::Asked, &'a V)>,
    ) {
        for (asked, value) in entries {
            if !self.take::<K, V>(asked, value) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_the_order_of_their_numbers() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let (a, b) = (random.u64(..), random.u64(..));
            let [first, second] = [a, b].map(<String as Key>::new);
            assert_eq!(first.cmp(&second), a.cmp(&b));
        }
        assert_eq!(<String as Key>::new(0x1f), "user000000000000001f");
    }

    #[test]
    fn values_are_told_from_those_of_other_keys() {
        fn of<K: Key, V: Value>() {
            let spelled = K::spell(77);
            let seen = |value: &V| Seen::at::<K, V>(asked::<K>(&spelled), value);
            assert_eq!(seen(&value::<K, V>(77, 3)), Seen::Count(3));
            assert_eq!(seen(&next(&value::<K, V>(77, u32::MAX))), Seen::Count(0));
            assert_eq!(seen(&value::<K, V>(78, 3)), Seen::Wrong);
        }
        of::<u64, u64>();
        of::<u64, Field>();
        of::<String, u64>();
        of::<String, Field>();
    }

    #[test]
    fn half_a_value_is_wrong() {
        let [mut torn, other]: [Field; 2] = [3, 4].map(|count| value::<u64, Field>(77, count));
        torn.0[..50].copy_from_slice(&other.0[..50]);
        assert_eq!(Seen::at::<u64, _>(&77, &torn), Seen::Wrong);
    }

    #[test]
    fn a_scan_ends_when_it_has_enough() {
        let values: Vec<(u64, u64)> = (0..10).map(|n| (n, value::<u64, u64>(n, 0))).collect();
        let mut scan = Scan::new(4);
        scan.take_all::<u64, u64>(values.iter().map(|(key, value)| (key, value)));
        assert_eq!((scan.entries, scan.wrong), (4, 0));
    }
}
