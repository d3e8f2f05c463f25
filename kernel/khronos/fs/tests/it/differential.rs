//! The same calls on the host's own file system in memory: the same errors, and the same tree.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use khronos_fs::{At, Cx, Errno, Fs, Inode, Kind, Open, Options, Rename, Sync};
use proptest::prelude::*;
use rustix::fs::{self as host, AtFlags, FileType, Mode, OFlags, RenameFlags};

#[derive(Clone, Debug)]
enum Step {
    Create(String, bool),
    Mkdir(String),
    Symlink(String, String),
    Link(String, String, bool),
    Unlink(String),
    Rmdir(String),
    Rename(String, String, Rename),
    Stat(String, bool),
    ReadLink(String),
    Open(String),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just("a"), 6 => Just("b"), 4 => Just("c"), 1 => Just("."), 1 => Just(".."),
    ]
}

fn path() -> impl Strategy<Value = String> {
    (prop::collection::vec(name(), 1..4), prop::bool::weighted(0.1))
        .prop_map(|(names, slash)| names.join("/") + if slash { "/" } else { "" })
}

/// A target that leads no higher than its own directory, so a cycle of such links stays there.
fn target() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("."), Just("a/b"), Just("b/c/"), Just("c/a")]
        .prop_map(String::from)
}

fn step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        3 => Just(Rename::Replace), 1 => Just(Rename::NoReplace), 1 => Just(Rename::Exchange),
    ];
    prop_oneof![
        3 => (path(), any::<bool>()).prop_map(|(path, new)| Step::Create(path, new)),
        4 => path().prop_map(Step::Mkdir),
        1 => (target(), path()).prop_map(|(target, path)| Step::Symlink(target, path)),
        2 => (path(), path(), any::<bool>()).prop_map(|(a, b, follow)| Step::Link(a, b, follow)),
        2 => path().prop_map(Step::Unlink),
        2 => path().prop_map(Step::Rmdir),
        5 => (path(), path(), how).prop_map(|(a, b, how)| Step::Rename(a, b, how)),
        1 => (path(), any::<bool>()).prop_map(|(path, follow)| Step::Stat(path, follow)),
        1 => path().prop_map(Step::ReadLink),
        1 => path().prop_map(Step::Open),
    ]
}

fn ours(cx: &mut Cx<'_>, base: &Inode, step: &Step) -> i32 {
    fn at<'a>(base: &'a Inode, path: &'a str) -> At<'a> {
        At { directory: base, path: path.as_bytes() }
    }
    let at = |path| at(base, path);
    let mut open = |path, how| cx.open(at(path), how, 0o644).map(|file| cx.close(file));
    let result = match step {
        Step::Create(path, true) => open(path, Open::NEW),
        Step::Create(path, false) => open(path, Open::CREATE),
        Step::Open(path) => open(path, Open::READ),
        Step::Mkdir(path) => cx.mkdir(at(path), 0o755),
        Step::Symlink(target, path) => cx.symlink(target.as_bytes(), at(path)),
        Step::Link(from, to, follow) => cx.link(at(from), at(to), *follow),
        Step::Unlink(path) => cx.unlink(at(path)),
        Step::Rmdir(path) => cx.rmdir(at(path)),
        Step::Rename(from, to, how) => cx.rename(at(from), at(to), *how),
        Step::Stat(path, follow) => cx.stat(at(path), *follow).map(|_| ()),
        Step::ReadLink(path) => cx.readlink(at(path), &mut [0; 64]).map(|_| ()),
    };
    result.map_or_else(Errno::number, |()| 0)
}

