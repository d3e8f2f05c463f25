//! The contents of the files, as `inspect` shows them.

use timestone::{Error, Map, Store, inspect};

use crate::store::options;

#[test]
fn a_store_is_told_of_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    assert!(matches!(inspect::verify(&path), Err(Error::Io { .. })), "there is no store");
    assert!(!path.exists(), "nothing is made");

    let store = Store::open_with(&path, options()).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| map.insert(tx, 1, 10)).unwrap();
    drop(me);
    store.checkpoint().unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| map.insert(tx, 1, 11)).unwrap();
    assert!(matches!(inspect::verify(&path), Err(Error::Locked(_))), "the store is open");
    // A crash: what is in the files now, in another directory.
    let copy = directory.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(&path).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let (mut images, mut records) = (0, Vec::new());
    let contents = inspect::dump(&copy, |record, entry| match record {
        None => images += 1,
        Some(record) => records.push((record.stamp, entry.words.to_vec())),
    })
    .unwrap();
    // The root, the entry of the catalog, a node and a leaf.
    assert_eq!((images, contents.objects, contents.transactions), (4, 4, 1));
    assert_eq!(records, [(contents.horizon.min(records[0].0), 11_u64.to_le_bytes().to_vec())]);
    let before = inspect::verify(&copy).unwrap();
    assert_eq!((before.horizon, before.transactions), (contents.horizon, 1), "nothing is written");
}
