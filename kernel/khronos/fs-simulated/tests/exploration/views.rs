//! What a moment shows, and what it cannot be asked.

use khronos_fs::{At, Fs, Open, Rename, Sync};
use manycore_history::run::{Explored, Threads};

use crate::{explore, fs, with_chains};

fn at<'a>(fs: &'a Fs, path: &'a str) -> At<'a> {
    At { directory: fs.root(), path: path.as_bytes() }
}

fn make(fs: &Fs, path: &str) {
    let mut cx = fs.context();
    let file = cx.open(at(fs, path), Open::NEW, 0o644).unwrap();
    cx.close(file);
}

/// How often a list contains a file that is renamed meanwhile.
fn names_in_a_list(sync: Sync) {
    explore().check(|| {
        let fs = with_chains(sync, 2);
        make(&fs, "a");
        Explored.parallel(2, |thread| {
            let mut cx = fs.context();
            if thread == 0 {
                cx.rename(at(&fs, "a"), at(&fs, "b"), Rename::Replace).unwrap();
                cx.rename(at(&fs, "b"), at(&fs, "a"), Rename::Replace).unwrap();
                return;
            }
            let mut names = 0;
            let visit = |entry: khronos_fs::Entry<'_>| {
                names += u32::from(!entry.name.starts_with(b"."));
                true
            };
            cx.readdir(fs.root(), 0, visit).unwrap();
            assert_eq!(names, 1, "a rename is seen in its middle");
        });
    });
}

#[test]
fn a_list_is_of_one_moment() {
    names_in_a_list(Sync::MvRlu);
    names_in_a_list(Sync::Rlu);
}

#[test]
#[should_panic(expected = "a rename is seen in its middle")]
fn a_list_of_rcu_is_of_none() {
    names_in_a_list(Sync::Rcu);
}

/// Looks a name up until it is gone. In a view of one moment this would last for ever, so it is
/// refused, whatever the mechanism.
fn waits_in_a_moment(sync: Sync) {
    let found = explore().schedules(10).run(|| {
        let fs = fs(sync);
        make(&fs, "a");
        Explored.parallel(2, |thread| {
            let mut cx = fs.context();
            if thread == 0 {
                cx.unlink(at(&fs, "a")).unwrap();
                return;
            }
            cx.moment(|moment| {
                while moment.find(moment.root(), b"a").unwrap().is_some() {}
                // Whether or not it was there.
                while moment.find(moment.root(), b"a").unwrap().is_some() {}
            });
        });
    });
    let failure = found.expect_err("the second question").to_string();
    assert!(failure.contains("asked twice"), "{sync}: {failure}");
}

#[test]
fn nobody_waits_in_a_moment() {
    Sync::ALL.into_iter().for_each(waits_in_a_moment);
}

/// The same by views that end: each is fresh.
#[test]
fn who_begins_anew_sees_the_change() {
    for sync in Sync::ALL {
        explore().schedules(100).check(|| {
            let fs = fs(sync);
            make(&fs, "a");
            Explored.parallel(2, |thread| {
                let mut cx = fs.context();
                if thread == 0 {
                    cx.unlink(at(&fs, "a")).unwrap();
                    return;
                }
                cx.current(|view| match view.find(view.root(), b"a").unwrap() {
                    Some(_) => Err(view.again()),
                    None => Ok(()),
                });
            });
        });
    }
}
