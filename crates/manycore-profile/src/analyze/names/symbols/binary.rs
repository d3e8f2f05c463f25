//! One ELF file: which function or variable is at an address, and which calls the compiler inlined
//! there.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use addr2line::Loader;
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol, ReadRef, SymbolKind};

use crate::analyze::names::files::ReadableFile;
use crate::analyze::names::modules::CodeLocation;
use manycore_launch::regular;

use super::segments::Segments;
use super::separate::{self, Separate};
use crate::profile::Frame;
use crate::text::{demangled, safe};

/// An ELF file, together with the separate file of the parts that were stripped from it.
pub struct Binary {
    segments: Segments,
    /// Its functions.
    pub functions: Table,
    /// Its variables.
    pub variables: Table,
    /// Present if there is DWARF.
    lines: Option<Loader>,
}

/// The most bytes of a name that are read.
const NAME: u64 = 4096;

/// A file with names of any length. The cache returns no name beyond its limit; then the function
/// would be mistaken for a part of the one before it.
#[derive(Clone, Copy)]
struct Cut<'a>(&'a ReadCache<File>);

impl<'a> ReadRef<'a> for Cut<'a> {
    fn len(self) -> Result<u64, ()> {
        ReadRef::len(self.0)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let beginning = NAME.min(range.end.saturating_sub(range.start));
        let name = self.0.read_bytes_at_until(range.clone(), delimiter);
        name.or_else(|()| self.0.read_bytes_at(range.start, beginning))
    }
}

impl Binary {
    /// Reads a file; none if it is no ELF file.
    pub fn read(found: &ReadableFile) -> Option<Self> {
        let path = &*found.path;
        let cache = ReadCache::new(regular::open(path).ok()?);
        let file = object::File::parse(Cut(&cache)).ok()?;
        let mut functions = Table::default();
        let mut variables = Table::default();
        let mut add = |file: &object::File<'_, Cut<'_>>| {
            functions.add(file, SymbolKind::Text);
            variables.add(file, SymbolKind::Data);
        };
        add(&file);
        let Separate { debug, supplement } =
            separate::find(&found.called, &file, Path::new(separate::DEBUG));
        if let Some(debug) = debug.as_deref().and_then(|path| regular::open(path).ok()) {
            let cache = ReadCache::new(debug);
            if let Ok(file) = object::File::parse(Cut(&cache)) {
                add(&file);
            }
        }
        let has_dwarf = file.section_by_name(".debug_info").is_some_and(|s| s.size() > 0);
        let lines = debug.as_deref().or(has_dwarf.then_some(path));
        functions.sort();
        variables.sort();
        Some(Self {
            segments: Segments::of(&file),
            functions,
            variables,
            lines: lines
                .filter(|path| regular::open(path).is_ok())
                .and_then(|path| Loader::new_with_sup(path, supplement).ok()),
        })
    }

    /// The address of a location, in terms of symbols; `None` if the file has nothing there.
    pub fn address_of(&self, place: &CodeLocation) -> Option<u64> {
        self.segments.address_of(place)
    }

    /// The calls at a return address, innermost first: a frame for each call, a single one without
    /// DWARF.
    pub fn frames(&self, module: &str, address: u64) -> Vec<Frame> {
        // A return address may belong to the next line or function: the look-up is for the call
        // before it.
        let probe = address.wrapping_sub(1);
        let mut frames = self.inlined(module, address, probe);
        if let Some(outermost) = frames.last_mut()
            && let Some((symbol, offset)) = self.functions.find(probe)
        {
            outermost.function.get_or_insert_with(|| demangled(symbol));
            outermost.offset = Some(offset + 1);
        }
        frames
    }

    fn inlined(&self, module: &str, address: u64, probe: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        if let Some(lines) = &self.lines
            && let Ok(mut frames) = lines.find_frames(probe)
        {
            while let Ok(Some(frame)) = frames.next() {
                let mut one = Frame::unknown(module, address);
                one.function =
                    frame.function.and_then(|f| f.raw_name().ok().map(|name| demangled(&name)));
                if let Some(location) = frame.location {
                    one.file = location.file.map(safe);
                    one.line = location.line;
                }
                found.push(one);
            }
        }
        if found.is_empty() {
            found.push(Frame::unknown(module, address));
        }
        found
    }
}

/// Symbols by address.
#[derive(Default)]
pub struct Table {
    symbols: Vec<Symbol>,
    /// All names, concatenated: a large program has a million of them.
    names: String,
}

struct Symbol {
    address: u64,
    size: u64,
    /// Where in the names its own begins and ends.
    name: (usize, usize),
}

