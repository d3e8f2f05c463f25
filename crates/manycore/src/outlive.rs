//! Handles that would outlive their owners. For each type the compiler accepts a program that uses
//! the handle first, and refuses a program that differs only in dropping the owner first. This is a
//! part of the misuse matrix, whose rest is in `tests/misuse`.

macro_rules! program {
    ($fence:literal, $owner:literal, $handle:literal, $first:literal, $last:literal) => {
        concat!(
            $fence, "\n",
            "#![allow(unused)]\n",
            "use manycore::collections::{hash::*, interval::*, list::*, queue::*, stack::*, tree::*};\n",
            "use manycore::ldu::{Deferred, Item, Rooted, Structure, Table};\n",
            "use manycore::reclaim::{Config, Domain, Qsbr};\n",
            "use manycore::{ConcurrentMap, ConcurrentSet, Interval, MapHandle, ReverseMap, SetHandle};\n",
            "use manycore::{lock::Adaptive, mvrlu, rlu, session::Sessions};\n",
            "const ONE: Interval = Interval { first: 0, order: 0, last: 9 };\n",
            "#[derive(Default)]\n",
            "struct Count(u64);\n",
            "impl Structure<u64> for Count {\n",
            "    fn insert(&mut self, _: Item<'_, u64>) {}\n",
            "    fn remove(&mut self, _: Item<'_, u64>) {}\n",
            "}\n",
            "let owner = ", $owner, ";\n",
            "let mut handle = ", $handle, ";\n",
            $first, ";\n",
            $last, ";\n",
            "```"
        )
    };
}

macro_rules! handles {
    ($($name:ident: $owner:literal, $handle:literal, $uses:literal;)*) => {$(
        #[doc = program!("```", $owner, $handle, $uses, "drop(handle);\ndrop(owner)")]
        #[doc = program!("```compile_fail,E0505", $owner, $handle, "drop(owner)", $uses)]
        struct $name;
    )*};
}

handles! {
    // Grace periods, versions, delegation.
    Handle: "Domain::new(Config::default())", "owner.register()", "handle.collect_now()";
    QsbrHandle: "Domain::new(Config::default())", "owner.register_qsbr()", "handle.quiescent()";
    Mvrlu: "<mvrlu::Domain>::default()", "Sessions::register(&owner)", "let _ = &handle";
    Rlu: "<rlu::Domain>::default()", "Sessions::register(&owner)", "let _ = &handle";
    // Sets and maps.
    RcuList: "RcuList::<u64, (), Adaptive>::default()", "ConcurrentSet::handle(&owner)", "SetHandle::contains(&mut handle, &1)";
    RcuListQsbr: "RcuList::<u64, (), Adaptive, Qsbr>::default()", "ConcurrentSet::handle(&owner)", "SetHandle::contains(&mut handle, &1)";
    RcuTable: "RcuTable::<u64, u64, Adaptive>::new(1, Config::default())", "ConcurrentMap::handle(&owner)", "handle.get(&1)";
    RcuTree: "RcuTree::<u64, Adaptive>::default()", "owner.handle()", "handle.contains(&1)";
    LazyList: "LazyList::<u64, Adaptive>::default()", "owner.handle()", "handle.contains(&1)";
    HarrisList: "HarrisList::<u64>::default()", "owner.handle()", "handle.contains(&1)";
    MvrluTree: "MvrluTree::<u64, u64>::default()", "ConcurrentMap::handle(&owner)", "MapHandle::get(&mut handle, &1)";
    RluGrowing: "RluGrowingTable::<u64, u64>::default()", "ConcurrentMap::handle(&owner)", "MapHandle::get(&mut handle, &1)";
    LockedTree: "LockedTree::<u64, u64, Adaptive>::default()", "ConcurrentMap::handle(&owner)", "MapHandle::get(&mut handle, &1)";
    Space: "<manycore::collections::space::Space>::default()", "owner.handle()", "handle.snapshot(|_| ())";
    SpaceMap: "manycore::collections::space::BTreeMap::<u64, u64>::default()", "ConcurrentMap::handle(&owner)", "MapHandle::get(&mut handle, &1)";
    // Queues and stacks.
    OrderedQueue: "OrderedQueue::<u64>::default()", "owner.handle()", "handle.push(1)";
    TreiberStack: "TreiberStack::<u64>::default()", "owner.handle()", "handle.push(1)";
    // Items and intervals.
    Absent: "Deferred::<Count, u64>::default()", "owner.item(1)", "handle.edit(|item| *item = 2)";
    Present: "Deferred::<Count, u64>::default()", "owner.item(1).insert()", "assert_eq!(*handle, 1)";
    Table: "Table::new(1)", "Deferred::<Count, u64, _, Adaptive>::with_queue(Count(0), Rooted::new(&owner))", "handle.synchronize()";
    Locked: "LockedTrees::<Adaptive>::new(1)", "owner.insert(owner.interval(0, ONE))", "let _ = &handle";
    Combined: "CombinedTrees::new(1)", "owner.interval(0, ONE)", "let _ = &handle";
    Logged: "LoggedTrees::<Adaptive>::new(1)", "owner.insert(owner.interval(0, ONE))", "let _ = &handle";
    Linked: "HarrisLists::new(1)", "owner.interval(0, ONE)", "let _ = &handle";
}
