//! What must come before what.

use std::collections::{BTreeSet, VecDeque};

use super::versions::Versions;
use super::{Object, Version};

/// Why one node comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A transaction's snapshot is before its commit.
    Own,
    /// The second transaction sees or replaces a version that the first made.
    Sees(Object, Version),
    /// The first sees a version that the second replaces.
    Replaces(Object, Version),
    /// Time.
    Time,
}

/// A graph of instants.
pub(super) struct Graph<'v, 'h> {
    versions: &'v Versions<'h>,
    /// Whether it has time edges, and those of the strict kind.
    pub(super) time: Option<bool>,
    /// Whether a transaction's two instants are one.
    pub(super) serial: bool,
    edges: Vec<Vec<(usize, Why)>>,
}

impl<'v, 'h> Graph<'v, 'h> {
    /// Two nodes for each transaction: twice its number is its snapshot, and the next its commit.
    pub(super) fn of_snapshots(versions: &'v Versions<'h>) -> Self {
        Self::of(versions, false)
    }

    /// One node for each transaction. Transactions that did not commit have no edges.
    pub(super) fn of_serial_order(versions: &'v Versions<'h>) -> Self {
        Self::of(versions, true)
    }

    fn of(versions: &'v Versions<'h>, serial: bool) -> Self {
        let edges = vec![Vec::new(); 2 * versions.history.len()];
        let mut graph = Self { versions, time: None, serial, edges };
        for (i, transaction) in versions.history.iter().enumerate() {
            if !serial {
                graph.edge(graph.snapshot(i), graph.commit(i), Why::Own);
            } else if !transaction.committed {
                continue;
            }
            let replaced = transaction.writes.iter().map(|write| (write.object, write.before));
            for (object, version) in transaction.reads.iter().copied().chain(replaced) {
                let of_others = |other: &usize| *other != i;
                if let Some(maker) = versions.maker(object, version).filter(of_others) {
                    graph.edge(graph.commit(maker), graph.snapshot(i), Why::Sees(object, version));
                }
                if let Some(next) = versions.successor(object, version).filter(of_others) {
                    let why = Why::Replaces(object, version);
                    graph.edge(graph.snapshot(i), graph.commit(next), why);
                }
            }
        }
        graph
    }

    fn snapshot(&self, transaction: usize) -> usize {
        2 * transaction
    }

    fn commit(&self, transaction: usize) -> usize {
        2 * transaction + usize::from(!self.serial)
    }

    /// The transaction of a node; none for a node of time.
    pub(super) fn transaction(&self, node: usize) -> Option<usize> {
        Some(node / 2).filter(|transaction| *transaction < self.versions.history.len())
    }

    fn edge(&mut self, from: usize, to: usize, why: Why) {
        self.edges[from].push((to, why));
    }

    /// Adds that an end comes before later begins. Each end is a node, and the ends are a chain. So
    /// the number of edges is that of the transactions, and not its square.
    pub(super) fn with_time(mut self, strict: bool) -> Self {
        self.time = Some(strict);
        let history = self.versions.history;
        let mut ends: Vec<_> = (0..history.len()).collect();
        ends.sort_unstable_by_key(|i| history[*i].ended);
        let chain = self.edges.len();
        self.edges.resize_with(chain + ends.len(), Vec::new);
        for (at, &i) in ends.iter().enumerate() {
            // A transaction that was aborted has no commit that another could miss.
            let commits = strict && history[i].committed;
            let last = if commits { self.commit(i) } else { self.snapshot(i) };
            self.edge(last, chain + at, Why::Time);
            if at + 1 < ends.len() {
                self.edge(chain + at, chain + at + 1, Why::Time);
            }
        }
        for (i, transaction) in history.iter().enumerate() {
            let before = ends.partition_point(|end| history[*end].ended < transaction.began);
            let begins = if strict { self.snapshot(i) } else { self.commit(i) };
            if before > 0 {
                self.edge(chain + before - 1, begins, Why::Time);
            }
        }
        self
    }

    /// A circle, if there is one: nodes, each with the reason why it comes before the next. It is
    /// one of the shortest circles through the first node that is found in one.
    pub(super) fn circle(&self) -> Option<Vec<(usize, Why)>> {
        let left = self.in_circles();
        let ways = left.iter().filter_map(|start| self.way_back(*start, &left));
        ways.take(100).min_by_key(Vec::len)
    }

    /// The nodes that are left after repeatedly removing nodes without predecessors or without
    /// successors.
    fn in_circles(&self) -> BTreeSet<usize> {
        let nodes = self.edges.len();
        let mut back = vec![Vec::new(); nodes];
        for (from, edges) in self.edges.iter().enumerate() {
            edges.iter().for_each(|(to, _)| back[*to].push(from));
        }
        let forth: Vec<Vec<usize>> =
            self.edges.iter().map(|edges| edges.iter().map(|(to, _)| *to).collect()).collect();
        let mut gone = vec![false; nodes];
        for (next, previous) in [(&forth, &back), (&back, &forth)] {
            let mut before: Vec<_> =
                previous.iter().map(|nodes| nodes.iter().filter(|n| !gone[**n]).count()).collect();
            let mut free: Vec<_> = (0..nodes).filter(|n| !gone[*n] && before[*n] == 0).collect();
            while let Some(node) = free.pop() {
                gone[node] = true;
                for &to in next[node].iter().filter(|to| !gone[**to]) {
                    before[to] -= 1;
                    if before[to] == 0 {
                        free.push(to);
                    }
                }
            }
        }
        (0..nodes).filter(|node| !gone[*node]).collect()
    }

    /// A shortest way from a node back to it.
    fn way_back(&self, start: usize, among: &BTreeSet<usize>) -> Option<Vec<(usize, Why)>> {
        let mut from = std::collections::HashMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            for &(to, why) in self.edges[node].iter().filter(|(to, _)| among.contains(to)) {
                if from.contains_key(&to) {
                    continue;
                }
                from.insert(to, (node, why));
                open.push_back(to);
            }
            if from.contains_key(&start) {
                break;
            }
        }
        let mut way = vec![*from.get(&start)?];
        while way.last()?.0 != start {
            way.push(*from.get(&way.last()?.0)?);
        }
        way.reverse();
        Some(way)
    }
}
