//! Names for places in files: the symbol table, and functions that the compiler inlined where there is DWARF.
//!
//! Each place is looked up once, and each stack of calls is kept once: a program with ten thousand locks uses them in a
//! few places. (blazesym would do the looking up, too, but neither says how far into which variable an address is nor
//! bounds the names that it makes, and would come with as many crates again as `addr2line` and `object` do.)

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::modules::{Modules, Place};
use crate::wrapper;

mod binary;
mod separate;
mod text;

use binary::{Binary, Unusable};
use text::demangled;
pub use text::{harmless, safe};

/// A call on the way to a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The file's name, without its directory; with `(deleted)` or `(replaced)` if it is no longer what the program had.
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

impl Frame {
    /// The function, or the place in a stripped file.
    pub fn label(&self) -> String {
        match &self.function {
            Some(function) => function.clone(),
            None => format!("{}+{:#x}", self.module, self.address),
        }
    }

    fn unknown(module: &str, address: u64) -> Self {
        let module = module.to_owned();
        Self { module, address, function: None, offset: None, file: None, line: None }
    }
}

/// A variable that a lock lives in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The file that it is in, as in [`Frame::module`].
    pub module: String,
    /// Its name; none in a stripped file.
    pub symbol: Option<String>,
    /// How far behind the variable's start, or behind the file's if there is none.
    pub offset: u64,
}

/// A file that was looked into, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// A stack of calls that was looked up, by number: equal if the calls are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(u32);

/// The call in a stack that tells what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Informative {
    /// The file that it is in.
    pub file: FileId,
    /// The address there.
    pub address: u64,
    /// How many calls that were inlined at this address are within it.
    pub inlined: usize,
    /// Which of the stack's frames it is.
    pub at: usize,
}

/// Files that were looked into, read once each, and what was found in them.
#[derive(Default)]
pub struct Symbols {
    files: Vec<Looked>,
    file_ids: HashMap<(PathBuf, u64), FileId>,
    /// The calls at a place in a file: more than one where calls were inlined.
    calls: Vec<(FileId, Vec<Frame>)>,
    call_ids: HashMap<(FileId, u64), u32>,
    /// Places in `calls`, innermost first.
    stacks: Vec<Box<[u32]>>,
    stack_ids: HashMap<Box<[u32]>, StackId>,
}

/// A file.
struct Looked {
    /// What it is called.
    module: String,
    binary: Option<Binary>,
}

impl Symbols {
    /// The stack of these return addresses, innermost first, of a process with these modules. It ends ahead of the first
    /// address that is in no file.
    pub fn stack(&mut self, addresses: &[u64], modules: &Modules) -> StackId {
        let places = addresses.iter().map_while(|address| modules.find(*address));
        let calls: Box<[u32]> = places.map(|place| self.calls_at(place)).collect();
        if let Some(known) = self.stack_ids.get(&calls) {
            return *known;
        }
        let id = StackId(self.stacks.len() as u32);
        self.stacks.push(calls.clone());
        self.stack_ids.insert(calls, id);
        id
    }

    /// Whether a stack has no calls that are known: the place is in no file.
    pub fn is_empty(&self, stack: StackId) -> bool {
        self.stacks[stack.0 as usize].is_empty()
    }

    /// The calls of a stack, innermost first, inlined ones as any others.
    pub fn frames(&self, stack: StackId) -> Vec<Frame> {
        self.each_frame(stack).map(|(_, frame)| frame.clone()).collect()
    }

    /// The call in a stack that tells what it is about; none if the stack is empty.
    pub fn informative(&self, stack: StackId) -> Option<Informative> {
        let at = wrapper::first_informative(self.each_frame(stack).map(|(_, frame)| frame))?;
        let (file, frame) = self.each_frame(stack).nth(at)?;
        let address = frame.address;
        let before = self.each_frame(stack).take(at).map(|(_, frame)| frame.address == address);
        // Counted from the end: a recursive function is at its address more than once.
        let inlined = before.fold(0, |inlined, is_same| if is_same { inlined + 1 } else { 0 });
        Some(Informative { file, address, inlined, at })
    }

