//! A call on a stack.

use serde::{Deserialize, Serialize};

/// A call on the way to a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The file's name, without its directory; with `(deleted)` or `(replaced)` if it is no longer
    /// the file that the program had.
    pub module: String,
    /// The address in the file, as in its symbol table.
    pub address: u64,
    /// The function; none in a stripped file.
    pub function: Option<String>,
    /// The offset from the function's start; none if the call was inlined, or the function was made
    /// while the program ran.
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

    /// A call of which only the address is known.
    pub(crate) fn unknown(module: &str, address: u64) -> Self {
        let module = module.to_owned();
        Self { module, address, function: None, offset: None, file: None, line: None }
    }
}
