//! Names for places in files: the symbol table, and functions that the compiler inlined where there
//! is DWARF.
//!
//! Each place is looked up once, and each stack of calls is kept once: a program with ten thousand
//! locks uses them in a few places. (blazesym would do the look-ups, too, but it neither gives an
//! address' offset in a variable nor bounds the names that it makes. It would also bring as many
//! crates again as `addr2line` and `object` do.)

use std::collections::HashMap;
use std::path::Path;

use crate::analyze::names::files::{self, Unusable};
use crate::analyze::names::listed::Listed;
use crate::analyze::names::modules::Key;
use crate::analyze::names::modules::{Epoch, Modules, NOW};
use crate::analyze::names::wrapper_frames;
use crate::profile::Frame;
use crate::text::{demangled, safe};

mod binary;
mod made;
mod segments;
mod separate;

use binary::Binary;
use made::Made;

/// A variable that a lock lives in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The file that it is in, as in [`Frame::module`].
    pub module: String,
    /// Its name; none in a stripped file.
    pub symbol: Option<String>,
    /// The offset from the start of the variable or, if there is none, of the file.
    pub offset: u64,
}

/// A file that was looked into, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// The number of a stack of calls. Equal stacks have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(u32);

/// The call in a stack that shows its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Informative {
    /// The file that it is in.
    pub file: FileId,
    /// The address there.
    pub address: u64,
    /// The number of calls that were inlined into it at this address.
    pub inlined: usize,
    /// Which of the stack's frames it is.
    pub at: usize,
}

/// The module of code that a program makes while it runs.
pub const MADE: &str = "code made at run time";

/// Return addresses, innermost first, and the time at which they were on a stack.
#[derive(Clone, Copy, Debug)]
pub struct Calls<'a> {
    /// They.
    pub addresses: &'a [u64],
    /// Which files are meant.
    pub epoch: Epoch,
}

impl<'a, A: AsRef<[u64]> + ?Sized> From<&'a A> for Calls<'a> {
    fn from(addresses: &'a A) -> Self {
        Self { addresses: addresses.as_ref(), epoch: NOW }
    }
}

/// The files that were searched, and the results. Each file is read once.
#[derive(Default)]
pub struct Symbols {
    files: Vec<Looked>,
    file_ids: HashMap<Listed, FileId>,
    /// For each process, the code that it made, as far as it has described that.
    made: HashMap<Key, Made>,
    /// Ids of such code, which has no file: each name has its own.
    made_ids: HashMap<String, FileId>,
    /// The calls at an address of a file: several if calls were inlined.
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
    content: Content,
}

enum Content {
    Object(Box<Binary>),
    /// A file of unknown kind that is mapped like a program or a library.
    Unreadable,
    /// Neither a program nor a library: named memory, or a file for another kind of machine.
    Other,
}

