//! The bytes that a key stands for.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A key of a tree over bytes: keys are ordered and compared by their bytes. One key may be a
/// prefix of another.
///
/// The bytes of text and byte strings are these themselves. The bytes of an integer go from the
/// highest to the lowest, with the sign bit inverted. So both are in their usual order. A key of
/// several parts creates its own bytes:
///
/// ```
/// use manycore::collections::space::{ArtKey, ArtMap};
///
/// /// In the order of the days; events of one day in the order of their names.
/// struct Event {
///     day: u32,
///     name: &'static str,
/// }
///
/// impl ArtKey for Event {
///     type Bytes<'a> = Vec<u8>;
///
///     fn bytes(&self) -> Vec<u8> {
///         [&self.day.bytes()[..], self.name.as_bytes()].concat()
///     }
/// }
///
/// let events = ArtMap::<Event, u32>::default();
/// events.set(Event { day: 300, name: "start" }, 1);
/// events.set(Event { day: 7, name: "stop" }, 2);
/// assert_eq!(events.space().snapshot(|now| now.first(&events).map(|(_, n)| *n)), Some(2));
/// ```
///
/// If the bytes differ from call to call, or from those of the key's borrowed form, a key may not
/// be found, and an operation may be retried for ever.
pub trait ArtKey {
    /// The bytes, borrowed or made.
    type Bytes<'a>: AsRef<[u8]>
    where
        Self: 'a;

    /// The bytes that represent the key: fewer than 2^32 - 1.
    fn bytes(&self) -> Self::Bytes<'_>;
}

macro_rules! borrowed {
    ($($type:ty)*) => {$(
        impl ArtKey for $type {
            type Bytes<'a> = &'a [u8];

            #[inline]
            fn bytes(&self) -> &[u8] {
                self.as_ref()
            }
        }
    )*};
}
borrowed! { str String [u8] Vec<u8> }

impl<const N: usize> ArtKey for [u8; N] {
    type Bytes<'a> = &'a [u8];

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

macro_rules! unsigned {
    ($($type:ty)*) => {$(
        impl ArtKey for $type {
            type Bytes<'a> = [u8; size_of::<$type>()];

            #[inline]
            fn bytes(&self) -> [u8; size_of::<$type>()] {
                self.to_be_bytes()
            }
        }
    )*};
}
unsigned! { u8 u16 u32 u64 u128 usize }

macro_rules! signed {
    ($($type:ty)*) => {$(
        impl ArtKey for $type {
            type Bytes<'a> = [u8; size_of::<$type>()];

            // Two's complement is in order except for the sign bit, which is larger for negative
            // numbers.
            #[inline]
            fn bytes(&self) -> [u8; size_of::<$type>()] {
                (self ^ <$type>::MIN).to_be_bytes()
            }
        }
    )*};
}
signed! { i8 i16 i32 i64 i128 isize }

impl ArtKey for char {
    type Bytes<'a> = [u8; 4];

    #[inline]
    fn bytes(&self) -> [u8; 4] {
        u32::from(*self).to_be_bytes()
    }
}

impl ArtKey for bool {
    type Bytes<'a> = [u8; 1];

    #[inline]
    fn bytes(&self) -> [u8; 1] {
        [u8::from(*self)]
    }
}

macro_rules! through {
    ($($type:ty)*) => {$(
        impl<T: ArtKey + ?Sized> ArtKey for $type {
            type Bytes<'a> = T::Bytes<'a> where Self: 'a;

            #[inline]
            fn bytes(&self) -> T::Bytes<'_> {
                (**self).bytes()
            }
        }
    )*};
}
through! { &T Box<T> Arc<T> }
