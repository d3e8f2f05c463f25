//! A database behind an interface that hides its mechanism, so that the transactions are written
//! once.

use manycore_traits::Conflict;

use super::task::Task;

/// A row of any table.
pub type Row = [u64; 4];

/// A table, whose rows are in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// What transactions of YCSB read and write.
    Record,
    Warehouse,
    District,
    Item,
    Stock,
    Customer,
    /// Customers by their last names.
    Name,
    Order,
    /// Orders by their customers.
    OrderOf,
    /// Orders that were not delivered.
    Undelivered,
    Line,
    History,
}

/// How many tables there are.
pub const TABLES: usize = Table::History as usize + 1;

/// A set of parts of the database, out of 64. Each row is in one part, and items are in all parts.
/// A database with a lock for each part takes the locks of the parts that a transaction declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u64);

impl Parts {
    /// All.
    pub const ALL: Self = Self(u64::MAX);

    /// How many there are.
    pub const COUNT: u64 = 64;

    /// Adds a part, by any number that names it.
    pub fn add(&mut self, number: u64) {
        self.0 |= 1 << (number % Self::COUNT);
    }

    /// Their numbers, which ascend.
    pub fn numbers(self) -> impl Iterator<Item = u64> {
        (0..Self::COUNT).filter(move |number| self.0 >> number & 1 == 1)
    }
}

/// A database that threads share.
pub trait Database: Send + Sync {
    /// The calling thread's access.
    fn session(&self) -> Box<dyn Session + '_>;

    /// Visits what the mechanism has counted.
    fn statistics(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

/// A thread's access to a database.
pub trait Session {
    /// Reads and changes rows of these parts, until there is no conflict: others see all of the
    /// changes or none.
    fn transact(
        &mut self,
        parts: Parts,
        work: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Conflict>,
    );

    /// Reads rows of these parts as they are at one moment.
    fn read(&mut self, parts: Parts, work: &mut dyn FnMut(&dyn Rows));
}

/// Rows as a transaction sees them.
pub trait Rows {
    /// A row, by its key.
    fn get(&self, table: Table, key: u64) -> Option<Row>;

    /// Visits rows from a key up to another one, exclusive, until the visitor returns false. All
    /// rows are in one part.
    fn scan(
        &self,
        table: Table,
        range: (u64, u64),
        order: Order,
        visit: &mut dyn FnMut(u64, &Row) -> bool,
    );
}

/// Where a scan begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At the smallest key.
    Up,
    /// At the largest key.
    Down,
}

/// Rows as a transaction sees and changes them.
pub trait Changes: Rows {
    /// Sets the row of a key, whether or not it has one.
    ///
    /// # Errors
    ///
    /// If another transaction changes the same row, the function ends with that conflict, and the
    /// transaction runs again.
    fn set(&mut self, table: Table, key: u64, row: Row) -> Result<(), Conflict>;
}

/// A mechanism that takes part.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// What it is called after `--sync`, or after `--against`.
    pub name: &'static str,
    /// Makes a database without rows.
    pub make: fn(&Task) -> Box<dyn Database>,
}

/// The one of this name.
pub(crate) fn find(contenders: &'static [Contender], name: &str) -> Option<&'static Contender> {
    contenders.iter().find(|known| known.name == name)
}

/// Their names.
pub(crate) fn names(contenders: &'static [Contender]) -> Vec<String> {
    contenders.iter().map(|known| known.name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_ascend_and_are_there_once() {
        let mut parts = Parts::default();
        [5, 70, 3, 6].into_iter().for_each(|number| parts.add(number));
        assert_eq!(parts.numbers().collect::<Vec<_>>(), [3, 5, 6]);
        assert_eq!(Parts::ALL.numbers().count(), 64);
    }
}
