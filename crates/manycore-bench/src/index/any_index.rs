//! An index behind an interface that hides its structure, keys and values, so that the operations
//! on indexes are compiled once. Each operation then needs a call through a pointer, which takes a
//! nanosecond natively and no simulated time.

use super::data::{KeyKind, Scan, Seen, ValueSize};
use super::task::Task;

/// An index that threads share.
pub trait AnyIndex: Send + Sync {
    /// The calling thread's access to the index.
    fn handle(&self) -> Box<dyn IndexHandle + '_>;

    /// Visits what the mechanism has counted.
    fn statistics(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}

    /// Checks whether the index is consistent, if it has such a check.
    ///
    /// # Panics
    ///
    /// If it is not.
    fn check(&self) {}
}

/// A thread's handle of an index. Keys are given by their numbers.
pub trait IndexHandle {
    /// Reads the key's value.
    fn get(&mut self, key: u64) -> Seen;

    /// Sets the key's value to the one with this count, whether or not the key exists.
    fn put(&mut self, key: u64, count: u32);

    /// Sets the key's value to the one with the next count; returns whether the key exists.
    fn modify(&mut self, key: u64) -> bool;

    /// Reads this many entries at the most, from the key on, in the order of keys.
    ///
    /// # Panics
    ///
    /// If keys are in no order here. The index's [`Contender`] says whether it has scans.
    fn scan(&mut self, _from: u64, most: u32) -> Scan {
        unreachable!("a scan of {most} keys that are in no order: its task was not checked")
    }
}

/// What can be done with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether its keys are in order, so that it can scan.
    pub scans: bool,
    /// Whether it reads a value and writes another one in one step.
    pub modifies: bool,
    /// Whether its keys may be strings.
    pub strings: bool,
    /// Whether its values may be larger than a word.
    pub fields: bool,
    /// Whether a look-up may miss an existing key while another thread replaces the value.
    pub misses: bool,
}

impl Abilities {
    /// All.
    pub const ALL: Self =
        Self { scans: true, modifies: true, strings: true, fields: true, misses: false };

    /// All that needs no order.
    pub const UNORDERED: Self = Self { scans: false, ..Self::ALL };

    /// With keys and values that are numbers.
    #[must_use]
    pub const fn of_numbers(self) -> Self {
        Self { strings: false, fields: false, ..self }
    }

    /// Without a step that both reads and writes.
    #[must_use]
    pub const fn in_two_steps(self) -> Self {
        Self { modifies: false, ..self }
    }
}

/// An index that takes part.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// What it is called after `--sync`, or after `--against`.
    pub name: &'static str,
    /// The structure that it is, or stands for.
    pub structure: &'static str,
    /// What can be done with it.
    pub abilities: Abilities,
    /// Makes an empty one.
    pub make: fn(&Task) -> Box<dyn AnyIndex>,
}

impl Contender {
    /// Why it cannot do a task; `None` if it can.
    pub(crate) fn refusal(&self, task: &Task) -> Option<String> {
        let Self { name, structure, abilities, .. } = self;
        let wants = |wanted: bool, has: bool, what: &str| {
            (wanted && !has).then(|| format!("{structure} by {name} {what}"))
        };
        let no_order =
            format!("has no scans, of which {} consists: leave one of them out", task.mix);
        wants(task.mix.scans(), abilities.scans, &no_order)
            .or(wants(
                task.records.key == KeyKind::String,
                abilities.strings,
                "takes no strings: use --key u64, or leave it out",
            ))
            .or(wants(
                task.records.value == ValueSize::Field,
                abilities.fields,
                "has values of a word only: use --value 8, or leave it out",
            ))
    }
}

/// The one of this structure and name.
pub(crate) fn find(
    contenders: &'static [Contender],
    structure: &str,
    name: &str,
) -> Option<&'static Contender> {
    contenders.iter().find(|known| known.structure == structure && known.name == name)
}

/// The names of those of a structure.
pub(crate) fn names(contenders: &'static [Contender], structure: &str) -> Vec<&'static str> {
    contenders.iter().filter(|known| known.structure == structure).map(|known| known.name).collect()
}

/// Expands the following code for each kind of keys and values of a task. The code refers to the
/// kinds by these names.
macro_rules! for_kinds {
    ($task:expr, $key:ident, $value:ident => $make:expr) => {{
        use $crate::index::data::{Field, KeyKind, ValueSize};
        macro_rules! of {
            ($k:ty, $v:ty) => {{
                type $key = $k;
                type $value = $v;
                Box::new($make) as Box<dyn $crate::index::any_index::AnyIndex>
            }};
        }
        match ($task.records.key, $task.records.value) {
            (KeyKind::U64, ValueSize::Word) => of!(u64, u64),
            (KeyKind::U64, ValueSize::Field) => of!(u64, Field),
            (KeyKind::String, ValueSize::Word) => of!(String, u64),
            (KeyKind::String, ValueSize::Field) => of!(String, Field),
        }
    }};
}
pub(crate) use for_kinds;
