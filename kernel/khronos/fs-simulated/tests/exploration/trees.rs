//! Directories that are moved and removed at the same time.

use khronos_fs::{At, Cx, Errno, Fs, Open, Rename, Sync};
use manycore_history::run::{Explored, Threads};

use crate::{explore, fs};

fn at<'a>(fs: &'a Fs, path: &'a str) -> At<'a> {
    At { directory: fs.root(), path: path.as_bytes() }
}

fn mkdirs(cx: &mut Cx<'_>, paths: &[&str]) {
    paths.iter().for_each(|path| cx.mkdir(at(cx.fs(), path), 0o755).unwrap());
}

/// Each moves a directory below that of the next.
fn moves(sync: Sync, threads: u32) {
    explore().check(|| {
        let fs = fs(sync);
        let mut cx = fs.context();
        mkdirs(&mut cx, &["0", "0/x", "1", "1/x", "2", "2/x"]);
        let moved = Explored.parallel(threads, |thread| {
            let (from, below) = (thread.to_string(), (thread + 1) % threads);
            let to = format!("{below}/x/{from}");
            fs.context().rename(at(&fs, &from), at(&fs, &to), Rename::Replace)
        });
        let moves = moved.iter().filter(|moved| moved.is_ok()).count();
        assert!(moves < threads as usize, "a cycle: {moved:?}");
        assert!(moves > 0, "no thread gets on: {moved:?}");
        assert_eq!(cx.check_all().map(|totals| totals.directories), Ok(7), "a cycle");
    });
}

#[test]
fn moves_of_mvrlu() {
    moves(Sync::MvRlu, 2);
    moves(Sync::MvRlu, 3);
}

#[test]
fn moves_of_rlu() {
    moves(Sync::Rlu, 2);
    moves(Sync::Rlu, 3);
}

#[test]
fn moves_of_rcu() {
    moves(Sync::Rcu, 2);
}

/// One thread makes a file in a directory that another one removes or replaces.
fn made_beside_removed(sync: Sync) {
    for is_rename in [false, true] {
        explore().check(|| {
            let fs = fs(sync);
            mkdirs(&mut fs.context(), &["d", "e"]);
            let results = Explored.parallel(2, |thread| {
                let mut cx = fs.context();
                match (thread, is_rename) {
                    (0, true) => cx.rename(at(&fs, "e"), at(&fs, "d"), Rename::Replace),
                    (0, false) => cx.rmdir(at(&fs, "d")),
                    _ => cx.open(at(&fs, "d/f"), Open::NEW, 0o644).map(|file| cx.close(file)),
                }
            });
            let is_there = fs.context().stat(at(&fs, "d/f"), false).is_ok();
            match results[..] {
                [Ok(()), Ok(())] => assert!(is_rename && is_there, "what was made is lost"),
                [Ok(()), Err(Errno::NoEntry)] => {}
                [Err(Errno::NotEmpty), Ok(())] => assert!(is_there, "what was made is lost"),
                _ => panic!("{results:?}"),
            }
            fs.context().check_all().unwrap();
        });
    }
}

#[test]
fn made_beside_removed_of_mvrlu() {
    made_beside_removed(Sync::MvRlu);
}

#[test]
fn made_beside_removed_of_rlu() {
    made_beside_removed(Sync::Rlu);
}

#[test]
fn made_beside_removed_of_locks() {
    [Sync::DirLock, Sync::Lock, Sync::Rcu].into_iter().for_each(made_beside_removed);
}

/// One thread makes the first name of a directory in which another one misses a name.
fn missed_beside_made(sync: Sync) {
    explore().check(|| {
        let fs = fs(sync);
        mkdirs(&mut fs.context(), &["d", "e"]);
        let results = Explored.parallel(2, |thread| {
            let mut cx = fs.context();
            match thread {
                0 => cx.rename(at(&fs, "e"), at(&fs, "d/x"), Rename::Exchange),
                _ => cx.mkdir(at(&fs, "d/f"), 0o755),
            }
        });
        assert_eq!(results, [Err(Errno::NoEntry), Ok(())]);
        assert_eq!(fs.context().check_all().map(|totals| totals.directories), Ok(4));
    });
}

#[test]
fn missed_beside_made_of_mvrlu() {
    missed_beside_made(Sync::MvRlu);
}

#[test]
fn missed_beside_made_of_others() {
    [Sync::DirLock, Sync::Lock, Sync::Rcu, Sync::Rlu].into_iter().for_each(missed_beside_made);
}

/// One thread opens and reads a file while another removes its name.
fn opened_beside_unlinked(sync: Sync) {
    explore().check(|| {
        let fs = fs(sync);
        let mut cx = fs.context();
        let file = cx.open(at(&fs, "f"), Open::NEW, 0o644).unwrap();
        cx.write(&file, 0, b"bytes").unwrap();
        cx.close(file);
        Explored.parallel(3, |thread| {
            let mut cx = fs.context();
            if thread == 0 {
                cx.unlink(at(&fs, "f")).unwrap();
                return;
            }
            match cx.open(at(&fs, "f"), Open::READ, 0) {
                Ok(file) => {
                    let mut buffer = [0; 8];
                    assert_eq!(cx.read(&file, 0, &mut buffer), Ok(5));
                    cx.close(file);
                }
                Err(errno) => assert_eq!(errno, Errno::NoEntry),
            }
        });
        assert_eq!(cx.check_all().map(|totals| totals.inodes), Ok(1));
    });
}

#[test]
fn opened_beside_unlinked_by_all() {
    Sync::ALL.into_iter().for_each(opened_beside_unlinked);
}

/// One name exists only while the other does not. So a call that fails because both exist is wrong.
fn never_both(sync: Sync) {
    explore().check(|| {
        let fs = fs(sync);
        for name in ["a", "e"] {
            let mut cx = fs.context();
            let file = cx.open(at(&fs, name), Open::NEW, 0o644).unwrap();
            cx.close(file);
        }
        Explored.parallel(2, |thread| {
            let mut cx = fs.context();
            for _ in 0..2 {
                if thread == 0 {
                    let result = cx.rename(at(&fs, "a"), at(&fs, "b"), Rename::NoReplace);
                    assert_ne!(result, Err(Errno::Exists), "both names at no moment");
                    if result.is_ok() {
                        return;
                    }
                    continue;
                }
                for (from, to) in [("a", "c"), ("e", "b"), ("b", "e"), ("c", "a")] {
                    // The other thread may have renamed the first.
                    let _ = cx.rename(at(&fs, from), at(&fs, to), Rename::Replace);
                }
            }
        });
        fs.context().check_all().unwrap();
    });
}

#[test]
fn never_both_of_mvrlu() {
    never_both(Sync::MvRlu);
}

#[test]
fn never_both_of_others() {
    [Sync::DirLock, Sync::Lock, Sync::Rlu].into_iter().for_each(never_both);
}

#[test]
fn never_both_of_rcu() {
    never_both(Sync::Rcu);
}
