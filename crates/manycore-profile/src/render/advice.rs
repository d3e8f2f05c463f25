//! What would help, for a terminal.

use crate::profile::Profile;

/// This many notes are shown.
const SHOWN: usize = 5;
const WIDTH: usize = 100;

/// The advice of a profile; empty if there is none.
pub fn of(profile: &Profile) -> String {
    if profile.notes.is_empty() {
        return String::new();
    }
    let mut text = "What would help\n".to_owned();
    for note in profile.notes.iter().take(SHOWN) {
        text += &wrapped(&note.advice, "- ", "  ");
        text += &wrapped(&format!("({})", note.evidence), "  ", "  ");
    }
    match profile.notes.len().saturating_sub(SHOWN) {
        0 => {}
        more => text += &format!("{more} more notes (--json)\n"),
    }
    text.push('\n');
    text
}

/// Wraps words into lines. The first line has another indent than the others.
fn wrapped(words: &str, first: &str, others: &str) -> String {
    let mut text = String::new();
    let mut line = first.to_owned();
    for word in words.split(' ') {
        let is_begun = line.len() > others.len();
        if is_begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &(line + "\n");
            line = others.to_owned();
        } else if is_begun {
            line.push(' ');
        }
        line += word;
    }
    text + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_to_the_next_line() {
        let words = ["word"; 60].join(" ");
        let text = wrapped(&words, "- ", "  ");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines[0].starts_with("- word word") && lines[1].starts_with("  word"), "{text}");
        assert_eq!(text.split_whitespace().count(), 61);
    }
}
