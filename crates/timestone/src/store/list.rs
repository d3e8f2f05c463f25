//! A list that is changed anywhere.
//!
//! ```text
//!   root   | the last node | the first node |
//!   node   | the one before | the one behind | value, to whole words |
//! ```
//!
//! The root stands before the first node and behind the last, as one of them: so each node has two
//! neighbours, and a change in the middle conflicts with changes of those only.

use std::marker::PhantomData;

use zerocopy::IntoBytes;

use super::catalog;
use super::member::Member;
use super::transaction::{Session, Stop, Transaction};
use crate::Persist;
use crate::error::Result;

/// Words of the root.
pub const ROOT_WORDS: usize = 2;
/// The indices of two words in the root and in nodes: the previous node, and the next one.
pub const BEFORE: usize = 0;
pub const BEHIND: usize = 1;

/// Values in an order that the program chooses, in a [`Store`](super::Store), by name. Copies of it
/// are the same list.
///
/// ```
/// use timestone::{List, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let steps: List<u64> = store.list("steps")?;
/// let mut me = store.register()?;
/// me.run(|tx| {
///     steps.push_back(tx, 10)?;
///     steps.push_back(tx, 30)?;
///     let mut cursor = steps.cursor(tx);
///     while cursor.value().is_some_and(|value| value < 20) {
///         cursor.advance();
///     }
///     cursor.insert(20)
/// })?;
/// assert_eq!(me.read(|now| steps.iter(now).collect::<Vec<_>>()), [10, 20, 30]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct List<T> {
    root: u64,
    types: PhantomData<fn(T) -> T>,
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

/// A position in a [`List`]: at a value, or behind the last one.
pub struct Cursor<'t, 'm, 's, T> {
    list: List<T>,
    tx: &'t mut Transaction<'m, 's>,
    /// The node, or the root behind the last one.
    at: u64,
}

impl<T: Persist> List<T> {
    const NODE_WORDS: usize = 2 + size_of::<T>().div_ceil(8);

    pub(super) fn open(member: &mut Member<'_>, name: &str) -> Result<Self> {
        let schema = Self::schema();
        let root = member.run(|tx| catalog::root(tx, name, &schema, &[0; ROOT_WORDS]))?;
        Ok(Self::at(root))
    }

    pub(super) fn at(root: u64) -> Self {
        Self { root, types: PhantomData }
    }

    /// What the catalog says of it.
    pub(super) fn schema() -> String {
        format!("a list of {}", catalog::type_text::<T>())
    }

    fn words(&self, at: u64) -> usize {
        if at == self.root { ROOT_WORDS } else { Self::NODE_WORDS }
    }

    /// The node on one side of another, or the root.
    fn beside(&self, session: &impl Session, at: u64, side: usize) -> u64 {
        session.note(at, self.words(at));
        // An empty list's root has zeros.
        match session.object(at, self.words(at))[side] {
            0 => self.root,
            node => node,
        }
    }

