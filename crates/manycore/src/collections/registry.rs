//! The list of all sets. To add a set, write its file and add it to the list here. It is then in
//! every test and in the benchmarks.

/// What a set is made for.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// How many keys it is going to have, about.
    pub keys: usize,
    /// How many buckets, if it has buckets.
    pub buckets: usize,
}

/// Calls a macro with the list of all sets of numbers, except for those under a lock:
/// `callback! { name, "structure", "mechanism", sizes => set; ... }`.
///
/// The name is for tests, structure and mechanism are those of `manycore bench set`, and the
/// expression makes an empty [`ConcurrentSet<u64>`](crate::ConcurrentSet) from [`Sizes`].
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_set {
    ($callback:ident $(, $argument:tt)*) => {
        $callback! {
            $($argument)*
            list_mvrlu, "list", "mvrlu", _sizes =>
                $crate::collections::list::MvrluList::<u64, ()>::default();
            hash_mvrlu, "hash", "mvrlu", sizes =>
                $crate::collections::hash::MvrluTable::<u64, ()>::new(sizes.buckets);
            hash_mvrlu_growing, "hash", "mvrlu-growing", sizes =>
                $crate::collections::hash::MvrluGrowingTable::<u64, ()>::with_capacity(
                    ::core::default::Default::default(),
                    sizes.keys
                );
            list_rlu, "list", "rlu", _sizes =>
                $crate::collections::list::RluList::<u64, ()>::default();
            hash_rlu, "hash", "rlu", sizes =>
                $crate::collections::hash::RluTable::<u64, ()>::new(sizes.buckets);
            list_rlu_ordo, "list", "rlu-ordo", _sizes =>
                $crate::collections::list::RluList::<u64, (), $crate::rlu::Domain<$crate::clock::Ordo>>::default();
            hash_rlu_growing, "hash", "rlu-growing", sizes =>
                $crate::collections::hash::RluGrowingTable::<u64, ()>::with_capacity(
                    ::core::default::Default::default(),
                    sizes.keys
                );
            hash_rlu_ordo, "hash", "rlu-ordo", sizes =>
                $crate::collections::hash::RluTable::<u64, (), $crate::rlu::Domain<$crate::clock::Ordo>>::new(
                    sizes.buckets
                );
            list_rlu_defer, "list", "rlu-defer", _sizes =>
                $crate::collections::list::RluList::<u64, ()>::new($crate::rlu::Domain::deferring());
            hash_rlu_defer, "hash", "rlu-defer", sizes =>
                $crate::collections::hash::RluTable::<u64, ()>::with_buckets(
                    $crate::rlu::Domain::deferring(),
                    sizes.buckets
                );
            bst_mvrlu, "bst", "mvrlu", _sizes =>
                $crate::collections::tree::MvrluTree::<u64, ()>::default();
            bst_rlu, "bst", "rlu", _sizes =>
                $crate::collections::tree::RluTree::<u64, ()>::default();
            bst_rlu_ordo, "bst", "rlu-ordo", _sizes =>
                $crate::collections::tree::RluTree::<u64, (), $crate::rlu::Domain<$crate::clock::Ordo>>::default();
            bst_rlu_defer, "bst", "rlu-defer", _sizes =>
                $crate::collections::tree::RluTree::<u64, ()>::new($crate::rlu::Domain::deferring());
            btree_mvrlu, "btree", "mvrlu", _sizes =>
                $crate::collections::space::BTreeMap::<u64, ()>::default();
            btree_rlu, "btree", "rlu", _sizes =>
                $crate::collections::space::BTreeMap::<u64, (), $crate::rlu::Domain>::default();
            art_mvrlu, "art", "mvrlu", _sizes =>
                $crate::collections::space::ArtMap::<u64, ()>::default();
            art_rlu, "art", "rlu", _sizes =>
                $crate::collections::space::ArtMap::<u64, (), $crate::rlu::Domain>::default();
            list_flat_combining, "list", "flat-combining", _sizes =>
                $crate::collections::list::CombinedList::<u64, ()>::default();
            hash_flat_combining, "hash", "flat-combining", sizes =>
                $crate::collections::hash::CombinedTable::<u64, ()>::new(
                    $crate::collections::hash::ChainedTable::new(sizes.buckets)
                );
            list_rcu, "list", "rcu", _sizes =>
                $crate::collections::list::RcuList::<u64, (), $crate::lock::Adaptive>::default();
            list_rcu_qsbr, "list", "rcu-qsbr", _sizes =>
                $crate::collections::list::RcuList::<
                    u64, (), $crate::lock::Adaptive, $crate::reclaim::Qsbr
                >::default();
            list_lazy, "list", "lazy", _sizes =>
                $crate::collections::list::LazyList::<u64, $crate::lock::Adaptive>::default();
            list_harris, "list", "harris", _sizes =>
                $crate::collections::list::HarrisList::<u64>::default();
            hash_rcu, "hash", "rcu", sizes =>
                $crate::collections::hash::RcuTable::<u64, (), $crate::lock::Adaptive>::new(
                    sizes.buckets,
                    $crate::reclaim::Config::default()
                );
            hash_map, "hash", "map", sizes =>
                $crate::collections::HashMap::<u64, (), $crate::collections::hash::FixedState>::
                    with_capacity_and_hasher(
                        sizes.keys,
                        ::core::default::Default::default()
                    );
            hash_plain, "hash", "plain", sizes =>
                $crate::collections::PlainHashMap::<u64, (), $crate::collections::hash::FixedState>::
                    with_capacity_and_hasher(
                        sizes.keys,
                        ::core::default::Default::default()
                    );
            hash_rcu_qsbr, "hash", "rcu-qsbr", sizes =>
                $crate::collections::hash::RcuTable::<
                    u64, (), $crate::lock::Adaptive, $crate::reclaim::Qsbr
                >::new(sizes.buckets, $crate::reclaim::Config::default());
            bst_rcu, "bst", "rcu", _sizes =>
                $crate::collections::tree::RcuTree::<u64, $crate::lock::Adaptive>::default();
            bst_flat_combining, "bst", "flat-combining", _sizes =>
                $crate::collections::tree::CombinedTree::<u64, ()>::default();
        }
    };
}
