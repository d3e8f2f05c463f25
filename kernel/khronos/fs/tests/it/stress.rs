//! Threads that make, move and remove everything, and a check of all that is left.

use khronos_fs::{At, Cx, Errno, Fs, Kind, Open, Options, Rename, Sync};
use manycore_history::run::{Native, Threads};

/// A path of names among which all threads choose.
fn path(random: &mut fastrand::Rng) -> String {
    let depth = random.usize(1..=3);
    let names: Vec<_> = (0..depth).map(|_| ["a", "b", "c"][random.usize(..3)]).collect();
    names.join("/")
}

fn step(cx: &mut Cx<'_>, random: &mut fastrand::Rng) {
    let root = cx.fs().root();
    let (from, to) = (path(random), path(random));
    let [from, to] = [&from, &to].map(|path| At { directory: root, path: path.as_bytes() });
    let result = match random.u32(..12) {
        0 | 1 => cx.mkdir(from, 0o755),
        2 => cx.open(from, Open::CREATE, 0o644).map(|file| {
            let _ = cx.append(&file, b"bytes");
            cx.close(file);
        }),
        3 => cx.unlink(from),
        4 => cx.rmdir(from),
        5 => cx.link(from, to, false),
        6 => cx.symlink(b"b", from),
        7 => cx.stat(from, true).map(|_| ()),
        8 => cx.resolve(from, true).map(|node| {
            if node.kind() == Kind::Directory {
                let listed = cx.readdir(&node, 0, |_| true);
                assert!(matches!(listed, Ok(true) | Err(Errno::NoEntry)), "{listed:?}");
            }
            cx.close(node);
        }),
        9 => cx.rename(from, to, Rename::Exchange),
        _ => cx.rename(from, to, Rename::Replace),
    };
    let usual = [
        Errno::NoEntry,
        Errno::Exists,
        Errno::NotDirectory,
        Errno::IsDirectory,
        Errno::NotEmpty,
        Errno::Invalid,
        Errno::NotPermitted,
        Errno::TooManySymlinks,
    ];
    assert!(result.is_ok() || usual.contains(&result.unwrap_err()), "{result:?}");
}

fn everything(sync: Sync) {
    let fs = Fs::new(Options { chains: 2, ..Options::new(sync) });
    Native.parallel(4, |thread| {
        let (mut cx, mut random) = (fs.context(), fastrand::Rng::with_seed(u64::from(thread)));
        (0..20_000).for_each(|_| step(&mut cx, &mut random));
    });
    fs.context().check_all().unwrap_or_else(|error| panic!("{sync}: {error}"));
}

/// Threads move directories below each other. No cycle forms: all are found at the end.
fn moves(sync: Sync) {
    let fs = Fs::new(Options { chains: 2, ..Options::new(sync) });
    let at = |path: &'static str| At { directory: fs.root(), path: path.as_bytes() };
    let mut cx = fs.context();
    let names = ["a", "b", "c", "d", "e", "f"];
    names.iter().for_each(|name| cx.mkdir(at(name), 0o755).unwrap());
    let nodes: Vec<_> = names.iter().map(|name| cx.resolve(at(name), false).unwrap()).collect();
    Native.parallel(4, |thread| {
        let (mut cx, mut random) = (fs.context(), fastrand::Rng::with_seed(u64::from(thread)));
        for _ in 0..5_000 {
            // From its present place, as far as that is known, to below another.
            let (moved, below) = (random.usize(..6), random.usize(..6));
            let Ok(path) = cx.getcwd(&nodes[moved]) else { continue };
            let from = At { directory: fs.root(), path: &path };
            let to = At { directory: &nodes[below], path: names[moved].as_bytes() };
            let _ = cx.rename(from, to, Rename::NoReplace);
        }
    });
    nodes.into_iter().for_each(|node| cx.close(node));
    assert_eq!(cx.check_all().map(|totals| totals.directories), Ok(7), "{sync}: a cycle");
}

#[test]
fn everything_by_locks() {
    [Sync::DirLock, Sync::Lock, Sync::Rcu].into_iter().for_each(everything);
}

#[test]
fn everything_by_sessions() {
    [Sync::Rlu, Sync::MvRlu].into_iter().for_each(everything);
}

#[test]
fn moves_make_no_cycle() {
    Sync::ALL.into_iter().for_each(moves);
}
