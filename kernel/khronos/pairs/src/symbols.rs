//! Names of addresses, as `nm -C` or Linux' `System.map` has them.

/// The address to which kernels are linked; all other memory is mapped below.
const KERNEL: u64 = 0xffff_ffff_8000_0000;

/// Functions and data of a kernel.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, bool, String)>);

impl Symbols {
    /// Reads lines of an address, a letter for the kind, and a name; leaves others out.
    pub fn read(text: &str) -> Self {
        let line = |line: &str| {
            let (address, rest) = line.split_once(' ')?;
            let (kind, name) = rest.split_once(' ')?;
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            Some((u64::from_str_radix(address, 16).ok()?, is_code, short(name)))
        };
        let mut all: Vec<_> = text.lines().filter_map(line).collect();
        all.sort();
        Self(all)
    }

    fn before(&self, address: u64) -> Option<&(u64, bool, String)> {
        let place = self.0.partition_point(|symbol| symbol.0 <= address);
        self.0.get(place.checked_sub(1)?)
    }

    /// The function at an address, or the address.
    pub fn name(&self, address: u64) -> String {
        self.before(address).map_or_else(|| format!("{address:#x}"), |symbol| symbol.2.clone())
    }

    /// The variable at an address; `None` for allocated memory.
    pub fn data(&self, address: u64) -> Option<&str> {
        let (_, is_code, name) = self.before(address).filter(|_| address >= KERNEL)?;
        (!is_code).then_some(name)
    }
}

/// Without the hash that compilers add.
fn short(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((short, hash)) if hash.len() == 16 => short.to_owned(),
        _ => name.to_owned(),
    }
}
