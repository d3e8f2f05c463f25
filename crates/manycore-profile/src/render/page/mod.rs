//! A profile as one HTML page that loads nothing: the data, a style and a script in one file.
//!
//! The data are JSON in a script element that the browser does not run. No data can end that
//! element, and the script inserts them as text, never as markup: a function may be called
//! `</script>`.

mod cut;
mod digest;
mod samples;

use std::fmt::Write;

use crate::profile::Profile;

use cut::Limits;
use digest::Digest;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPTS: [&str; 7] = [
    include_str!("dom.js"),
    include_str!("table.js"),
    include_str!("flame.js"),
    include_str!("timeline.js"),
    include_str!("waits.js"),
    include_str!("samples.js"),
    include_str!("panels.js"),
];

/// The most data, in bytes: the page should open on a telephone.
const DATA_MAX: usize = 4 << 20;

/// The page. If the profile is too large, the locks with the shortest waits are left out, and the
/// page says so.
pub fn html(profile: &Profile) -> String {
    let mut limits = Limits::default();
    let data = loop {
        let data = embedded(&Digest::of(profile, &limits));
        if data.len() <= DATA_MAX || limits.are_least() {
            break data;
        }
        limits = limits.halved();
    };
    // The data come last: they may contain any text, even text that looks like a part of the page.
    let page = PAGE.replace("{{style}}", STYLE).replace("{{script}}", &SCRIPTS.concat());
    page.replacen("{{profile}}", &data, 1)
}

/// JSON without anything that has a meaning in HTML, or that ends a line of a script.
fn embedded(digest: &Digest) -> String {
    let json = serde_json::to_string(digest).expect("it has no maps whose keys are no strings");
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // JSON has these characters in strings only, where an escape means the same.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text
}