impl Symbols {
    /// The stack of these return addresses, for a process with these modules. It ends before the
    /// first address that is neither in a file nor in the process' own notes.
    pub fn stack<'a>(&mut self, addresses: impl Into<Calls<'a>>, modules: &Modules) -> StackId {
        let Calls { addresses, epoch } = addresses.into();
        let calls: Box<[u32]> = addresses
            .iter()
            .map_while(|address| match self.placed(*address, epoch, modules) {
                Some((file, place)) => Some(self.calls_at(file, place)),
                None => self.made_at(*address, modules.owner),
            })
            .collect();
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

    /// The calls of a stack, innermost first, including inlined ones.
    pub fn frames(&self, stack: StackId) -> Vec<Frame> {
        self.each_frame(stack).map(|(_, frame)| frame.clone()).collect()
    }

    /// The call in a stack that shows its purpose; none if the stack is empty.
    pub fn informative(&self, stack: StackId) -> Option<Informative> {
        let at = wrapper_frames::first_informative(self.each_frame(stack).map(|(_, frame)| frame))?;
        let (file, frame) = self.each_frame(stack).nth(at)?;
        let address = frame.address;
        let is_same = |(of, frame): (FileId, &Frame)| of == file && frame.address == address;
        let before = self.each_frame(stack).take(at).map(is_same);
        // Counted from the end: a recursive function is at its address more than once.
        let inlined = before.fold(0, |inlined, is_same| if is_same { inlined + 1 } else { 0 });
        Some(Informative { file, address, inlined, at })
    }

    /// One of a stack's frames, by its number.
    ///
    /// # Panics
    ///
    /// If the stack has not this many.
    pub fn frame(&self, stack: StackId, at: usize) -> &Frame {
        self.each_frame(stack).nth(at).expect("a frame of this stack").1
    }

    fn each_frame(&self, stack: StackId) -> impl Iterator<Item = (FileId, &Frame)> {
        self.stacks[stack.0 as usize].iter().flat_map(|calls| {
            let (file, frames) = &self.calls[*calls as usize];
            frames.iter().map(|frame| (*file, frame))
        })
    }

    /// The file of an address, and the address in terms of its symbols.
    fn placed(&mut self, address: u64, epoch: Epoch, modules: &Modules) -> Option<(FileId, u64)> {
        let place = modules.find(address, epoch)?;
        let file = self.file(place.file);
        let found = match &self.files[file.0 as usize].content {
            Content::Object(binary) => binary.address_of(&place),
            Content::Unreadable => {
                (place.is_inside && place.is_of_object()).then(|| place.offset())
            }
            Content::Other => None,
        };
        Some((file, found?))
    }

    /// Finds the calls at a return address.
    fn calls_at(&mut self, file: FileId, address: u64) -> u32 {
        if let Some(known) = self.call_ids.get(&(file, address)) {
            return *known;
        }
        let Looked { module, content } = &self.files[file.0 as usize];
        let frames = match content {
            Content::Object(binary) => binary.frames(module, address),
            _ => vec![Frame::unknown(module, address)],
        };
        self.keep_calls(file, address, frames)
    }

    fn keep_calls(&mut self, file: FileId, address: u64, frames: Vec<Frame>) -> u32 {
        let id = self.calls.len() as u32;
        self.calls.push((file, frames));
        self.call_ids.insert((file, address), id);
        id
    }

    /// A call in code that the process has made, by its name alone: addresses and offsets differ
    /// from run to run.
    fn made_at(&mut self, address: u64, owner: Key) -> Option<u32> {
        let made = self.made.entry(owner).or_insert_with(|| Made::of(owner));
        let name = demangled(made.find(address.wrapping_sub(1))?.0);
        let file = match self.made_ids.get(&name) {
            Some(known) => *known,
            None => {
                let file = self.keep_file(MADE.to_owned(), Content::Other);
                *self.made_ids.entry(name.clone()).or_insert(file)
            }
        };
        if let Some(known) = self.call_ids.get(&(file, 0)) {
            return Some(*known);
        }
        let frame = Frame { function: Some(name), ..Frame::unknown(MADE, 0) };
        Some(self.keep_calls(file, 0, vec![frame]))
    }

    /// The variable at an address, its file, and its address there; `None` on a heap, on a stack or
    /// in other memory without a program's file.
    pub fn variable(
        &mut self,
        address: u64,
        epoch: Epoch,
        modules: &Modules,
    ) -> Option<(FileId, u64, Variable)> {
        let (file, address) = self.placed(address, epoch, modules)?;
        let Looked { module, content } = &self.files[file.0 as usize];
        let found = match content {
            Content::Object(binary) => binary.variables.find(address),
            _ => None,
        };
        let (symbol, offset) = match found {
            Some((symbol, offset)) => (Some(demangled(symbol)), offset),
            None => (None, address),
        };
        Some((file, address, Variable { module: module.clone(), symbol, offset }))
    }

    /// Files that are gone have ids as well.
    fn file(&mut self, listed: &Listed) -> FileId {
        if let Some(known) = self.file_ids.get(listed) {
            return *known;
        }
        let unreadable = |mark: &str| (name_of(&listed.path()) + mark, Content::Unreadable);
        let (module, content) = match files::find(listed) {
            Ok(found) => {
                let binary = Binary::read(&found);
                let object = |binary| Content::Object(Box::new(binary));
                (name_of(&found.called), binary.map_or(Content::Other, object))
            }
            Err(Unusable::Deleted) => unreadable(" (deleted)"),
            Err(Unusable::Replaced) => unreadable(" (replaced)"),
            Err(Unusable::Unreadable) => unreadable(""),
        };
        let id = self.keep_file(module, content);
        self.file_ids.insert(listed.clone(), id);
        id
    }

    fn keep_file(&mut self, module: String, content: Content) -> FileId {
        self.files.push(Looked { module, content });
        FileId(self.files.len() as u32 - 1)
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
        let modules =
            Modules::of_maps((1, 0), b"1000-3000 r-xp 00000000 00:00 0 /nonexistent/libx.so\n");
        let stack = symbols.stack(&[0x2234, 0x1010, 0x5000, 0x1020], &modules);
        let frame = |address| Frame::unknown("libx.so", address);
        assert_eq!(symbols.frames(stack), [frame(0x1234), frame(0x10)]);
        assert_eq!(symbols.stack(&[0x2234, 0x1010], &modules), stack);
        let (_, _, variable) = symbols.variable(0x2234, NOW, &modules).unwrap();
        assert_eq!((variable.symbol, variable.offset), (None, 0x1234));
    }

    #[test]
    fn a_file_that_is_another_one_by_now_is_not_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libx.so");
        std::fs::write(&path, "anything").unwrap();
        let mut symbols = Symbols::default();
        let path = path.to_str().unwrap();
        let maps = format!(
            "1000-2000 r-xp 00000000 00:00 9 {path}\n3000-4000 r-xp 00000000 00:00 8 {path} (deleted)\n"
        );
        let modules = Modules::of_maps((1, 0), maps.as_bytes());
        let stack = symbols.stack(&[0x1010, 0x3010], &modules);
        let modules: Vec<_> = symbols.frames(stack).into_iter().map(|f| f.module).collect();
        assert_eq!(modules, ["libx.so (replaced)", "libx.so (deleted)"]);
    }

    #[test]
    fn memory_with_a_name_is_no_module() {
        let modules = Modules::of_maps(
            (1, 0),
            b"1000-2000 rw-s 00000000 00:01 9 /dev/zero (deleted)\n3000-4000 rw-s 00000000 00:01 8 /SYSV00000000 (deleted)\n\
              5000-6000 rw-p 00000000 00:01 7 /memfd:java_heap (deleted)\n",
        );
        let mut symbols = Symbols::default();
        for address in [0x1010, 0x3010, 0x5010] {
            assert_eq!(symbols.variable(address, NOW, &modules), None, "{address:#x}");
        }
    }
}
