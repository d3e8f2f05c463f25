//! One call after the other, under every mechanism.

use khronos_fs::{At, Cx, Errno, Fs, Open, Options, Rename, Sync};

fn under_each(test: impl Fn(&Fs, &mut Cx<'_>)) {
    for sync in Sync::ALL {
        let fs = Fs::new(Options::new(sync));
        let mut cx = fs.context();
        test(&fs, &mut cx);
        cx.check_all().unwrap_or_else(|error| panic!("{sync}: {error}"));
    }
}

/// Without the slash before it.
fn path_of(cx: &mut Cx<'_>, directory: &khronos_fs::Inode) -> String {
    let path = String::from_utf8(cx.getcwd(directory).unwrap()).unwrap();
    path.strip_prefix('/').unwrap().to_owned()
}

fn names(cx: &mut Cx<'_>, path: At<'_>) -> Vec<String> {
    let directory = cx.resolve(path, true).unwrap();
    let mut names = Vec::new();
    let visit = |entry: khronos_fs::Entry<'_>| {
        names.push(String::from_utf8(entry.name.to_vec()).unwrap());
        true
    };
    assert!(cx.readdir(&directory, 0, visit).unwrap());
    cx.close(directory);
    names.sort();
    names
}

#[test]
fn files_are_made_and_found() {
    under_each(|fs, cx| {
        let at = |path: &'static str| At { directory: fs.root(), path: path.as_bytes() };
        cx.mkdir(at("a"), 0o755).unwrap();
        let file = cx.open(at("a/f"), Open::NEW, 0o644).unwrap();
        assert_eq!(cx.open(at("a/f"), Open::NEW, 0o644).unwrap_err(), Errno::Exists);
        assert_eq!(cx.write(&file, 5000, b"hello"), Ok(5));
        let mut buffer = [1; 8];
        assert_eq!(cx.read(&file, 4998, &mut buffer), Ok(7));
        assert_eq!(&buffer[..7], b"\0\0hello");
        cx.link(at("a/f"), at("g"), false).unwrap();
        assert_eq!(cx.stat(at("g"), false).unwrap().links, 2);
        cx.unlink(at("a/f")).unwrap();
        cx.rmdir(at("a")).unwrap();
        assert_eq!(cx.stat(at("a"), true).unwrap_err(), Errno::NoEntry);
        cx.symlink(b"g", at("s")).unwrap();
        assert_eq!(cx.stat(at("s"), true).unwrap().size, 5005);
        assert_eq!(names(cx, at("/")), [".", "..", "g", "s"]);
        cx.close(file);
    });
}

#[test]
fn directories_are_moved() {
    under_each(|fs, cx| {
        let at = |path: &'static str| At { directory: fs.root(), path: path.as_bytes() };
        for path in ["a", "a/b", "a/b/c", "d"] {
            cx.mkdir(at(path), 0o755).unwrap();
        }
        let rename = |cx: &mut Cx<'_>, from, to| cx.rename(at(from), at(to), Rename::Replace);
        assert_eq!(rename(cx, "a", "a/b/x"), Err(Errno::Invalid));
        assert_eq!(rename(cx, "a/b", "a"), Err(Errno::NotEmpty));
        rename(cx, "a/b", "d").unwrap();
        rename(cx, "d/c", "a/c").unwrap();
        assert_eq!(rename(cx, "d", "a/c/d"), Ok(()));
        let there = cx.resolve(at("a/c/d"), true).unwrap();
        assert_eq!(path_of(cx, &there), "a/c/d");
        cx.rename(at("a/c"), at("e"), Rename::NoReplace).unwrap();
        assert_eq!(path_of(cx, &there), "e/d");
        cx.rename(at("a"), at("e/d"), Rename::Exchange).unwrap();
        assert_eq!(path_of(cx, &there), "a");
        cx.rmdir(at("a")).unwrap();
        let below = At { directory: &there, path: b"x" };
        assert_eq!(cx.mkdir(below, 0o755), Err(Errno::NoEntry));
        cx.close(there);
    });
}
