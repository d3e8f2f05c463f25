//! Sizes of objects: `mvrlu` has memory for some, and an object has all the words of its slot.

/// The number of words of the largest object: its versions fit into a segment of `mvrlu`'s logs.
pub const WORDS_MAX: usize = 1023;

/// Runs an expression with the array type of an object: the type has as many words as the slot for
/// `$words` words.
///
/// If the number is a constant, so is the choice.
macro_rules! with_words {
    ($words:expr, |$array:ident| $run:expr; $($size:literal)*) => {{
        let words: usize = $words;
        $(if words <= $size {
            type $array = [u64; $size];
            $run
        } else)* {
            unreachable!("no object has {words} words")
        }
    }};
    ($words:expr, |$array:ident| $run:expr) => {
        $crate::heap::words::with_words!($words, |$array| $run;
            3 7 11 15 19 23 27 31 35 39 43 47 51 55 59 63 127 255 511 1023)
    };
}
pub(crate) use with_words;

/// The number of words of the smallest slot for an object of `words` words.
#[inline]
pub const fn rounded(words: usize) -> usize {
    if words <= 63 { (words / 4) * 4 + 3 } else { (words + 1).next_power_of_two() - 1 }
}

/// Whether there are slots of `words` words.
pub fn is_size(words: usize) -> bool {
    (3..=WORDS_MAX).contains(&words) && rounded(words) == words
}

/// The size of that slot in bytes, with the word that belongs to `mvrlu`.
#[inline]
pub const fn slot_bytes(words: usize) -> usize {
    (rounded(words) + 1) * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_room_and_is_of_a_size_that_there_is() {
        for words in 1..=WORDS_MAX {
            let slot = rounded(words);
            assert!(slot >= words && is_size(slot), "{words}");
            assert_eq!(with_words!(words, |W| size_of::<W>()), slot * 8, "{words}");
            assert!(slot_bytes(words).is_multiple_of(32), "{words}");
        }
        assert!(!is_size(0) && !is_size(4) && !is_size(1024) && !is_size(2047));
    }
}
