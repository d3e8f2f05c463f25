//! The list of all reverse maps except those under a lock.

/// Calls a macro with the list: `callback! { "mechanism", trees => map; ... }`, where the
/// expression makes a [`ReverseMap`](crate::ReverseMap) with this many trees.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_reverse_map {
    ($callback:ident) => {
        $callback! {
            "flat-combining", trees => $crate::collections::interval::CombinedTrees::new(trees);
            "ldu", trees => $crate::collections::interval::DeferredTrees::<$crate::ldu::Global>::new(
                trees,
                $crate::ldu::Global::new,
            );
            "ldu-per-core", trees => $crate::collections::interval::tabled(trees);
            "ldu-logged", trees => $crate::collections::interval::DeferredTrees::<$crate::ldu::Global>::new(
                trees,
                $crate::ldu::Global::new,
            )
            .eager_below(0);
            "ldu-per-core-logged", trees => $crate::collections::interval::tabled(trees).eager_below(0);
            "ldu-settled", trees => $crate::collections::interval::SettledTrees::<$crate::lock::Adaptive>::new(trees);
            "ldu-settled-per-cpu", trees => $crate::collections::interval::SettledTrees::<$crate::lock::Adaptive>::per_cpu(trees);
            "ldu-combined", trees => $crate::collections::interval::SettledTrees::<$crate::lock::Adaptive>::combined(trees);
            "oplog", trees => $crate::collections::interval::LoggedTrees::<$crate::lock::Adaptive>::new(trees);
            "ldu-forest", trees => $crate::collections::interval::DeferredForest::<$crate::lock::Adaptive>::new(trees);
            "harris", trees => $crate::collections::interval::HarrisLists::new(trees);
        }
    };
}
