//! Operations: functions whose calls are stored instead of their writes.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::transaction::{Stop, Transaction};
use crate::error::{Error, Result};

/// A function with a name and a version that runs as a transaction. The journal stores the call and
/// its arguments instead of the written words, if the call is shorter. Recovery then calls the
/// function again.
///
/// So the function must act the same again: its effects may depend only on its arguments, on the
/// store's contents, and on the results of [`Transaction::input`]. Recovery compares a digest of
/// all that the function writes. If the digest differs, it refuses the store with
/// [`Error::ReplayDiffers`]. If you change the function's effects, change its version.
///
/// The arguments are plain data of one type, or a slice of it.
///
/// ```
/// use timestone::{Map, Operation, Options, Stop, Store, Transaction};
///
/// /// Adds a sum to each of the accounts up to one.
/// fn pay_all(tx: &mut Transaction<'_, '_>, [last, sum]: &[u64; 2]) -> Result<(), Stop> {
///     let accounts: Map<u64, u64> = tx.map("accounts")?;
///     for account in 0..=*last {
///         accounts.update(tx, &account, |balance| *balance += sum)?;
///     }
///     Ok(())
/// }
///
/// const PAY_ALL: Operation<[u64; 2]> = Operation::new("pay all", 1, pay_all);
///
/// let directory = tempfile::tempdir()?;
/// let options = Options::default().with_operations(&[&PAY_ALL]);
/// let store = Store::open_with(directory.path(), options)?;
/// let accounts: Map<u64, u64> = store.map("accounts")?;
/// let mut me = store.register()?;
/// me.run(|tx| (0..100).try_for_each(|account| accounts.insert(tx, account, 0).map(|_| ())))?;
/// me.call(&PAY_ALL, &[99, 10])?; // 48 bytes in the journal, rather than 2.4 KB
/// assert_eq!(me.read(|now| accounts.get(now, &50)), Some(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Operation<A: ?Sized, R = ()> {
    name: &'static str,
    version: u32,
    run: fn(&mut Transaction<'_, '_>, &A) -> Result<R, Stop>,
}

impl<A: ?Sized, R> Operation<A, R> {
    /// Makes an operation of a function, with the name and the version by which stores know it.
    pub const fn new(
        name: &'static str,
        version: u32,
        run: fn(&mut Transaction<'_, '_>, &A) -> Result<R, Stop>,
    ) -> Self {
        Self { name, version, run }
    }

    pub(super) fn run(&self, tx: &mut Transaction<'_, '_>, arguments: &A) -> Result<R, Stop> {
        (self.run)(tx, arguments)
    }
}

impl<A: ?Sized, R> fmt::Debug for Operation<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} version {}", self.name, self.version)
    }
}

/// The possible arguments of an operation: plain data, or a slice of it.
pub trait Arguments: FromBytes + IntoBytes + Immutable + KnownLayout {}

impl<A: FromBytes + IntoBytes + Immutable + KnownLayout + ?Sized> Arguments for A {}

/// An [`Operation`] without the type of its arguments, for a store: see
/// [`Options::with_operations`](super::Options::with_operations).
pub trait Registered: fmt::Debug + Sync {
    /// The name that stores know it by.
    fn name(&self) -> &str;

    /// The version that stores know it by.
    fn version(&self) -> u32;

    /// Calls the function.
    ///
    /// # Errors
    ///
    /// The function's errors, and [`Stop::Cancel`] if the bytes are not valid arguments of it.
    fn replay(&self, tx: &mut Transaction<'_, '_>, arguments: &[u8]) -> Result<(), Stop>;
}

impl<A: Arguments + ?Sized, R> Registered for Operation<A, R> {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn replay(&self, tx: &mut Transaction<'_, '_>, arguments: &[u8]) -> Result<(), Stop> {
        // In words, as aligned as plain data has to be.
        let mut words = vec![0_u64; arguments.len().div_ceil(8)];
        let bytes = &mut words.as_mut_bytes()[..arguments.len()];
        bytes.copy_from_slice(arguments);
        let arguments = A::ref_from_bytes(bytes).map_err(|_| Stop::Cancel)?;
        self.run(tx, arguments).map(|_| ())
    }
}

/// The operations that a program has registered.
pub type Operations = &'static [&'static dyn Registered];

/// Fails if two have the same name and version.
///
/// # Errors
///
/// [`Error::Schema`].
pub fn check(operations: Operations) -> Result<()> {
    for (at, operation) in operations.iter().enumerate() {
        let (name, version) = (operation.name(), operation.version());
        if position(operations, name, version) != Some(at) {
            return Err(Error::Schema {
                name: name.to_owned(),
                found: format!("the name of an operation of version {version}"),
                wanted: "that of another one of the same version".to_owned(),
            });
        }
    }
    Ok(())
}

/// The index of an operation among the registered ones.
pub fn position(operations: Operations, name: &str, version: u32) -> Option<usize> {
    let is_it = |known: &&dyn Registered| known.name() == name && known.version() == version;
    operations.iter().position(is_it)
}