    /// One of a stack's frames, by its number.
    ///
    /// # Panics
    ///
    /// If the stack has not so many.
    pub fn frame(&self, stack: StackId, at: usize) -> &Frame {
        self.each_frame(stack).nth(at).expect("a frame of this stack").1
    }

    fn each_frame(&self, stack: StackId) -> impl Iterator<Item = (FileId, &Frame)> {
        self.stacks[stack.0 as usize].iter().flat_map(|calls| {
            let (file, frames) = &self.calls[*calls as usize];
            frames.iter().map(|frame| (*file, frame))
        })
    }

    /// Looks up the calls that a return address stands for.
    fn calls_at(&mut self, place: Place) -> u32 {
        let file = self.file(place);
        if let Some(known) = self.call_ids.get(&(file, place.offset)) {
            return *known;
        }
        let Looked { module, binary } = &self.files[file.0 as usize];
        let frames = match binary {
            None => vec![Frame::unknown(module, place.offset)],
            Some(binary) => binary.frames(module, binary.first_address.wrapping_add(place.offset)),
        };
        let id = self.calls.len() as u32;
        self.calls.push((file, frames));
        self.call_ids.insert((file, place.offset), id);
        id
    }

    /// The variable at a place, and the file that it is in.
    pub fn variable(&mut self, place: Place) -> (FileId, Variable) {
        let file = self.file(place);
        let Looked { module, binary } = &self.files[file.0 as usize];
        let address =
            binary.as_ref().map_or(0, |file| file.first_address).wrapping_add(place.offset);
        let found = binary.as_ref().and_then(|file| file.variables.find(address));
        let (symbol, offset) = match found {
            Some((symbol, offset)) => (Some(demangled(symbol)), offset),
            None => (None, address),
        };
        (file, Variable { module: module.clone(), symbol, offset })
    }

    /// A file that is gone or is no ELF file has places all the same.
    fn file(&mut self, place: Place) -> FileId {
        let key = (place.path.to_owned(), place.inode);
        *self.file_ids.entry(key).or_insert_with(|| {
            let (binary, mark) = if place.is_deleted {
                (None, " (deleted)")
            } else {
                match Binary::read(place.path, place.inode) {
                    Ok(binary) => (Some(binary), ""),
                    Err(Unusable::Replaced) => (None, " (replaced)"),
                    Err(Unusable::Unreadable) => (None, ""),
                }
            };
            self.files.push(Looked { module: name_of(place.path) + mark, binary });
            FileId(self.files.len() as u32 - 1)
        })
    }
}

/// A file's name without its directory.
pub fn name_of(path: &Path) -> String {
    safe(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_still_has_places() {
        let mut symbols = Symbols::default();
        let mut modules = Modules::default();
        modules.add(0x1000, 0x3000, 0, "/nonexistent/libx.so".into(), 0);
        let stack = symbols.stack(&[0x2234, 0x1010, 0x5000, 0x1020], &modules);
        let frame = |address| Frame::unknown("libx.so", address);
        assert_eq!(symbols.frames(stack), [frame(0x1234), frame(0x10)]);
        assert_eq!(symbols.stack(&[0x2234, 0x1010], &modules), stack);
        let (_, variable) = symbols.variable(modules.find(0x2234).unwrap());
        assert_eq!((variable.symbol, variable.offset), (None, 0x1234));
    }

    #[test]
    fn a_file_that_is_another_one_by_now_is_not_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libx.so");
        std::fs::write(&path, "anything").unwrap();
        let mut symbols = Symbols::default();
        let mut modules = Modules::default();
        modules.add(0x1000, 0x2000, 0, path.clone(), u64::MAX);
        let mut gone = path.into_os_string();
        gone.push(" (deleted)");
        modules.add(0x3000, 0x4000, 0, gone.into(), 0);
        let stack = symbols.stack(&[0x1010, 0x3010], &modules);
        let modules: Vec<_> = symbols.frames(stack).into_iter().map(|f| f.module).collect();
        assert_eq!(modules, ["libx.so (replaced)", "libx.so (deleted)"]);
    }
}
