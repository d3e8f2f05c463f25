//! The library's own indexes, in either build of it.
//!
//! | structure | name | what it is |
//! |---|---|---|
//! | `btree` | `mvrlu`, `rlu` | `space::BTreeMap` |
//! | `art` | `mvrlu`, `rlu` | `space::ArtMap` |
//! | `hash` | `mvrlu-growing` | `space::HashMap` |
//! | `hash` | `map`, `plain` | `HashMap`, `PlainHashMap` |
//! | `hash` | `rcu`, `rcu-mcs` | `RcuTable`; writers lock a bucket by `adaptive` or `mcs` |
//! | `bst` | `mvrlu` | `MvrluTree` |

/// The indexes of one build of the library.
macro_rules! library {
    ($library:ident) => {

        use $library::collections::hash::{FixedState, HashMapHandle, PlainHashMapHandle, RcuTable};
        use $library::collections::space::{self, Map};
        use $library::collections::tree::MvrluTree;
        use $library::collections::versioned::art::{Art, ArtKey};
        use $library::collections::versioned::btree::{BPlus, Usual};
        use $library::collections::versioned::{Growing, Ordered, Seek, Structure};
        use $library::collections::{HashMap, PlainHashMap};
        use $library::lock::{Adaptive, Mcs};
        use $library::reclaim::Config;
        use $library::{mvrlu, rlu};
        use manycore_traits::{ConcurrentMap, MapHandle, RawLock, Sessions};

        use $crate::index::any_index::{
            Abilities, AnyIndex, Contender, IndexHandle, for_kinds,
        };
        use $crate::index::data::{Key, asked, Onward, Scan, Seen, Value, next, value};
        use $crate::index::task::Task;

        /// All contenders. The first one of a structure is the usual base line.
        pub(crate) const CONTENDERS: &[Contender] = &[
            Contender {
                name: "mvrlu",
                structure: "btree",
                abilities: Abilities::ALL,
                make: |task| for_kinds!(task, K, V => InSpace::<K, V, Usual, mvrlu::Domain>::default()),
            },
            Contender {
                name: "rlu",
                structure: "btree",
                abilities: Abilities::ALL,
                make: |task| for_kinds!(task, K, V => InSpace::<K, V, Usual, rlu::Domain>::default()),
            },
            Contender {
                name: "mvrlu",
                structure: "art",
                abilities: Abilities::ALL,
                make: |task| for_kinds!(task, K, V => InSpace::<K, V, Art, mvrlu::Domain>::default()),
            },
            Contender {
                name: "rlu",
                structure: "art",
                abilities: Abilities::ALL,
                make: |task| for_kinds!(task, K, V => InSpace::<K, V, Art, rlu::Domain>::default()),
            },
            Contender {
                name: "mvrlu-growing",
                structure: "hash",
                abilities: Abilities::UNORDERED,
                make: |task| for_kinds!(task, K, V => InSpace::<K, V, Growing<FixedState>, mvrlu::Domain>::default()),
            },
            Contender {
                name: "map",
                structure: "hash",
                abilities: Abilities::UNORDERED,
                make: |task| for_kinds!(task, K, V => Hashed::<K, V>::new(task)),
            },
            Contender {
                name: "plain",
                structure: "hash",
                abilities: Abilities::UNORDERED.of_numbers(),
                make: |task| Box::new(Plain::new(task)),
            },
            Contender {
                name: "rcu",
                structure: "hash",
                abilities: Abilities::UNORDERED.of_numbers().in_two_steps(),
                make: |task| Box::new(Chains::<Adaptive>::new(task)),
            },
            Contender {
                name: "rcu-mcs",
                structure: "hash",
                abilities: Abilities::UNORDERED.of_numbers().in_two_steps(),
                make: |task| Box::new(Chains::<Mcs>::new(task)),
            },
            Contender {
                name: "mvrlu",
                structure: "bst",
                abilities: Abilities::UNORDERED.of_numbers(),
                make: |_| Box::new(Binary(MvrluTree::default())),
            },
        ];

        /// A map in a space of its own.
        struct InSpace<K: Key, V: Value, P: Structure, M: Sessions + 'static>(Map<K, V, P, M>);

        /// A thread's access to it.
        struct InSpaceHandle<'a, K: Key, V: Value, P: Structure, M: Sessions + 'static> {
            map: &'a Map<K, V, P, M>,
            me: space::Handle<'a, M>,
        }

        impl<K, V, P, M> Default for InSpace<K, V, P, M>
        where
            K: Key,
            V: Value,
            P: Structure<Settings: Default>,
            M: Sessions + Default + 'static,
        {
            fn default() -> Self {
                Self(Map::new())
            }
        }

        impl<K, V, P, M> AnyIndex for InSpace<K, V, P, M>
        where
            K: Key,
            V: Value,
            P: Seek<K, K> + Seek<K, K::Asked> + Walk<K, V, M>,
            M: Sessions + 'static,
        {
            fn handle(&self) -> Box<dyn IndexHandle + '_> {
                Box::new(InSpaceHandle { map: &self.0, me: self.0.space().handle() })
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.0.space().domain().statistics(visit);
            }

            fn check(&self) {
                P::check(&self.0);
            }
        }

        impl<K, V, P, M> IndexHandle for InSpaceHandle<'_, K, V, P, M>
        where
            K: Key,
            V: Value,
            P: Seek<K, K> + Seek<K, K::Asked> + Walk<K, V, M>,
            M: Sessions + 'static,
        {
            #[inline]
            fn get(&mut self, key: u64) -> Seen {
                let spelled = K::spell(key);
                let asked = asked::<K>(&spelled);
                let see = |value: &V| Seen::at::<K, V>(asked, value);
                self.map.by(&mut self.me).get_with(asked, see).unwrap_or(Seen::Nothing)
            }

            #[inline]
            fn put(&mut self, key: u64, count: u32) {
                self.map.by(&mut self.me).set(K::new(key), value::<K, V>(key, count));
            }

            #[inline]
            fn modify(&mut self, key: u64) -> bool {
                self.map.by(&mut self.me).update(asked::<K>(&K::spell(key)), next)
            }

            #[inline]
            fn scan(&mut self, from: u64, most: u32) -> Scan {
                P::scan(self.map, &mut self.me, from, Scan::new(most))
            }
        }

        /// What a structure does apart from finding keys.
        trait Walk<K: Key, V: Value, M: Sessions + 'static>: Structure {
            fn scan(map: &Map<K, V, Self, M>, me: &mut space::Handle<'_, M>, from: u64, scan: Scan)
            -> Scan;

            fn check(_map: &Map<K, V, Self, M>) {}
        }

        impl<K, V, M, const LEAF: usize, const INNER: usize> Walk<K, V, M> for BPlus<LEAF, INNER>
        where
            K: Key,
            V: Value,
            M: Sessions + 'static,
        {
            #[inline]
            fn scan(
                map: &Map<K, V, Self, M>,
                me: &mut space::Handle<'_, M>,
                from: u64,
                scan: Scan,
            ) -> Scan {
                onward(map, me, from, scan)
            }

            fn check(map: &Map<K, V, Self, M>) {
                map.check();
            }
        }

        impl<K, V, M> Walk<K, V, M> for Art
        where
            K: Key + ArtKey,
            V: Value,
            M: Sessions + 'static,
            Art: Ordered<K, K::Asked>,
        {
            #[inline]
            fn scan(
                map: &Map<K, V, Self, M>,
                me: &mut space::Handle<'_, M>,
                from: u64,
                scan: Scan,
            ) -> Scan {
                onward(map, me, from, scan)
            }

            fn check(map: &Map<K, V, Self, M>) {
                map.check();
            }
        }

        /// Reads entries from a key on.
        #[inline]
        fn onward<K, V, P, M>(
            map: &Map<K, V, P, M>,
            me: &mut space::Handle<'_, M>,
            from: u64,
            mut scan: Scan,
        ) -> Scan
        where
            K: Key,
            V: Value,
            P: Ordered<K, K::Asked>,
            M: Sessions + 'static,
        {
            let spelled = K::spell(from);
            me.snapshot(|now| {
                let entries = now.range(map, Onward(asked::<K>(&spelled)));
                scan.take_all::<K, V>(entries.map(|(key, value)| (key.borrow(), value)));
            });
            scan
        }

        impl<K: Key, V: Value, M: Sessions + 'static> Walk<K, V, M> for Growing<FixedState> {
            fn scan(_: &Map<K, V, Self, M>, _: &mut space::Handle<'_, M>, _: u64, _: Scan) -> Scan {
                unreachable!("a hash table has no order: see its abilities")
            }
        }

        /// A hash table of any keys and values.
        struct Hashed<K: Key, V: Value>(HashMap<K, V, FixedState>);

        impl<K: Key, V: Value> Hashed<K, V> {
            fn new(task: &Task) -> Self {
                let keys = task.records.initial as usize;
                Self(HashMap::with_capacity_and_hasher(keys, FixedState::default()))
            }
        }

        impl<K: Key, V: Value> AnyIndex for Hashed<K, V> {
            fn handle(&self) -> Box<dyn IndexHandle + '_> {
                Box::new(HashedHandle(self.0.handle()))
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.0.domain().statistics(visit);
            }
        }

        struct HashedHandle<'a, K: Key, V: Value>(HashMapHandle<'a, K, V, FixedState>);

        impl<K: Key, V: Value> IndexHandle for HashedHandle<'_, K, V> {
            #[inline]
            fn get(&mut self, key: u64) -> Seen {
                let spelled = K::spell(key);
                let asked = asked::<K>(&spelled);
                let pinned = self.0.pin();
                let value = pinned.get::<K::Asked>(asked);
                value.map_or(Seen::Nothing, |value| Seen::at::<K, V>(asked, value))
            }

            #[inline]
            fn put(&mut self, key: u64, count: u32) {
                self.0.pin().insert(K::new(key), value::<K, V>(key, count));
            }

            #[inline]
            fn modify(&mut self, key: u64) -> bool {
                self.0.pin().update::<K::Asked>(asked::<K>(&K::spell(key)), next).is_some()
            }
        }

        /// A hash table of numbers.
        struct Plain(PlainHashMap<u64, u64, FixedState>);

        impl Plain {
            fn new(task: &Task) -> Self {
                let keys = task.records.initial as usize;
                Self(PlainHashMap::with_capacity_and_hasher(keys, FixedState::default()))
            }
        }

        impl AnyIndex for Plain {
            fn handle(&self) -> Box<dyn IndexHandle + '_> {
                Box::new(self.0.handle())
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.0.domain().statistics(visit);
            }
        }

        impl IndexHandle for PlainHashMapHandle<'_, u64, u64, FixedState> {
            #[inline]
            fn get(&mut self, key: u64) -> Seen {
                let value = PlainHashMapHandle::get(self, &key);
                value.map_or(Seen::Nothing, |value| Seen::at::<u64, u64>(&key, &value))
            }

            #[inline]
            fn put(&mut self, key: u64, count: u32) {
                self.insert(key, value::<u64, u64>(key, count));
            }

            #[inline]
            fn modify(&mut self, key: u64) -> bool {
                self.update(&key, |value| next(&value)).is_some()
            }
        }

        /// Chains in buckets, read without a lock.
        struct Chains<L: RawLock + 'static>(RcuTable<u64, u64, L>);

        impl<L: RawLock + 'static> Chains<L> {
            fn new(task: &Task) -> Self {
                Self(RcuTable::new(task.records.buckets as usize, Config::default()))
            }
        }

        impl<L: RawLock + 'static> AnyIndex for Chains<L> {
            fn handle(&self) -> Box<dyn IndexHandle + '_> {
                Box::new(InTwoSteps(self.0.handle()))
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.0.domain().statistics(visit);
            }
        }

        #[inline]
        fn get(handle: &mut impl MapHandle<u64, u64>, key: u64) -> Seen {
            let value = handle.get(&key);
            value.map_or(Seen::Nothing, |value| Seen::at::<u64, u64>(&key, &value))
        }

        #[inline]
        fn put(handle: &mut impl MapHandle<u64, u64>, key: u64, count: u32) {
            handle.insert(key, value::<u64, u64>(key, count));
        }

        /// A map that reads and writes, each as a step of its own.
        struct InTwoSteps<H>(H);

        impl<H: MapHandle<u64, u64>> IndexHandle for InTwoSteps<H> {
            #[inline]
            fn get(&mut self, key: u64) -> Seen {
                get(&mut self.0, key)
            }

            #[inline]
            fn put(&mut self, key: u64, count: u32) {
                put(&mut self.0, key, count);
            }

            #[inline]
            fn modify(&mut self, key: u64) -> bool {
                let value = self.0.get(&key);
                value.map(|value| self.0.insert(key, next(&value))).is_some()
            }
        }

        /// A search tree that is not balanced.
        struct Binary(MvrluTree<u64, u64>);

        impl AnyIndex for Binary {
            fn handle(&self) -> Box<dyn IndexHandle + '_> {
                Box::new(BinaryHandle(self.0.handle()))
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.0.domain().statistics(visit);
            }
        }

        struct BinaryHandle<'a>(<MvrluTree<u64, u64> as ConcurrentMap<u64, u64>>::Handle<'a>);

        impl IndexHandle for BinaryHandle<'_> {
            #[inline]
            fn get(&mut self, key: u64) -> Seen {
                get(&mut self.0, key)
            }

            #[inline]
            fn put(&mut self, key: u64, count: u32) {
                put(&mut self.0, key, count);
            }

            #[inline]
            fn modify(&mut self, key: u64) -> bool {
                self.0.transact(|map| match map.get(&key) {
                    Some(value) => map.insert(key, next(&value)).map(|_| true),
                    None => Ok(false),
                })
            }
        }
    };
}

/// The indexes of the native library.
pub(crate) mod native {
    library!(manycore);
}

/// The indexes of the library that is built for the simulator.
pub(crate) mod simulated {
    library!(manycore_simulated);
}
