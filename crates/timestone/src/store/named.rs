//! Structures by their names, in a transaction: for operations, which recovery runs when nothing
//! else is there.

use super::catalog;
use super::list::List;
use super::map::Map;
use super::ordered::OrderedMap;
use super::own;
use super::pointer::Ptr;
use super::queue::Queue;
use super::set::Set;
use super::transaction::Transaction;
use crate::Persist;
use crate::error::Result;

impl Transaction<'_, '_> {
    /// The map of this name, as the transaction sees it. Maps are created by
    /// [`Store::map`](super::Store::map).
    ///
    /// Time: that of a search among the names of the store.
    ///
    /// # Errors
    ///
    /// [`Error::Schema`](crate::Error::Schema) if the name belongs to another structure, or to
    /// none.
    pub fn map<K: Persist, V: Persist>(&self, name: &str) -> Result<Map<K, V>> {
        let root = catalog::find_root(self, name, &Map::<K, V>::schema())?;
        Ok(Map::at(root, self.seed()))
    }

    /// The ordered map of this name, as the transaction sees it.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn ordered_map<K: Persist + Ord, V: Persist>(
        &self,
        name: &str,
    ) -> Result<OrderedMap<K, V>> {
        catalog::find_root(self, name, &OrderedMap::<K, V>::schema()).map(OrderedMap::at)
    }

    /// The set of this name, as the transaction sees it.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn set<K: Persist>(&self, name: &str) -> Result<Set<K>> {
        self.map(name).map(Set::of)
    }

    /// The queue of this name, as the transaction sees it.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn queue<T: Persist>(&self, name: &str) -> Result<Queue<T>> {
        Ok(Queue::at(self, catalog::find_root(self, name, &Queue::<T>::schema())?))
    }

    /// The list of this name, as the transaction sees it.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn list<T: Persist>(&self, name: &str) -> Result<List<T>> {
        catalog::find_root(self, name, &List::<T>::schema()).map(List::at)
    }

    /// The object of this name, as [`Store::root`](super::Store::root) has created it.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn root<T: Persist>(&self, name: &str) -> Result<Ptr<T>> {
        catalog::find_root(self, name, &own::schema::<T>()).map(Ptr::at)
    }
}
