//! A set is a map to nothing.

/// Implements [`ConcurrentSet`](crate::ConcurrentSet) for a map whose handles are references.
macro_rules! set_by_map {
    (impl[$($generics:tt)*] $map:ty) => {
        impl<$($generics)*> $crate::ConcurrentSet<K> for $map {
            type Handle<'a>
                = &'a Self
            where
                Self: 'a;

            fn handle(&self) -> &Self {
                self
            }
        }

        impl<$($generics)*> $crate::SetHandle<K> for &$map {
            fn contains(&mut self, key: &K) -> bool {
                $crate::MapHandle::get(self, key).is_some()
            }

            fn insert(&mut self, key: K) -> bool {
                $crate::MapHandle::insert(self, key, ()).is_none()
            }

            fn remove(&mut self, key: &K) -> bool {
                $crate::MapHandle::remove(self, key).is_some()
            }
        }
    };
}
pub(super) use set_by_map;
