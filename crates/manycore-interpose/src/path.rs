//! Paths without an allocator.

/// A path under construction, NUL-terminated.
pub struct Path {
    bytes: [u8; 640],
    length: usize,
}

impl Path {
    /// Empty.
    pub fn new() -> Self {
        Self { bytes: [0; 640], length: 0 }
    }

    /// Appends. A path that is too long is cut, and opening it fails.
    pub fn push(&mut self, part: &[u8]) {
        let fits = part.len().min(self.bytes.len() - 1 - self.length);
        self.bytes[self.length..self.length + fits].copy_from_slice(&part[..fits]);
        self.length += fits;
    }

    /// Appends the decimal digits of a number.
    pub fn push_number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut rest = number;
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[first..]);
    }

    /// Ends it there, if not before.
    pub fn end_at_zero(&mut self) {
        self.length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.length);
    }

    /// It, as the kernel wants it.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}