impl Table {
    /// Adds all symbols of a kind, exported or not.
    fn add<'d>(&mut self, file: &impl Object<'d>, kind: SymbolKind) {
        let all = file.symbols().chain(file.dynamic_symbols());
        for symbol in all.filter(|s| s.kind() == kind && s.is_definition()) {
            if let Ok(name) = symbol.name_bytes() {
                self.push(symbol.address(), symbol.size(), &String::from_utf8_lossy(name));
            }
        }
    }

    fn push(&mut self, address: u64, size: u64, name: &str) {
        if !name.is_empty() {
            let start = self.names.len();
            self.names.push_str(name);
            self.symbols.push(Symbol { address, size, name: (start, self.names.len()) });
        }
    }

    /// To be called when all are there.
    fn sort(&mut self) {
        let name = |symbol: &Symbol| &self.names[symbol.name.0..symbol.name.1];
        // The plainest of several names for a place comes first.
        self.symbols.sort_by(|a, b| {
            (a.address, b.size, name(a).len(), name(a)).cmp(&(
                b.address,
                a.size,
                name(b).len(),
                name(b),
            ))
        });
        self.symbols.dedup_by_key(|symbol| symbol.address);
    }

    /// The symbol that contains an address, and the offset in it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..behind].last()?;
        let offset = address - symbol.address;
        // Assembly functions may have no size: they reach to the next symbol.
        let is_inside = offset < symbol.size || symbol.size == 0;
        is_inside.then(|| (&self.names[symbol.name.0..symbol.name.1], offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::names::modules::{Modules, NOW};

    #[test]
    fn whatever_is_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("a.c"), directory.path().join("a.so"));
        std::fs::write(&source, "static int x; int f(int y) { return x += y; }").unwrap();
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-g", "-shared", "-fPIC", "-nostdlib", "-o"]).arg(&program).arg(&source);
        assert!(compiler.status().unwrap().success());
        let valid = std::fs::read(&program).unwrap();
        let path = directory.path().join("b.so");
        let maps = b"0-1000 r--p 00000000 fe:00 9 /b.so\n1000-2000 r-xp 00001000 fe:00 9 /b.so\n";
        let modules = Modules::of_maps((1, 0), maps);
        manycore_fuzz::bytes("an ELF file", &[&valid], |input| {
            std::fs::write(&path, input).unwrap();
            let found = ReadableFile { path: path.clone(), called: path.clone() };
            if let Some(binary) = Binary::read(&found) {
                for address in [0, 0x1005, 0x3010, u64::MAX] {
                    _ = modules.find(address, NOW).and_then(|place| binary.address_of(&place));
                }
                for address in [0, 0x1000, 0x1005, u64::MAX] {
                    _ = binary.frames("b.so", address);
                }
            }
        });
    }

    #[test]
    fn a_function_with_a_very_long_name_is_not_the_one_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let [source, program] = ["x.c", "x"].map(|name| directory.path().join(name));
        let long = "x".repeat(100_000);
        let text = format!(
            "void f(void) __asm__(\"{long}\"); void f(void) {{}} int main(void) {{ f(); }}"
        );
        std::fs::write(&source, text).unwrap();
        let built = std::process::Command::new("cc").arg("-o").args([&program, &source]).status();
        assert!(built.unwrap().success());
        let found = ReadableFile { path: program.clone(), called: program };
        let binary = Binary::read(&found).unwrap();
        let length = |symbol: &&Symbol| symbol.name.1 - symbol.name.0;
        let longest = binary.functions.symbols.iter().max_by_key(length).unwrap();
        assert_eq!(length(&longest), NAME as usize);
        let frames = binary.frames("x", longest.address + 1);
        assert!(frames[0].function.as_deref().unwrap().starts_with("xxxx"), "{frames:?}");
        assert_eq!(frames[0].offset, Some(1));
    }

    #[test]
    fn an_address_between_symbols_has_none() {
        let mut table = Table::default();
        for (address, size, name) in
            [(0x200, 8, "c"), (0x100, 0x10, "a_longer_name"), (0x120, 0, "b"), (0x100, 0x10, "a")]
        {
            table.push(address, size, name);
        }
        table.sort();
        assert_eq!(table.find(0xff), None);
        assert_eq!(table.find(0x10f), Some(("a", 0xf)));
        assert_eq!(table.find(0x110), None);
        assert_eq!(table.find(0x1ff), Some(("b", 0xdf)));
        assert_eq!(table.find(0x208), None);
    }
}