fn theirs(base: &OwnedFd, step: &Step) -> i32 {
    let mode = Mode::from_raw_mode(0o644);
    let open = |path: &str, flags| host::openat(base, path, flags, mode).map(|_| ());
    let create = OFlags::CREATE | OFlags::WRONLY;
    let result = match step {
        Step::Create(path, true) => open(path, create | OFlags::EXCL),
        Step::Create(path, false) => open(path, create),
        Step::Open(path) => open(path, OFlags::RDONLY),
        Step::Mkdir(path) => host::mkdirat(base, path, Mode::from_raw_mode(0o755)),
        Step::Symlink(target, path) => host::symlinkat(target, base, path),
        Step::Link(from, to, follow) => {
            let flags = if *follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
            host::linkat(base, from, base, to, flags)
        }
        Step::Unlink(path) => host::unlinkat(base, path, AtFlags::empty()),
        Step::Rmdir(path) => host::unlinkat(base, path, AtFlags::REMOVEDIR),
        Step::Rename(from, to, how) => {
            let flags = match how {
                Rename::Replace => RenameFlags::empty(),
                Rename::NoReplace => RenameFlags::NOREPLACE,
                Rename::Exchange => RenameFlags::EXCHANGE,
            };
            host::renameat_with(base, from, base, to, flags)
        }
        Step::Stat(path, follow) => {
            let flags = if *follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
            host::statat(base, path, flags).map(|_| ())
        }
        Step::ReadLink(path) => host::readlinkat(base, path, Vec::new()).map(|_| ()),
    };
    result.map_or_else(rustix::io::Errno::raw_os_error, |()| 0)
}

/// Paths, kinds and links, of what is below.
type Tree = BTreeMap<String, (Kind, u64)>;

fn our_tree(cx: &mut Cx<'_>, base: &Inode, prefix: &str, tree: &mut Tree) {
    let mut names = Vec::new();
    cx.readdir(base, 0, |entry| {
        names.push(String::from_utf8(entry.name.to_vec()).unwrap());
        true
    })
    .unwrap();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let node = cx.resolve(At { directory: base, path: name.as_bytes() }, false).unwrap();
        let stat = cx.stat_of(&node);
        tree.insert(format!("{prefix}{name}"), (stat.kind, stat.links));
        if stat.kind == Kind::Directory {
            our_tree(cx, &node, &format!("{prefix}{name}/"), tree);
        }
        cx.close(node);
    }
}

fn their_tree(base: &OwnedFd, prefix: &str, tree: &mut Tree) {
    for entry in host::Dir::read_from(base).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap();
        if name.starts_with('.') {
            continue;
        }
        let stat = host::statat(base, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::File,
        };
        let links = if kind == Kind::Directory { 1 } else { stat.st_nlink as u64 };
        tree.insert(format!("{prefix}{name}"), (kind, links));
        if kind == Kind::Directory {
            let below = open_directory(base.as_fd(), name);
            their_tree(&below, &format!("{prefix}{name}/"), tree);
        }
    }
}

fn open_directory(base: impl AsFd, name: &str) -> OwnedFd {
    host::openat(base, name, OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).unwrap()
}

/// So deep below the root that no path of a test leads out of it.
const BASE: &str = "1/2/3/4/5/6";

fn compare(sync: Sync, steps: &[Step], directory: &Path) -> Result<(), TestCaseError> {
    let fs = Fs::new(Options::new(sync));
    let mut cx = fs.context();
    for (end, _) in BASE.match_indices('/').chain([(BASE.len(), "")]) {
        cx.mkdir(At { directory: fs.root(), path: &BASE.as_bytes()[..end] }, 0o755).unwrap();
    }
    let base = cx.resolve(At { directory: fs.root(), path: BASE.as_bytes() }, true).unwrap();
    let host = tempfile::tempdir_in(directory).unwrap();
    std::fs::create_dir_all(host.path().join(BASE)).unwrap();
    let path = CString::new(host.path().join(BASE).as_os_str().as_bytes()).unwrap();
    let host_base = host::open(&path, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for (number, step) in steps.iter().enumerate() {
        let (ours, theirs) = (ours(&mut cx, &base, step), theirs(&host_base, step));
        prop_assert_eq!(ours, theirs, "{}: step {} {:?} of {:?}", sync, number, step, steps);
    }
    let (mut our, mut their) = (Tree::new(), Tree::new());
    our_tree(&mut cx, &base, "", &mut our);
    their_tree(&host_base, "", &mut their);
    prop_assert_eq!(our, their);
    cx.close(base);
    let checked = cx.check_all();
    prop_assert!(checked.is_ok(), "{}: {:?}", sync, checked);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn does_what_tmpfs_does(
        steps in prop::collection::vec(step(), 1..40),
        sync in prop::sample::select(&Sync::ALL[..]),
    ) {
        // A place in memory on every Linux.
        let memory = Path::new("/dev").join("shm");
        if memory.is_dir() {
            compare(sync, &steps, &memory)?;
        }
    }
}
