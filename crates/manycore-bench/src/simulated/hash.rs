//! Names of results.

use std::hash::{DefaultHasher, Hasher};

/// A hash of 128 bits. It is the same for the same bytes as long as the executable is the same;
/// results are not used for longer.
pub(super) fn hash(bytes: &[u8]) -> String {
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    for (salt, half) in (0..).zip(&mut halves) {
        half.write_u8(salt);
        half.write(bytes);
    }
    halves.iter().map(|half| format!("{:016x}", half.finish())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_entries_depend_on_every_byte() {
        let names = [&b"a"[..], b"b", b"ab", b"", b"a\0"].map(hash);
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.len() == 32));
        assert_eq!(hash(b"a"), names[0]);
    }
}
