//! What a lock is called: the variable that it lives in, or else the place where it was first used.

use std::path::PathBuf;

use crate::layout::Kind;
use crate::modules::Modules;
use crate::profile::Origin;
use crate::symbols::{Frame, Symbols, Variable, name_of};
use crate::tally::Recorded;
use crate::wrapper::{first_informative, plain_path};

/// What a lock is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// In full: `symbol+offset (module)`, or `module+address` in a stripped file.
    pub full: String,
    /// Without module and arguments.
    pub short: String,
    /// The module's name, if it is known.
    pub module: Option<String>,
    /// What the name stands for.
    pub origin: Origin,
    /// The calls of the first use, or of the place, innermost first.
    pub frames: Vec<Frame>,
}

/// What is the same for objects that are to be shown as one, in one process or in several.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A place in a file's data.
    Variable(PathBuf, u64, u32),
    /// A place in a file's code. Inlined calls share their address, so they are counted.
    Code(PathBuf, u64, usize, u32),
    /// A process' rest, or an object whose first use is in no file (code made at run time).
    Unplaced(u64, u32),
}

/// Finds out what a lock is called, and which others it is to be shown with.
pub fn of(recorded: &Recorded, modules: &Modules, symbols: &mut Symbols) -> (Identity, Name) {
    let kind = recorded.kind as u32;
    if recorded.is_rest {
        let text = "(locks without a record of their own)".to_owned();
        let name = Name::new(text.clone(), text, None, Origin::Rest, Vec::new());
        return (Identity::Unplaced(0, kind), name);
    }
    let calls = Calls::of(&recorded.frames, modules, symbols);
    if let Some(place) = modules.find(recorded.address) {
        let name = of_variable(&symbols.variable(place), name_of(place.path), calls.frames);
        return (Identity::Variable(place.path.to_owned(), place.offset, kind), name);
    }
    of_calls(calls, &recorded.frames, kind)
}

/// What a place is called where threads wait for a lock of this kind, and which others it is to be shown with.
pub fn of_waiters(
    addresses: &[u64],
    kind: Kind,
    modules: &Modules,
    symbols: &mut Symbols,
) -> (Identity, Name) {
    of_calls(Calls::of(addresses, modules, symbols), addresses, kind as u32)
}

/// A place in code, by the call in it that tells.
fn of_calls(calls: Calls, addresses: &[u64], kind: u32) -> (Identity, Name) {
    match calls.informative {
        Some((path, address, at)) => {
            let inlined =
                calls.frames[..at].iter().rev().take_while(|f| f.address == address).count();
            let name = of_code(calls.frames, at);
            (Identity::Code(path, address, inlined, kind), name)
        }
        None => {
            let caller = addresses.first().copied().unwrap_or(0);
            let text = format!("code at {caller:#x}");
            let name = Name::new(text.clone(), text, None, Origin::FirstUse, Vec::new());
            (Identity::Unplaced(caller, kind), name)
        }
    }
}

impl Name {
    fn new(
        full: String,
        short: String,
        module: Option<String>,
        origin: Origin,
        frames: Vec<Frame>,
    ) -> Self {
        Self { full, short, module, origin, frames }
    }
}

/// The calls of a first use, or of a wait.
struct Calls {
    frames: Vec<Frame>,
    /// The one that tells: its file, its address there, and its place in `frames`.
    informative: Option<(PathBuf, u64, usize)>,
}

impl Calls {
    fn of(addresses: &[u64], modules: &Modules, symbols: &mut Symbols) -> Self {
        let mut frames = Vec::new();
        let mut paths = Vec::new();
        for place in addresses.iter().map_while(|address| modules.find(*address)) {
            let calls = symbols.frames(place);
            paths.extend(calls.iter().map(|_| place.path));
            frames.extend(calls);
        }
        let informative = first_informative(&frames).map(|at| {
            let address = frames[at].address;
            (paths[at].to_owned(), address, at)
        });
        Self { frames, informative }
    }
}

fn of_variable(variable: &Variable, module: String, frames: Vec<Frame>) -> Name {
    let (full, short) = match &variable.symbol {
        Some(symbol) => {
            let short = with_offset(&plain_path(symbol).join("::"), variable.offset);
            (format!("{} ({module})", with_offset(symbol, variable.offset)), short)
        }
        None => {
            let text = with_offset(&module, variable.offset);
            (text.clone(), text)
        }
    };
    Name::new(full, short, Some(module), Origin::Variable, frames)
}

fn of_code(frames: Vec<Frame>, at: usize) -> Name {
    let frame = &frames[at];
    let module = frame.module.clone();
    let line = frame
        .file
        .as_deref()
        .zip(frame.line)
        .map(|(file, line)| format!(" {}:{line}", file.rsplit('/').next().unwrap_or(file)));
    let (full, short) = match (&frame.function, line, frame.offset) {
        (Some(function), Some(line), _) => {
            (format!("{function}{line} ({module})"), plain_path(function).join("::") + &line)
        }
        (Some(function), None, offset) => {
            let offset = offset.unwrap_or(0);
            let short = with_offset(&plain_path(function).join("::"), offset);
            (format!("{} ({module})", with_offset(function, offset)), short)
        }
        (None, ..) => {
            let text = with_offset(&module, frame.address);
            (text.clone(), text)
        }
    };
    Name::new(full, short, Some(module), Origin::FirstUse, frames)
}

fn with_offset(name: &str, offset: u64) -> String {
    if offset == 0 { name.to_owned() } else { format!("{name}+{offset:#x}") }
}

/// What a kind is called in profiles.
pub fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Mutex => "mutex",
        Kind::Recursive => "recursive",
        Kind::ErrorCheck => "errorcheck",
        Kind::Adaptive => "adaptive",
        Kind::RwLock => "rwlock",
        Kind::Spin => "spinlock",
        Kind::Cond => "condition",
        Kind::None => "any",
    }
}
