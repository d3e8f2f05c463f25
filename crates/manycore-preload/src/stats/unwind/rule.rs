//! What the tables say of most addresses, in a word, and kept: to look it up takes 100 times as
//! long as to follow it.

use core::sync::atomic::{AtomicU64, Ordering};

use super::frame::Frame;
use super::memory::Memory;
use crate::stats::index::key;
use crate::stats::modules;

/// Where a function that has called another one has its caller's registers. Offsets are from the
/// caller's stack pointer.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Whether the caller's stack pointer is known from the frame pointer; otherwise from the stack
    /// pointer.
    pub is_from_base: bool,
    /// How far above that.
    pub above: u16,
    /// Where the caller's frame pointer is kept; `None` if the register still has it.
    pub base: Option<i16>,
    /// Where the address is to which the function returns.
    pub next: i16,
}

impl Rule {
    /// The caller's frame.
    pub fn caller(self, frame: &Frame, memory: &mut Memory) -> Option<Frame> {
        let from = if self.is_from_base { frame.base } else { frame.stack };
        let stack = from.wrapping_add(self.above.into());
        let mut at = |offset: i16| memory.word(stack.wrapping_add_signed(offset.into()));
        let next = at(self.next)?;
        let base = self.base.map_or(Some(frame.base), at)?;
        Some(Frame { next, stack, base, is_interrupted: false })
    }

    fn to_word(self) -> u64 {
        let flags = u64::from(self.is_from_base) | u64::from(self.base.is_some()) << 1;
        let offset = |offset: i16| u64::from(offset.cast_unsigned());
        flags << 48
            | u64::from(self.above) << 32
            | offset(self.base.unwrap_or(0)) << 16
            | offset(self.next)
    }

    fn from_word(word: u64) -> Self {
        let offset = |shift: u32| ((word >> shift) as u16).cast_signed();
        Self {
            is_from_base: word >> 48 & 1 != 0,
            above: (word >> 32) as u16,
            base: (word >> 49 & 1 != 0).then(|| offset(16)),
            next: offset(0),
        }
    }
}

/// Rules by address. A large program has some thousand places from which locks are reached.
static KNOWN: [Known; 1 << 13] =
    [const { Known { key_and_rule: AtomicU64::new(0), rule: AtomicU64::new(0) } }; 1 << 13];

/// A rule, and which address it is for: the exclusive or of the key and the rule. If another thread
/// writes meanwhile, the two words do not fit together, and there is no rule.
struct Known {
    key_and_rule: AtomicU64,
    rule: AtomicU64,
}

// Relaxed throughout: the two words are checked against each other.

/// The rule for the place where a call is, if it is known.
pub fn of(frame: &Frame) -> Option<Rule> {
    let (key, known) = place(frame);
    let rule = known.rule.load(Ordering::Relaxed);
    (known.key_and_rule.load(Ordering::Relaxed) ^ rule == key).then(|| Rule::from_word(rule))
}

/// Keeps a rule, in place of another.
pub fn keep(frame: &Frame, rule: Rule) {
    let (key, known) = place(frame);
    let rule = rule.to_word();
    known.rule.store(rule, Ordering::Relaxed);
    known.key_and_rule.store(key ^ rule, Ordering::Relaxed);
}

/// The key of a place in the code that is loaded now, and where its rule is kept.
fn place(frame: &Frame) -> (u64, &'static Known) {
    let how = u64::from(frame.is_interrupted) | u64::from(modules::epoch()) << 1;
    let key = key([frame.next as u64, how]);
    (key, &KNOWN[(key >> 40) as usize % KNOWN.len()])
}
