//! The bytes of files.

use khronos_fs::{At, Fs, Open, Options, Sync};
use proptest::prelude::*;

/// A write, a truncation, a read.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Append(Vec<u8>),
    Truncate(u64),
    Read(u64, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let data = || prop::collection::vec(any::<u8>(), 0..6000);
    let step = prop_oneof![
        (0_u64..20_000, data()).prop_map(|(offset, data)| Step::Write(offset, data)),
        data().prop_map(Step::Append),
        (0_u64..20_000).prop_map(Step::Truncate),
        (0_u64..24_000, 0_usize..10_000).prop_map(|(offset, length)| Step::Read(offset, length)),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn is_what_was_written(steps in steps()) {
        let fs = Fs::new(Options::new(Sync::Rcu));
        let mut cx = fs.context();
        let file = cx.open(At { directory: fs.root(), path: b"f" }, Open::CREATE, 0o644).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for step in steps {
            match step {
                Step::Write(offset, data) => {
                    prop_assert_eq!(cx.write(&file, offset, &data), Ok(data.len()));
                    let offset = offset as usize;
                    if !data.is_empty() {
                        model.resize(model.len().max(offset + data.len()), 0);
                        model[offset..][..data.len()].copy_from_slice(&data);
                    }
                }
                Step::Append(data) => {
                    let end = model.len() as u64;
                    prop_assert_eq!(cx.append(&file, &data), Ok((end, data.len())));
                    model.extend(data);
                }
                Step::Truncate(size) => {
                    prop_assert_eq!(cx.truncate(&file, size), Ok(()));
                    model.resize(size as usize, 0);
                }
                Step::Read(offset, length) => {
                    let mut buffer = vec![0; length];
                    let read = cx.read(&file, offset, &mut buffer).unwrap();
                    let begin = model.len().min(offset as usize);
                    prop_assert_eq!(&buffer[..read], &model[begin..model.len().min(begin + length)]);
                }
            }
            prop_assert_eq!(cx.stat_of(&file).size, model.len() as u64);
        }
        cx.close(file);
    }
}
