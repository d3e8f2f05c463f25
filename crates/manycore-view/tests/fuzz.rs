//! Whatever is in a file that is named as a profile, it is refused with a sentence, or drawn in all forms.

mod support;

use manycore_view::{diff, folded, page, read, trace};

#[test]
fn profiles() {
    let profile = support::profile(3, 2);
    let valid = serde_json::to_string(&profile).unwrap();
    manycore_fuzz::texts("a profile", &[&valid], |text| match read::from_text("a.json", text) {
        Ok(profile) => {
            _ = page::html(&profile);
            _ = folded::folded(&profile);
            _ = trace::trace(&profile).to_string();
            _ = diff::diff(&profile, &profile);
        }
        Err(why) => assert!(why.to_string().contains("a.json"), "{why}"),
    });
}
