//! Names for places in files: the symbol table, and functions that the compiler inlined where there is DWARF.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::{Loader, demangle_auto};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use serde::{Deserialize, Serialize};

use crate::modules::Place;

/// A call on the way to a lock's first use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The file's name, without its directory.
    pub module: String,
    /// The place in the file: the address that its symbol table would give.
    pub address: u64,
    /// The function; none in a stripped file.
    pub function: Option<String>,
    /// How far behind the function's start; none if it was inlined.
    pub offset: Option<u64>,
    /// Source file, where the compiler left it.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
}

/// A variable that a lock lives in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name; none in a stripped file.
    pub symbol: Option<String>,
    /// How far behind the variable's start, or behind the file's if there is none.
    pub offset: u64,
}

/// Files that were looked into, read once each.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<PathBuf, Option<Binary>>,
}

impl Symbols {
    /// The calls that a return address stands for, innermost first: more than one where calls were inlined.
    pub fn frames(&mut self, place: Place) -> Vec<Frame> {
        let module = name_of(place.path);
        let Some(binary) = self.binary(place.path) else {
            return vec![unknown(module, place.offset)];
        };
        let address = binary.first_address.wrapping_add(place.offset);
        // A return address may be that of the next line or function: what is asked about is the call before it.
        let mut frames = binary.inlined(module, address, address.wrapping_sub(1));
        if let Some(outermost) = frames.last_mut()
            && let Some((symbol, offset)) = binary.functions.find(address.wrapping_sub(1))
        {
            outermost.function.get_or_insert_with(|| demangle(symbol));
            outermost.offset = Some(offset + 1);
        }
        frames
    }

    /// The variable at a place.
    pub fn variable(&mut self, place: Place) -> Variable {
        let Some(binary) = self.binary(place.path) else {
            return Variable { symbol: None, offset: place.offset };
        };
        let address = binary.first_address.wrapping_add(place.offset);
        match binary.variables.find(address) {
            Some((symbol, offset)) => Variable { symbol: Some(demangle(symbol)), offset },
            None => Variable { symbol: None, offset: address },
        }
    }

    fn binary(&mut self, path: &Path) -> Option<&Binary> {
        // A file that is gone or is no ELF file has places all the same.
        self.files.entry(path.to_owned()).or_insert_with(|| Binary::read(path)).as_ref()
    }
}

/// A file's name without its directory.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn unknown(module: String, address: u64) -> Frame {
    Frame { module, address, function: None, offset: None, file: None, line: None }
}

fn demangle(symbol: &str) -> String {
    demangle_auto(Cow::from(symbol), None).into_owned()
}

/// An ELF file.
struct Binary {
    /// The address, as symbols count them, of the file's first byte.
    first_address: u64,
    functions: Table,
    variables: Table,
    /// Present if the file has DWARF.
    lines: Option<Loader>,
}

impl Binary {
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let first_address =
            file.segments().find(|s| s.file_range().0 == 0).map_or(0, |s| s.address());
        let has_dwarf = file.section_by_name(".debug_info").is_some_and(|s| s.size() > 0);
        Some(Self {
            first_address,
            functions: Table::of(&file, SymbolKind::Text),
            variables: Table::of(&file, SymbolKind::Data),
            lines: has_dwarf.then(|| Loader::new(path).ok()).flatten(),
        })
    }

    /// One frame a call; a single one without DWARF.
    fn inlined(&self, module: String, address: u64, probe: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        if let Some(lines) = &self.lines
            && let Ok(mut frames) = lines.find_frames(probe)
        {
            while let Ok(Some(frame)) = frames.next() {
                let mut one = unknown(module.clone(), address);
                one.function = frame.function.and_then(|f| f.demangle().ok().map(Cow::into_owned));
                if let Some(location) = frame.location {
                    one.file = location.file.map(str::to_owned);
                    one.line = location.line;
                }
                found.push(one);
            }
        }
        if found.is_empty() {
            found.push(unknown(module, address));
        }
        found
    }
}

/// Symbols by address.
struct Table {
    symbols: Vec<Symbol>,
}

struct Symbol {
    address: u64,
    size: u64,
    name: String,
}

impl Table {
    /// All symbols of a kind, exported or not.
    fn of<'d>(file: &impl Object<'d>, kind: SymbolKind) -> Self {
        let all = file.symbols().chain(file.dynamic_symbols());
        let wanted = all.filter(|s| s.kind() == kind && s.is_definition());
        let mut symbols: Vec<_> = wanted
            .filter_map(|symbol| {
                let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
                Some(Symbol { address: symbol.address(), size: symbol.size(), name })
            })
            .collect();
        // Of several names for a place, the plainest.
        symbols.sort_by(|a, b| {
            (a.address, b.size, a.name.len(), &a.name).cmp(&(
                b.address,
                a.size,
                b.name.len(),
                &b.name,
            ))
        });
        symbols.dedup_by_key(|symbol| symbol.address);
        Self { symbols }
    }

    /// The symbol that an address is in, and how far.
    fn find(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..behind].last()?;
        let offset = address - symbol.address;
        // Assembly functions may have no size: they reach to the next symbol.
        (offset < symbol.size || symbol.size == 0).then_some((&symbol.name, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, &str)]) -> Table {
        let symbols = symbols.iter().map(|(address, size, name)| Symbol {
            address: *address,
            size: *size,
            name: (*name).into(),
        });
        Table { symbols: symbols.collect() }
    }

    #[test]
    fn an_address_between_symbols_has_none() {
        let table = table(&[(0x100, 0x10, "a"), (0x120, 0, "b"), (0x200, 8, "c")]);
        assert_eq!(table.find(0xff), None);
        assert_eq!(table.find(0x10f), Some(("a", 0xf)));
        assert_eq!(table.find(0x110), None);
        assert_eq!(table.find(0x1ff), Some(("b", 0xdf)));
        assert_eq!(table.find(0x208), None);
    }

    #[test]
    fn a_missing_file_still_has_places() {
        let mut symbols = Symbols::default();
        let place = Place { path: Path::new("/nonexistent/libx.so"), offset: 0x1234 };
        assert_eq!(symbols.frames(place), [unknown("libx.so".into(), 0x1234)]);
        assert_eq!(symbols.variable(place), Variable { symbol: None, offset: 0x1234 });
    }
}