    fn lock<'t>(&self, tx: &'t mut Transaction<'_, '_>, at: u64) -> Result<&'t mut [u64], Stop> {
        tx.lock_words(at, self.words(at))
    }

    fn value(&self, session: &impl Session, at: u64) -> Option<T> {
        if at == self.root {
            return None;
        }
        let words = session.object(at, Self::NODE_WORDS);
        let (value, _) =
            T::read_from_prefix(words[2..].as_bytes()).expect("a node has room for its value");
        Some(value)
    }

    /// A node between one and the one behind it.
    fn insert_between(
        &self,
        tx: &mut Transaction<'_, '_>,
        (before, behind): (u64, u64),
        value: &T,
    ) -> Result<u64, Stop> {
        let mut words = vec![0; Self::NODE_WORDS];
        (words[BEFORE], words[BEHIND]) = (before, behind);
        words[2..].as_mut_bytes()[..size_of::<T>()].copy_from_slice(value.as_bytes());
        let node = tx.allocate(&words)?;
        self.lock(tx, before)?[BEHIND] = node;
        self.lock(tx, behind)?[BEFORE] = node;
        Ok(node)
    }

    /// Takes a node out; the one behind it.
    fn remove_at(&self, tx: &mut Transaction<'_, '_>, at: u64) -> Result<u64, Stop> {
        let node = self.lock(tx, at)?;
        let (before, behind) = (node[BEFORE], node[BEHIND]);
        self.lock(tx, before)?[BEHIND] = behind;
        self.lock(tx, behind)?[BEFORE] = before;
        tx.free_words(at, Self::NODE_WORDS)?;
        Ok(behind)
    }

    /// Puts a value before all others.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`]; [`Error::Full`](crate::Error::Full) if the
    /// heap is full.
    pub fn push_front(&self, tx: &mut Transaction<'_, '_>, value: T) -> Result<(), Stop> {
        let first = self.beside(tx, self.root, BEHIND);
        self.insert_between(tx, (self.root, first), &value).map(|_| ())
    }

    /// Puts a value behind all others.
    ///
    /// # Errors
    ///
    /// As of [`push_front`](Self::push_front).
    pub fn push_back(&self, tx: &mut Transaction<'_, '_>, value: T) -> Result<(), Stop> {
        let last = self.beside(tx, self.root, BEFORE);
        self.insert_between(tx, (last, self.root), &value).map(|_| ())
    }

    /// Takes the first value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn pop_front(&self, tx: &mut Transaction<'_, '_>) -> Result<Option<T>, Stop> {
        self.pop(tx, BEHIND)
    }

    /// Takes the last value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn pop_back(&self, tx: &mut Transaction<'_, '_>) -> Result<Option<T>, Stop> {
        self.pop(tx, BEFORE)
    }

    fn pop(&self, tx: &mut Transaction<'_, '_>, side: usize) -> Result<Option<T>, Stop> {
        let at = self.beside(tx, self.root, side);
        let Some(value) = self.value(tx, at) else { return Ok(None) };
        self.remove_at(tx, at)?;
        Ok(Some(value))
    }

    /// At the first value, to change the list there.
    pub fn cursor<'t, 'm, 's>(&self, tx: &'t mut Transaction<'m, 's>) -> Cursor<'t, 'm, 's, T> {
        let at = self.beside(tx, self.root, BEHIND);
        Cursor { list: *self, tx, at }
    }

    /// All values, the first one first.
    pub fn iter<'s, S: Session>(&self, session: &'s S) -> impl Iterator<Item = T> + use<'s, S, T> {
        let list = *self;
        let mut at = list.beside(session, list.root, BEHIND);
        std::iter::from_fn(move || {
            let value = list.value(session, at)?;
            at = list.beside(session, at, BEHIND);
            Some(value)
        })
    }

    /// The first value.
    pub fn first(&self, session: &impl Session) -> Option<T> {
        self.value(session, self.beside(session, self.root, BEHIND))
    }

    /// The last value.
    pub fn last(&self, session: &impl Session) -> Option<T> {
        self.value(session, self.beside(session, self.root, BEFORE))
    }

    /// How many values there are: counts them.
    pub fn len(&self, session: &impl Session) -> usize {
        self.iter(session).count()
    }

    /// Whether there is no value.
    pub fn is_empty(&self, session: &impl Session) -> bool {
        self.first(session).is_none()
    }
}

impl<T: Persist> Cursor<'_, '_, '_, T> {
    /// The value here; none behind the last one.
    pub fn value(&self) -> Option<T> {
        self.list.value(self.tx, self.at)
    }

    /// Moves to the next value; from behind the last one, to the first.
    pub fn advance(&mut self) {
        self.at = self.list.beside(self.tx, self.at, BEHIND);
    }

    /// Inserts a value before the present one, where the cursor stays.
    ///
    /// # Errors
    ///
    /// As of [`List::push_front`].
    pub fn insert(&mut self, value: T) -> Result<(), Stop> {
        let before = self.list.beside(self.tx, self.at, BEFORE);
        self.list.insert_between(self.tx, (before, self.at), &value).map(|_| ())
    }

    /// Replaces the value here; none if there is none.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn replace(&mut self, value: T) -> Result<Option<T>, Stop> {
        let Some(old) = self.value() else { return Ok(None) };
        let words = self.list.lock(self.tx, self.at)?;
        words[2..].as_mut_bytes()[..size_of::<T>()].copy_from_slice(value.as_bytes());
        Ok(Some(old))
    }

    /// Removes the value here, and goes on to the next one; none if there is no value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn remove(&mut self) -> Result<Option<T>, Stop> {
        let Some(value) = self.value() else { return Ok(None) };
        self.at = self.list.remove_at(self.tx, self.at)?;
        Ok(Some(value))
    }
}

impl<T> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Cursor<'_, '_, '_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("at", &self.at).finish_non_exhaustive()
    }
}
