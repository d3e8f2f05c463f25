//! A lock's name: the variable that contains it, or otherwise the place where it was created.

use crate::analyze::names::modules::{Epoch, Modules};
use crate::analyze::names::symbols::{FileId, MADE, StackId, Symbols, Variable};
use crate::analyze::names::wrapper_frames::plain_path;
use crate::analyze::process::decode::Recorded;
use crate::profile::{Frame, Origin};
use manycore_stats::Kind;

/// What a lock is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The full name: `symbol+offset (module)`, or `module+address` in a stripped file.
    pub full: String,
    /// Without module and arguments.
    pub short: String,
    /// The module's name, if it is known.
    pub module: Option<String>,
    /// What the name stands for.
    pub origin: Origin,
}

/// The common properties of objects that are shown as one, in one process or in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A place in a file's data.
    Variable(FileId, u64, u32),
    /// A place in a file's code. Inlined calls share their address, so they are counted.
    Code(FileId, u64, usize, u32),
    /// The rest of a process, or an object that was created in no file (in code made at run time).
    Unplaced(u64, u32),
}

/// The name of a lock that was created by the calls of `stack`, which begins with `caller`, and the
/// identity that it shares with other locks.
pub fn of(
    recorded: &Recorded,
    stack: StackId,
    caller: u64,
    modules: &Modules,
    symbols: &mut Symbols,
) -> (Identity, Name) {
    let kind = recorded.kind as u32;
    if recorded.is_rest {
        let text = "(locks without a record of their own)".to_owned();
        return (Identity::Unplaced(0, kind), Name::new(text.clone(), text, None, Origin::Rest));
    }
    let at = (recorded.address, recorded.epoch);
    if let Some(known) = of_address(at, recorded.kind, modules, symbols) {
        return known;
    }
    let origin = if recorded.is_initialised { Origin::Initialised } else { Origin::FirstUse };
    of_calls(stack, caller, recorded.kind, origin, symbols)
}

/// The variable at an address at some time; `None` if the address is not in a file's data.
pub fn of_address(
    (address, epoch): (u64, Epoch),
    kind: Kind,
    modules: &Modules,
    symbols: &mut Symbols,
) -> Option<(Identity, Name)> {
    let (file, place, variable) = symbols.variable(address, epoch, modules)?;
    Some((Identity::Variable(file, place, kind as u32), of_variable(variable)))
}

/// A place in code, with the informative call there.
pub fn of_calls(
    stack: StackId,
    caller: u64,
    kind: Kind,
    origin: Origin,
    symbols: &Symbols,
) -> (Identity, Name) {
    let kind = kind as u32;
    match symbols.informative(stack) {
        Some(found) => {
            let name = of_code(symbols.frame(stack, found.at), origin);
            (Identity::Code(found.file, found.address, found.inlined, kind), name)
        }
        None => {
            // Without the address, which is another one in each run.
            let text = MADE.to_owned();
            (Identity::Unplaced(caller, kind), Name::new(text.clone(), text, None, origin))
        }
    }
}

impl Name {
    fn new(full: String, short: String, module: Option<String>, origin: Origin) -> Self {
        Self { full, short, module, origin }
    }
}

fn of_variable(variable: Variable) -> Name {
    let Variable { module, symbol, offset } = variable;
    let (full, short) = match &symbol {
        Some(symbol) => {
            let short = with_offset(&plain_path(symbol).join("::"), offset);
            (format!("{} ({module})", with_offset(symbol, offset)), short)
        }
        None => {
            let text = with_offset(&module, offset);
            (text.clone(), text)
        }
    };
    Name::new(full, short, Some(module), Origin::Variable)
}

fn of_code(frame: &Frame, origin: Origin) -> Name {
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
    Name::new(full, short, Some(module), origin)
}

fn with_offset(name: &str, offset: u64) -> String {
    if offset == 0 { name.to_owned() } else { format!("{name}+{offset:#x}") }
}
