//! Changes are taken while calls make more: they are as of one moment.

use std::collections::BTreeMap;

use khronos_fs::{At, Changes, Cx, Fs, Open, Rename, Sync, Which};
use manycore_history::run::{Explored, Threads};

use crate::{explore, recorded};

fn at<'a>(fs: &'a Fs, path: &'a str) -> At<'a> {
    At { directory: fs.root(), path: path.as_bytes() }
}

/// What is durable once the batch is.
fn keep<'fs>(cx: &mut Cx<'fs>, durable: &mut BTreeMap<String, u64>, changes: Changes<'fs>) {
    for changed in &changes.names {
        let name = String::from_utf8(changed.name.to_vec()).unwrap();
        match changed.inode {
            Some(inode) => durable.insert(name, inode),
            None => durable.remove(&name),
        };
    }
    cx.keep(changes);
}

fn beside_calls(sync: Sync) {
    explore().check(|| {
        let fs = recorded(sync);
        let batches = Explored.parallel(2, |thread| {
            let mut cx = fs.context();
            if thread == 0 {
                for name in ["a", "b"] {
                    let file = cx.open(at(&fs, name), Open::NEW, 0o644).unwrap();
                    cx.close(file);
                }
                cx.rename(at(&fs, "a"), at(&fs, "c"), Rename::NoReplace).unwrap();
                return BTreeMap::new();
            }
            let mut durable = BTreeMap::new();
            let changes = cx.changes(Which::All);
            keep(&mut cx, &mut durable, changes);
            durable
        });
        let mut durable = batches[1].clone();
        let names: Vec<_> = durable.keys().map(String::as_str).collect();
        let moments: [&[&str]; 4] = [&[], &["a"], &["a", "b"], &["b", "c"]];
        assert!(moments.contains(&names.as_slice()), "a batch of no moment: {names:?}");
        let mut cx = fs.context();
        let changes = cx.changes(Which::All);
        keep(&mut cx, &mut durable, changes);
        assert!(durable.keys().eq(["b", "c"]), "what is in no batch: {durable:?}");
    });
}

#[test]
fn beside_calls_of_rcu() {
    beside_calls(Sync::Rcu);
}

#[test]
fn beside_calls_of_mvrlu() {
    beside_calls(Sync::MvRlu);
}

#[test]
fn beside_calls_of_others() {
    [Sync::DirLock, Sync::Lock, Sync::Rlu].into_iter().for_each(beside_calls);
}
