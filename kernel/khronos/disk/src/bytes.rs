//! Numbers and names as bytes, least significant byte first; and checksums.

use alloc::vec::Vec;

use crc::{CRC_32_ISCSI, Crc, Table};

/// CRC-32C.
const CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The checksum of these bytes.
pub(crate) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut digest = CRC.digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// The data from a disk is not what was written: it ends too early, or has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Bytes that are read one number after the other.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?.try_into().map_err(|_| Malformed)?;
        Ok(u32::from_le_bytes(bytes))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Bytes with their number before them.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let length = self.u32()? as usize;
        Ok(self.take(length)?.to_vec())
    }
}

/// Bytes with their number before them.
pub(crate) fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("names and targets are short");
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the algorithm's specification.
    #[test]
    fn the_checksum_is_crc32c() {
        assert_eq!(checksum(&[b"12345", b"6789"]), 0xe306_9283);
    }
}
