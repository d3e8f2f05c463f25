//! Names for addresses in the kernel, from `/proc/kallsyms`.

use std::fs;
use std::ops::Range;

use manycore_profile::profile::Frame;

const PATH: &str = "/proc/kallsyms";
/// The largest distance of the kernel's variables, and of those of modules, from the start of its
/// own code.
const IMAGE_MAX: u64 = 1 << 30;
/// A kernel that lists its variables (KALLSYMS_ALL) has at least one for each
/// `FUNCTIONS_PER_VARIABLE` functions. A kernel that does not lists only the few that the linker
/// placed. These must not give names to the addresses behind them.
const FUNCTIONS_PER_VARIABLE: usize = 20;

/// All symbols of the running kernel and of its modules.
#[derive(Debug, Default)]
pub struct Kallsyms {
    /// By address.
    symbols: Vec<Symbol>,
    image: Option<u64>,
    lists_variables: bool,
}

#[derive(Debug)]
struct Symbol {
    address: u64,
    is_code: bool,
    name: Box<str>,
    /// None: the kernel itself.
    module: Option<Box<str>>,
}

impl Kallsyms {
    /// Reads the symbols of the running kernel; empty if the kernel hides them from us.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string(PATH).unwrap_or_default())
    }

    /// Reads a list. Lines: address in hexadecimal, type, name and, in brackets, the module.
    fn parse(text: &str) -> Self {
        let mut this = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            // Absolute symbols are not addresses of code or data. Users without the permission see
            // only zero addresses.
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address == 0 || kind.eq_ignore_ascii_case("a") {
                continue;
            }
            if name == "_text" || name == "_stext" {
                this.image = Some(this.image.map_or(address, |before| before.min(address)));
            }
            // Marks of the linker that share a function's address.
            if name.starts_with("__pfx_") || name == "_text" || name == "_stext" {
                continue;
            }
            let module = words.next().map(|word| word.trim_matches(['[', ']']).into());
            let is_code = matches!(kind, "t" | "T" | "w" | "W" | "i");
            this.symbols.push(Symbol { address, is_code, name: name.into(), module });
        }
        this.symbols.sort_by_key(|symbol| symbol.address);
        let variables = this.symbols.iter().filter(|symbol| !symbol.is_code).count();
        this.lists_variables = variables * FUNCTIONS_PER_VARIABLE > this.symbols.len();
        this
    }

    /// Whether there are any names.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Whether the kernel has a function of this name.
    pub fn has(&self, function: &str) -> bool {
        self.symbols.iter().any(|symbol| symbol.is_code && &*symbol.name == function)
    }

    /// The range of the kernel's own variables; empty if that is not known.
    pub fn image(&self) -> Range<u64> {
        self.image.map_or(0..0, |start| start..start.saturating_add(IMAGE_MAX))
    }

    /// The variable at an address: `name` or `name+0x8`. Only kernels that list variables know it.
    pub fn variable(&self, address: u64) -> Option<String> {
        let symbol = self.at(address).filter(|symbol| self.lists_variables && !symbol.is_code)?;
        Some(match address - symbol.address {
            0 => symbol.name.to_string(),
            offset => format!("{}+{offset:#x}", symbol.name),
        })
    }

    /// The call that a return address stands for.
    pub fn frame(&self, address: u64) -> Frame {
        // The address may be the first one of the next function, so the call before it is looked
        // up.
        let symbol = self.at(address.wrapping_sub(1)).filter(|symbol| symbol.is_code);
        Frame {
            module: symbol.and_then(|s| s.module.as_deref()).unwrap_or("kernel").to_owned(),
            address,
            function: symbol.map(|symbol| symbol.name.to_string()),
            offset: symbol.map(|symbol| address - symbol.address),
            file: None,
            line: None,
        }
    }

    fn at(&self, address: u64) -> Option<&Symbol> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        self.symbols[..behind].last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_in_the_list() {
        let valid = "ffffffff81000000 T _text\nffffffff81000100 t f\nffffffffc0000000 d g [m]\n";
        manycore_fuzz::texts("/proc/kallsyms", &[valid], |text| drop(Kallsyms::parse(text)));
    }

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000100 t __pfx_do_one
ffffffff81000100 T do_one
ffffffff81000200 T do_two
ffffffff82600000 D tasklist_lock
ffffffff82600040 b other
ffffffffc0100000 t ext4_write\t[ext4]
";

    #[test]
    fn calls_and_variables_have_names() {
        let symbols = Kallsyms::parse(LIST);
        let frame = symbols.frame(0xffff_ffff_8100_0200);
        assert_eq!((frame.function.as_deref(), frame.offset), (Some("do_one"), Some(0x100)));
        let frame = symbols.frame(0xffff_ffff_c010_0010);
        assert_eq!(
            (frame.module.as_str(), frame.function.as_deref()),
            ("ext4", Some("ext4_write"))
        );
        assert_eq!(symbols.variable(0xffff_ffff_8260_0000).as_deref(), Some("tasklist_lock"));
        assert_eq!(symbols.variable(0xffff_ffff_8260_0048).as_deref(), Some("other+0x8"));
        assert_eq!(symbols.variable(0xffff_ffff_8100_0108), None);
        assert!(symbols.image().contains(&0xffff_ffff_8260_0000));
        assert!(!symbols.image().contains(&0xffff_8880_0420_0000));
    }

    #[test]
    fn hidden_addresses_are_no_names() {
        let symbols = Kallsyms::parse("0000000000000000 T _text\n0000000000000000 T do_one\n");
        assert!(symbols.is_empty() && symbols.image().is_empty());
        assert_eq!(symbols.frame(0x1234).function, None);
    }
}
