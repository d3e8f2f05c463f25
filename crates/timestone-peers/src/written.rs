//! What a process has written, as the kernel counts it.

use crate::engine::Failure;

/// Writes of all threads of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Calls that write.
    pub calls: u64,
    /// Bytes that they were given. Whole pages are written to a disk, and the kernel counts all
    /// pages of a large folio together: up to a mebibyte for 4096 bytes.
    pub bytes: u64,
}

impl Written {
    /// Since the process began.
    ///
    /// # Errors
    ///
    /// If the kernel does not count them.
    pub fn so_far() -> Result<Self, Failure> {
        Self::parse(&std::fs::read_to_string("/proc/self/io")?)
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let number = |name: &str| -> Result<u64, Failure> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            Ok(line.ok_or_else(|| format!("/proc/self/io has no {name}"))?.trim().parse()?)
        };
        Ok(Self { calls: number("syscw")?, bytes: number("wchar")? })
    }

    /// What was written after `before`.
    pub fn since(self, before: Self) -> Self {
        Self { calls: self.calls - before.calls, bytes: self.bytes - before.bytes }
    }
}

impl std::ops::AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_their_bytes_are_counted() {
        let text = "rchar: 7\nwchar: 9\nsyscr: 1\nsyscw: 4\nwrite_bytes: 8192\n";
        assert_eq!(Written::parse(text).unwrap(), Written { calls: 4, bytes: 9 });
        assert!(Written::parse("syscw: 4\n").is_err());
        let before = Written::so_far().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one call").unwrap();
        let after = Written::so_far().unwrap().since(before);
        assert!(after.calls >= 1 && after.bytes >= 8, "{after:?}");
    }
}
