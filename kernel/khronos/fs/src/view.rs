//! Reading names: as they are now, or as of one moment.
//!
//! Results cannot leave their view, because their lifetime is the view's. So they cannot be
//! compared with another view's results, or be mistaken for the present state.
//!
//! ```compile_fail
//! use khronos_fs::{At, Fs, Options, Sync};
//!
//! let fs = Fs::new(Options::new(Sync::MvRlu));
//! let mut cx = fs.context();
//! let mut kept = None;
//! cx.current(|view| {
//!     kept = view.find(view.root(), b"name").ok().flatten(); // borrowed data escapes
//!     Ok(())
//! });
//! ```

use core::cell::RefCell;

use alloc::vec::Vec;

use manycore::session::{Conflict, View};

use crate::calls::attributes::Stat;
use crate::errno::Errno;
use crate::fs::{Ask, Cx};
use crate::inode::Kind;
use crate::name::Key;
use crate::sync::{InodeRef, Stop, Tx};

/// Something that a view has found.
#[derive(Clone, Copy)]
pub struct Item<'v>(InodeRef<'v>);

impl Item<'_> {
    /// Its number.
    pub fn number(self) -> u64 {
        self.0.number()
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        self.0.kind()
    }

    /// Its present attributes. Both views have them, because attributes are not part of the names.
    pub fn stat(self) -> Stat {
        Stat::of(&self.0)
    }
}

impl core::fmt::Debug for Item<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Item").field(&self.number()).finish()
    }
}

/// Each name as of its own look-up. After two look-ups, the first name may have been removed by the
/// time of the second.
pub struct Current<'a, 'v> {
    tx: &'a dyn Tx<'v>,
    root: InodeRef<'v>,
    seed: u64,
}

/// All names as of one moment, under `rlu` and `mvrlu`; under the others as [`Current`].
///
/// The same question always has the same answer. So asking a view twice about one name is a
/// mistake, made by code that waits for a change. With debug assertions or the feature `checks` it
/// panics, under every mechanism.
pub struct Moment<'a, 'v> {
    now: Current<'a, 'v>,
    asked: RefCell<Vec<(u64, u64)>>,
}

/// A view has ended, and the call has to begin another.
#[derive(Debug)]
#[must_use = "return it as the error"]
pub struct Again(());

impl<'v> Current<'_, 'v> {
    /// The root.
    pub fn root(&self) -> Item<'v> {
        Item(self.root)
    }

    /// What a name leads to.
    ///
    /// # Errors
    ///
    /// [`Errno::NotDirectory`], [`Errno::NameTooLong`].
    pub fn find(&self, directory: Item<'v>, name: &[u8]) -> Result<Option<Item<'v>>, Errno> {
        directory.0.directory()?;
        let key = Key::new(name, self.seed)?;
        Ok(self.tx.find(directory.0, key).map(Item))
    }

    /// Ends the view. Its results are not valid afterwards.
    pub fn again(self) -> Again {
        Again(())
    }
}

impl<'v> Moment<'_, 'v> {
    /// The root.
    pub fn root(&self) -> Item<'v> {
        self.now.root()
    }

    /// What a name leads to.
    ///
    /// # Errors
    ///
    /// [`Errno::NotDirectory`], [`Errno::NameTooLong`].
    ///
    /// # Panics
    ///
    /// If it was asked before, where that is checked.
    pub fn find(&self, directory: Item<'v>, name: &[u8]) -> Result<Option<Item<'v>>, Errno> {
        if cfg!(any(debug_assertions, feature = "checks")) {
            let question = (directory.number(), Key::new(name, self.now.seed)?.hash);
            let mut asked = self.asked.borrow_mut();
            assert!(
                !asked.contains(&question),
                "a moment is asked twice for the same name: its answer never changes"
            );
            asked.push(question);
        }
        self.now.find(directory, name)
    }

    /// Visits all names of a directory.
    ///
    /// # Errors
    ///
    /// [`Errno::NotDirectory`].
    pub fn each(
        &self,
        directory: Item<'v>,
        mut visit: impl FnMut(&[u8], Item<'v>),
    ) -> Result<(), Errno> {
        directory.0.directory()?;
        self.now.tx.each(directory.0, 0, &mut |key, found| {
            visit(key.bytes, Item(found));
            true
        });
        Ok(())
    }
}

impl Cx<'_> {
    /// Reads the present names. It is called again if it returns [`Again`].
    pub fn current<R>(
        &mut self,
        mut f: impl for<'v> FnMut(Current<'_, 'v>) -> Result<R, Again>,
    ) -> R {
        let looked = self.run(View::Latest, Ask::default(), |tx, brought, _| {
            let now = Current { tx, root: InodeRef::root(&brought), seed: brought.seed };
            f(now).map_err(|Again(())| Stop::Again(Conflict::Retry))
        });
        looked.expect("a view of the root does not fail").0
    }

    /// Looks at names as they were at one moment.
    pub fn moment<R>(&mut self, f: impl for<'v> FnOnce(Moment<'_, 'v>) -> R) -> R {
        let mut f = Some(f);
        let looked = self.run(View::Snapshot, Ask::default(), |tx, brought, _| {
            let now = Current { tx, root: InodeRef::root(&brought), seed: brought.seed };
            let f = f.take().expect("a view that only reads is not made again");
            Ok(f(Moment { now, asked: RefCell::default() }))
        });
        looked.expect("a view of the root does not fail").0
    }
}
