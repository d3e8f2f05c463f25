//! Whatever sysfs, `/proc`, or a user gives as CPUs: the library understands it, or names the
//! faulty text.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Built, IVY_BRIDGE};
use manycore_placement::{CpuSet, Machine, Request, Tree};

#[test]
fn cpu_lists() {
    manycore_fuzz::texts("a list of CPUs", &["0-3,7,9-11", "0", ""], |text| {
        if let Ok(set) = text.parse::<CpuSet>() {
            let again = set.to_string().parse::<CpuSet>();
            assert_eq!(again.map(|again| again.to_string()), Ok(set.to_string()));
        }
        let _: Result<Request, _> = text.parse();
    });
    manycore_fuzz::texts("a mask of CPUs", &["ff", "ffffffff,0000000f", "00000000,3"], |text| {
        if let Some(set) = CpuSet::from_mask(text) {
            assert!(set.len() <= 4 * text.len());
        }
    });
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files_below(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// One file is replaced: the first two bytes choose it, and the rest is its content.
#[test]
fn what_the_kernel_shows() {
    let built = Built::new(&IVY_BRIDGE).card("eth0", 0, &[0, 1, 2, 3]);
    let mut files = Vec::new();
    files_below(built.root(), &mut files);
    files.sort();
    let texts: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let valid: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| [&(number as u16).to_le_bytes(), &text[..]].concat())
        .collect();
    let valid: Vec<_> = valid.iter().map(|input| &input[..]).collect();
    let tree = Tree::below(built.root());
    assert!(Machine::read(&tree, None).is_ok());
    manycore_fuzz::bytes("a file of sysfs or /proc", &valid, |input| {
        let Some((number, text)) = input.split_at_checked(2) else { return };
        let number = usize::from(u16::from_le_bytes([number[0], number[1]])) % files.len();
        fs::write(&files[number], text).unwrap();
        let read = Machine::read(&tree, None);
        fs::write(&files[number], &texts[number]).unwrap();
        if let Err(problem) = read {
            assert!(!problem.to_string().is_empty());
        }
    });
}
