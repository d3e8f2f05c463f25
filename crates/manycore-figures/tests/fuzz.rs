//! Reading a figure's file gives a figure or a sentence that describes the fault, whatever the file
//! contains.

use manycore_figures::{Extent, Figure};

#[test]
fn figures() {
    let valid = [
        include_str!("../../../figures/innodb-locks.toml"),
        include_str!("../../../figures/mvrlu-bst.toml"),
    ];
    for extent in [Extent::Whole, Extent::Quick] {
        manycore_fuzz::texts("a figure", &valid, |text| {
            if let Err(problem) = Figure::parse("one", text, extent) {
                assert!(problem.to_string().contains("`one`"), "{problem}");
            }
        });
    }
}
