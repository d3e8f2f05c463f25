//! Hash maps of well-known crates.

use manycore::collections::hash::FixedState;

use crate::index::any_index::{AnyIndex, IndexHandle};
use crate::index::data::{Key, Seen, Value, asked, next, value};
use crate::index::task::Task;

/// Implements the interface for a hash map of another library: its type, an expression that makes a
/// map with room for this many keys, and the operations of a reference to it.
macro_rules! maps {
    ($($name:ident($map:ty): $new:expr, $get:expr, $put:expr, $modify:expr;)*) => {$(
        pub(super) struct $name<K: Key, V: Value>($map);

        impl<K: Key, V: Value> $name<K, V> {
            pub fn new(task: &Task) -> Self {
                let new: fn(usize) -> $map = $new;
                Self(new(task.records.initial as usize))
            }
        }

        impl<K: Key, V: Value> AnyIndex for $name<K, V> {
            fn handle(&self) -> Box<dyn IndexHandle + '_> {
                Box::new(self)
            }
        }

        impl<K: Key, V: Value> IndexHandle for &$name<K, V> {
            #[inline]
            fn get(&mut self, key: u64) -> Seen {
                let spelled = K::spell(key);
                let get: fn(&$map, &K::Asked) -> Option<Seen> = $get;
                get(&self.0, asked::<K>(&spelled)).unwrap_or(Seen::Nothing)
            }

            #[inline]
            fn put(&mut self, key: u64, count: u32) {
                let put: fn(&$map, K, V) = $put;
                put(&self.0, K::new(key), value::<K, V>(key, count));
            }

            #[inline]
            fn modify(&mut self, key: u64) -> bool {
                let modify: fn(&$map, u64) -> bool = $modify;
                modify(&self.0, key)
            }
        }
    )*};
}

maps! {
    Papaya(papaya::HashMap<K, V, FixedState>):
        |keys| papaya::HashMap::with_capacity_and_hasher(keys, FixedState::default()),
        |map, asked| map.pin().get(asked).map(|value| Seen::at::<K, V>(asked, value)),
        |map, key, value| _ = map.pin().insert(key, value),
        |map, key| map.pin().update(K::new(key), next).is_some();
    Scc(scc::HashMap<K, V, FixedState>):
        |keys| scc::HashMap::with_capacity_and_hasher(keys, FixedState::default()),
        |map, asked| map.read_sync(asked, |_, value| Seen::at::<K, V>(asked, value)),
        |map, key, value| _ = map.upsert_sync(key, value),
        |map, key| map.update_sync(asked::<K>(&K::spell(key)), |_, value| *value = next(value)).is_some();
    Dash(dashmap::DashMap<K, V, FixedState>):
        |keys| dashmap::DashMap::with_capacity_and_hasher(keys, FixedState::default()),
        |map, asked| map.get(asked).map(|value| Seen::at::<K, V>(asked, &value)),
        |map, key, value| _ = map.insert(key, value),
        |map, key| {
            let value = map.get_mut(asked::<K>(&K::spell(key)));
            value.map(|mut value| *value = next(&*value)).is_some()
        };
}
