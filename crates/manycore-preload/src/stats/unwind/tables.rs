//! The compilers' tables for unwinding (`.eh_frame`): where a function has kept its caller's
//! registers.
//!
//! Read without the unwinder of libgcc. That takes a lock of pthreads if a program has registered
//! code of its own, as every program with LLVM's just-in-time compiler does; the profiler unwinds
//! where locks are taken, and would wait for itself. And it reads whatever an address leads to.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, Evaluation,
    EvaluationResult, EvaluationStorage, LittleEndian, Piece, Register, RegisterRule,
    UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};

use super::frame::Frame;
use super::memory::Memory;
use super::rule::{self, Rule};
use crate::stats::loaded;

/// The registers' numbers in the tables.
#[cfg(target_arch = "x86_64")]
mod register {
    use gimli::{Register, X86_64};
    pub const STACK: Register = X86_64::RSP;
    pub const BASE: Register = X86_64::RBP;
}
#[cfg(target_arch = "aarch64")]
mod register {
    use gimli::{AArch64, Register};
    pub const STACK: Register = AArch64::SP;
    pub const BASE: Register = AArch64::X29;
}

type Bytes = EndianSlice<'static, LittleEndian>;
type Tables = EhFrame<Bytes>;

/// Room on the stack, since nothing is allocated here. A function's tables have rules for at most
/// the 20 registers that it has to preserve, or all 17 of an interrupted one, and remember one set.
struct InPlace;

type Row = UnwindTableRow<usize, InPlace>;

impl UnwindContextStorage<usize> for InPlace {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = [Row; 3];
}

impl EvaluationStorage<Bytes> for InPlace {
    type Stack = [Value; 8];
    type ExpressionStack = [(Bytes, Bytes); 1];
    type Result = [Piece<Bytes>; 1];
}

/// The caller's frame, whatever it is. Keeps the rule that leads to it if it is a simple one.
pub fn caller(frame: &Frame, memory: &mut Memory) -> Option<Frame> {
    // After a call that does not return, the next instruction may be another function's.
    let address = (frame.next - usize::from(!frame.is_interrupted)) as u64;
    let header = loaded::of(frame.next)??.eh_frame_header;
    // SAFETY: the calling thread has a call of the object on its stack, so nothing unloads it; and
    // gimli reads its tables alone. Beyond a coroutine's first call, the address may be another
    // object's: it is loaded, as `of` has found, unless another thread unloads it meanwhile.
    let bytes = |from: usize| unsafe { loaded::bytes_from(from) };
    let bases = BaseAddresses::default().set_eh_frame_hdr(header as u64);
    let header = EhFrameHdr::new(bytes(header)?, LittleEndian);
    let header = header.parse(&bases, size_of::<usize>() as u8).ok()?;
    let start = header.eh_frame_ptr().direct().ok()?;
    let tables = EhFrame::new(bytes(start as usize)?, LittleEndian);
    let bases = bases.set_eh_frame(start);
    let function =
        header.table()?.fde_for_address(&tables, &bases, address, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::<usize, InPlace>::new_in();
    let row = function.unwind_info_for_address(&tables, &bases, &mut context, address).ok()?;

    let to_return = function.cie().return_address_register();
    let is_interrupted = function.is_signal_trampoline();
    if !is_interrupted && let Some(rule) = simple(row, to_return) {
        rule::keep(frame, rule);
    }
    let encoding = function.cie().encoding();
    let mut rules = Rules { frame, memory, tables: &tables, encoding };
    let stack = rules.canonical_address(row.cfa())?;
    Some(Frame {
        next: rules.value(row.register(to_return), stack, None)?,
        stack,
        base: rules.value(row.register(register::BASE), stack, Some(frame.base))?,
        is_interrupted,
    })
}

/// The rule of nearly all functions: every register is a few words from the caller's stack pointer,
/// or where it was.
fn simple(row: &Row, to_return: Register) -> Option<Rule> {
    let &CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
    if !matches!(register, register::STACK | register::BASE) {
        return None;
    }
    let Some(RegisterRule::Offset(next)) = row.register(to_return) else { return None };
    let base = match row.register(register::BASE) {
        None | Some(RegisterRule::SameValue) => None,
        Some(RegisterRule::Offset(offset)) => Some(i16::try_from(offset).ok()?),
        Some(_) => return None,
    };
    Some(Rule {
        is_from_base: register == register::BASE,
        above: u16::try_from(offset).ok()?,
        base,
        next: i16::try_from(next).ok()?,
    })
}

/// What rules of the tables mean in a frame.
struct Rules<'a> {
    frame: &'a Frame,
    memory: &'a mut Memory,
    tables: &'a Tables,
    encoding: Encoding,
}

impl Rules<'_> {
    /// The register's value, in this frame; `None` if it is not known.
    fn register(&self, register: Register) -> Option<usize> {
        match register {
            register::STACK => Some(self.frame.stack),
            register::BASE => Some(self.frame.base),
            _ => None,
        }
    }

    /// The caller's stack pointer.
    fn canonical_address(&mut self, rule: &CfaRule<usize>) -> Option<usize> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(self.register(*register)?.wrapping_add_signed(*offset as isize))
            }
            CfaRule::Expression(expression) => self.evaluate(*expression, None),
        }
    }

    /// The value that a register has in the caller, if that has the stack pointer `stack`.
    fn value(
        &mut self,
        rule: Option<RegisterRule<usize>>,
        stack: usize,
        unchanged: Option<usize>,
    ) -> Option<usize> {
        let at = |offset: i64| stack.wrapping_add_signed(offset as isize);
        match rule {
            None | Some(RegisterRule::SameValue) => unchanged,
            // The outermost function has nothing to return to. Another register is not read.
            Some(RegisterRule::Undefined) => unchanged.map(|_| 0),
            Some(RegisterRule::Offset(offset)) => self.memory.word(at(offset)),
            Some(RegisterRule::ValOffset(offset)) => Some(at(offset)),
            Some(RegisterRule::Register(other)) => self.register(other),
            Some(RegisterRule::Expression(expression)) => {
                let address = self.evaluate(expression, Some(stack))?;
                self.memory.word(address)
            }
            Some(RegisterRule::ValExpression(expression)) => self.evaluate(expression, Some(stack)),
            Some(_) => None,
        }
    }

    /// The value of an expression, to which `first` is given.
    fn evaluate(
        &mut self,
        expression: UnwindExpression<usize>,
        first: Option<usize>,
    ) -> Option<usize> {
        let code = expression.get(self.tables).ok()?;
        let mut evaluation = Evaluation::<Bytes, InPlace>::new_in(code.0, self.encoding);
        evaluation.set_max_iterations(100);
        if let Some(first) = first {
            evaluation.set_initial_value(first as u64);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.register(register)? as u64);
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    let value = Value::Generic(self.memory.word(address as usize)? as u64);
                    evaluation.resume_with_memory(value).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.value_result()? {
            Value::Generic(value) => Some(value as usize),
            _ => None,
        }
    }
}
