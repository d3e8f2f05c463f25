//! A queue: a list of nodes.
//!
//! ```text
//!   root    | place of `front` | place of `back` |
//!   front   | the node before the first |           back    | the last node |
//!   node    | next | value, to whole words |
//! ```
//!
//! The node before the first was the first once; at the begin it has no value. So a push and a pop
//! change different objects, and do not conflict, also if there is one value only.

use std::marker::PhantomData;

use zerocopy::IntoBytes;

use super::catalog;
use super::member::Member;
use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use crate::Persist;
use crate::error::Result;

pub const ROOT_WORDS: usize = 2;
/// Words of `front` and of `back`.
pub const END_WORDS: usize = 1;

/// A queue of values in the order of their pushes, in a [`Store`](super::Store), by name. Copies of
/// this value are the same queue.
///
/// Two pushes conflict with each other, and so do two pops. A push and a pop do not.
///
/// ```
/// use timestone::{Queue, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let jobs: Queue<u64> = store.queue("jobs")?;
/// let mut me = store.register()?;
/// me.run(|tx| jobs.push(tx, 1).and_then(|()| jobs.push(tx, 2)))?;
/// assert_eq!(me.run(|tx| jobs.pop(tx))?, Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queue<T> {
    front: u64,
    back: u64,
    types: PhantomData<fn(T) -> T>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Queue<T> {}

impl<T: Persist> Queue<T> {
    const NODE_WORDS: usize = 1 + size_of::<T>().div_ceil(8);

    pub(super) fn open(member: &mut Member<'_>, name: &str) -> Result<Self> {
        let schema = Self::schema();
        member.run(|tx| {
            let root = catalog::root(tx, name, &schema, &[0; ROOT_WORDS])?;
            if tx.object(root, ROOT_WORDS)[0] == 0 {
                let node = tx.allocate(&vec![0; Self::NODE_WORDS])?;
                let ends = [tx.allocate(&[node])?, tx.allocate(&[node])?];
                tx.lock_words(root, ROOT_WORDS)?[..ROOT_WORDS].copy_from_slice(&ends);
            }
            Ok(Self::at(tx, root))
        })
    }

    pub(super) fn at(session: &impl Session, root: u64) -> Self {
        let words = session.object(root, ROOT_WORDS);
        Self { front: words[0], back: words[1], types: PhantomData }
    }

    /// What the catalog says of it.
    pub(super) fn schema() -> String {
        format!("a queue of {}", catalog::type_text::<T>())
    }

    /// Puts a value behind all others.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`]; [`Error::Full`](crate::Error::Full) if the
    /// heap is full.
    pub fn push(&self, tx: &mut Transaction<'_, '_>, value: T) -> Result<(), Stop> {
        let mut words = vec![0; Self::NODE_WORDS];
        words[1..].as_mut_bytes()[..size_of::<T>()].copy_from_slice(value.as_bytes());
        let node = tx.allocate(&words)?;
        let back = tx.lock_words(self.back, END_WORDS)?;
        let last = std::mem::replace(&mut back[0], node);
        tx.lock_words(last, Self::NODE_WORDS)?[0] = node;
        Ok(())
    }

    /// Takes the first value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn pop(&self, tx: &mut Transaction<'_, '_>) -> Result<Option<T>, Stop> {
        let (before, first) = self.find_first(tx);
        if first == 0 {
            // A push would change it.
            tx.note(before, Self::NODE_WORDS);
            return Ok(None);
        }
        let value = Self::value(tx.object(first, Self::NODE_WORDS));
        tx.lock_words(self.front, END_WORDS)?[0] = first;
        tx.free_words(before, Self::NODE_WORDS)?;
        Ok(Some(value))
    }

    /// The node before the first one, and the first one or 0.
    fn find_first(&self, session: &impl Session) -> (u64, u64) {
        let before = session.object(self.front, END_WORDS)[0];
        (before, session.object(before, Self::NODE_WORDS)[0])
    }

    fn value(node: &[u64]) -> T {
        let (value, _) =
            T::read_from_prefix(node[1..].as_bytes()).expect("a node has room for its value");
        value
    }

    /// All values, the first one first.
    pub fn iter<'s, S: Session>(&self, session: &'s S) -> impl Iterator<Item = T> + use<'s, S, T> {
        session.note(self.front, END_WORDS);
        let mut node = session.object(self.front, END_WORDS)[0];
        std::iter::from_fn(move || {
            session.note(node, Self::NODE_WORDS);
            node = session.object(node, Self::NODE_WORDS)[0];
            (node != 0).then(|| Self::value(session.object(node, Self::NODE_WORDS)))
        })
    }

    /// The first value.
    pub fn first(&self, session: &impl Session) -> Option<T> {
        self.iter(session).next()
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

impl<T> std::fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("front", &self.front).finish_non_exhaustive()
    }
}
