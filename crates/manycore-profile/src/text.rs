//! Text for people: text from foreign files, demangled, short and harmless; times and shares.

use std::fmt::{self, Write};

use manycore_measure::duration;

/// The length to which names are cut: templates have names of any length, and a short mangled name
/// can stand for a very long one.
const LONGEST: usize = 1024;

/// The name of a function or variable as its author wrote it, for C++ and for Rust (both kinds of
/// mangling). The hash at the end of a Rust name is left out.
pub fn demangled(symbol: &str) -> String {
    let mut out = Short::default();
    // Text that does not fit is an error to the demangler, which stops there.
    let done = if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        write!(out, "{rust:#}")
    } else if symbol.starts_with('_')
        // Else it takes a C function `m` for a type.
        && let Ok(cxx) = cpp_demangle::Symbol::new(symbol)
    {
        cxx.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::new())
    } else {
        return safe(symbol);
    };
    if done.is_err() && !out.is_cut {
        return safe(symbol);
    }
    out.finish()
}

/// The text without characters that control a terminal or a page, cut if it is long.
pub fn safe(text: &str) -> String {
    let mut out = Short::default();
    // An error says that it was cut.
    let _ = out.write_str(text);
    out.finish()
}

/// The text without characters that control a terminal or a page, of any length.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// At most [`LONGEST`] characters, all of them harmless.
#[derive(Default)]
struct Short {
    text: String,
    characters: usize,
    is_cut: bool,
}

impl Short {
    fn finish(mut self) -> String {
        if self.is_cut {
            self.text.push_str("...");
        }
        self.text
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.characters == LONGEST {
                self.is_cut = true;
                return Err(fmt::Error);
            }
            self.text.push(if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER });
            self.characters += 1;
        }
        Ok(())
    }
}

/// A time, in the unit that suits.
pub fn seconds(seconds: f64) -> String {
    duration(seconds * 1e9).trim_end().to_owned()
}

/// A share, of which small ones are not zero.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 0.095 => "<0.1 %".to_owned(),
        some if some < 9.95 => format!("{some:.1} %"),
        much => format!("{much:.0} %"),
    }
}

/// Whether it is neither a control character nor one that reverses the direction of writing.
fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_three_languages() {
        for (symbol, name) in [
            ("main", "main"),
            ("m", "m"),
            ("_ZN4shop5Cache3getEi", "shop::Cache::get(int)"),
            ("_ZN4shop5Cache3get17h0123456789abcdefE", "shop::Cache::get"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.42", "core::ptr::drop_in_place"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(demangled(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn hostile_names_are_cut_and_harmless() {
        let long = demangled(&"x".repeat(1 << 20));
        assert_eq!((long.len(), &long[LONGEST..]), (LONGEST + 3, "..."));
        assert_eq!(demangled("a\x1b[2Jb\u{202e}c\n"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        // Each argument is a pair of the one before: 2^40 of them, if written out.
        let pairs: String = (0..40).map(|at| format!("S_IS{0}_S{0}_E", base_36(at))).collect();
        let bomb = demangled(&format!("_Z1fI1aE{pairs}"));
        assert!(bomb.len() <= 3 * LONGEST + 3, "{}", bomb.len());
    }

    fn base_36(at: u32) -> String {
        at.checked_sub(1)
            .and_then(|digit| char::from_digit(digit, 36))
            .map_or_else(String::new, |digit| digit.to_ascii_uppercase().to_string())
    }

    #[test]
    fn small_shares_are_not_zero() {
        let shown = [0.0, 0.0001, 0.024, 0.5, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "<0.1 %", "2.4 %", "50 %", "100 %"]);
    }
}
