//! Databases of the library's maps, in either build of it.
//!
//! | name | what it is |
//! |---|---|
//! | `mvrlu` | `space::BTreeMap`s, under snapshot isolation |
//! | `mvrlu-serializable` | the same; a transaction locks what it has read |
//! | `rlu` | the same maps by RLU |
//! | `one-lock` | those of `mvrlu`, but one transaction at a time, under an MCS lock |
//!
//! Rows that almost every transaction changes have a map of their own each: a leaf of a tree is
//! changed by one transaction at a time.

/// The databases of one build of the library.
macro_rules! library {
    ($library:ident) => {
        use manycore_traits::{Conflict, RawLock, Sessions};
        use $library::collections::space::{BTreeMap, Handle, Limit, Snapshot, Space, Transaction};
        use $library::lock::Mcs;
        use $library::{mvrlu, rlu};

        use $crate::txn::database::{
            Changes, Contender, Database, Order, Parts, Row, Rows, Session, TABLES, Table,
        };
        use $crate::txn::task::{Mix, Task};
        use $crate::txn::tpcc;

        /// All contenders. The first one is the usual base line.
        pub(crate) const CONTENDERS: &[Contender] = &[
            Contender {
                name: "mvrlu",
                make: |task| Box::new(Tables::<mvrlu::Domain>::new(task, Limit::NONE)),
            },
            Contender {
                name: "mvrlu-serializable",
                make: |task| {
                    Box::new(Tables::<mvrlu::Domain>::new(task, Limit::NONE.serializable()))
                },
            },
            Contender {
                name: "rlu",
                make: |task| Box::new(Tables::<rlu::Domain>::new(task, Limit::NONE)),
            },
            Contender { name: "one-lock", make: |task| Box::new(OneLock::new(task)) },
        ];

        type Tree<M> = BTreeMap<u64, Row, M>;

        /// The tables of a space.
        struct Tables<M: Sessions + 'static> {
            space: Space<M>,
            tables: [Tree<M>; TABLES],
            /// Trees with a row each.
            hot: Box<[Tree<M>]>,
            limit: Limit,
        }

        impl<M: Sessions + Default> Tables<M> {
            fn new(task: &Task, limit: Limit) -> Self {
                let space = Space::<M>::default();
                let hot = match task.mix {
                    Mix::Ycsb16 => 0,
                    Mix::Tpcc => task.size.warehouses * (tpcc::DISTRICTS + 1),
                };
                let tables = std::array::from_fn(|_| Tree::new_in(&space));
                let hot = (0..hot).map(|_| Tree::new_in(&space)).collect();
                Self { space, tables, hot, limit }
            }
        }

        impl<M: Sessions> Tables<M> {
            #[inline]
            fn table(&self, table: Table, key: u64) -> &Tree<M> {
                match tpcc::hot(table, key) {
                    Some(number) => &self.hot[number as usize],
                    None => &self.tables[table as usize],
                }
            }
        }

        impl<M: Sessions + 'static> Database for Tables<M> {
            fn session(&self) -> Box<dyn Session + '_> {
                Box::new(InSpace { tables: self, me: self.space.handle() })
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.space.domain().statistics(visit);
            }
        }

        struct InSpace<'a, M: Sessions + 'static> {
            tables: &'a Tables<M>,
            me: Handle<'a, M>,
        }

        impl<M: Sessions + 'static> Session for InSpace<'_, M> {
            fn transact(
                &mut self,
                _: Parts,
                work: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Conflict>,
            ) {
                let Self { tables, me } = self;
                let done = me.transact_with(tables.limit, |transaction| {
                    work(&mut Changing { tables, transaction })
                });
                done.expect("there is no limit of attempts");
            }

            fn read(&mut self, _: Parts, work: &mut dyn FnMut(&dyn Rows)) {
                let Self { tables, me } = self;
                me.snapshot(|now| work(&Reading { tables, now }));
            }
        }

        struct Reading<'t, 's, 'a, M: Sessions + 'static> {
            tables: &'a Tables<M>,
            now: &'t Snapshot<'t, 's, M>,
        }

        struct Changing<'b, 't, 's, 'a, M: Sessions + 'static> {
            tables: &'a Tables<M>,
            transaction: &'b mut Transaction<'t, 's, 'a, M>,
        }

        /// Visits entries until told to stop.
        fn visit_all<'r>(
            entries: impl DoubleEndedIterator<Item = (&'r u64, &'r Row)>,
            order: Order,
            visit: &mut dyn FnMut(u64, &Row) -> bool,
        ) {
            let mut visit = |(key, row): (&u64, &Row)| visit(*key, row);
            match order {
                Order::Up => _ = { entries }.all(&mut visit),
                Order::Down => _ = entries.rev().all(&mut visit),
            }
        }

        impl<M: Sessions + 'static> Rows for Reading<'_, '_, '_, M> {
            fn get(&self, table: Table, key: u64) -> Option<Row> {
                self.now.get(self.tables.table(table, key), &key).copied()
            }

            fn scan(
                &self,
                table: Table,
                (from, to): (u64, u64),
                order: Order,
                visit: &mut dyn FnMut(u64, &Row) -> bool,
            ) {
                visit_all(self.now.range(self.tables.table(table, from), from..to), order, visit);
            }
        }

        impl<M: Sessions + 'static> Rows for Changing<'_, '_, '_, '_, M> {
            fn get(&self, table: Table, key: u64) -> Option<Row> {
                self.transaction.get(self.tables.table(table, key), &key).copied()
            }

            fn scan(
                &self,
                table: Table,
                (from, to): (u64, u64),
                order: Order,
                visit: &mut dyn FnMut(u64, &Row) -> bool,
            ) {
                let tree = self.tables.table(table, from);
                visit_all(self.transaction.range(tree, from..to), order, visit);
            }
        }

        impl<M: Sessions + 'static> Changes for Changing<'_, '_, '_, '_, M> {
            fn set(&mut self, table: Table, key: u64, row: Row) -> Result<(), Conflict> {
                self.transaction.set(self.tables.table(table, key), key, row).map(drop)
            }
        }

        /// Tables that one transaction at a time uses.
        struct OneLock {
            tables: Tables<mvrlu::Domain>,
            lock: Mcs,
        }

        impl OneLock {
            fn new(task: &Task) -> Self {
                Self { tables: Tables::new(task, Limit::NONE), lock: Mcs::new() }
            }
        }

        impl Database for OneLock {
            fn session(&self) -> Box<dyn Session + '_> {
                Box::new(Alone { lock: &self.lock, session: self.tables.session() })
            }

            fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                self.tables.statistics(visit);
            }
        }

        struct Alone<'a> {
            lock: &'a Mcs,
            session: Box<dyn Session + 'a>,
        }

        /// Does something while no other thread does.
        fn alone<R>(lock: &Mcs, f: impl FnOnce() -> R) -> R {
            let mut node = <Mcs as RawLock>::Node::default();
            // SAFETY: the node stays where it is until `unlock` has returned.
            unsafe { lock.lock(&mut node) };
            let result = f();
            // SAFETY: `lock`, above, has acquired it with this node.
            unsafe { lock.unlock(&mut node) };
            result
        }

        impl Session for Alone<'_> {
            fn transact(
                &mut self,
                parts: Parts,
                work: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Conflict>,
            ) {
                let Self { lock, session } = self;
                alone(lock, || session.transact(parts, work));
            }

            fn read(&mut self, parts: Parts, work: &mut dyn FnMut(&dyn Rows)) {
                let Self { lock, session } = self;
                alone(lock, || session.read(parts, work));
            }
        }
    };
}

/// The databases of the native library.
pub(crate) mod native {
    library!(manycore);
}

/// The databases of the library that is built for the simulator.
pub(crate) mod simulated {
    library!(manycore_simulated);
}
