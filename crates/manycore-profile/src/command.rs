//! Commands as a person reads and pastes them.

/// A command as a shell would read it.
pub fn joined<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted = |(at, word): (usize, W)| quoted(word.as_ref(), at == 0);
    words.into_iter().enumerate().map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str, is_program: bool) -> String {
    // This is not left to the quoter: it also quotes words with braces or an equals sign, as most
    // options here have. To a shell an equals sign has a meaning only before the program.
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || "-_./:,+@%{}".contains(c) || (c == '=' && !is_program)
    };
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // A word with a zero byte cannot be written for a shell, and no program has ever received one.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let words = ["a", "--port={port}", "b c", "", "$HOME"];
        assert_eq!(joined(words), "a --port={port} 'b c' '' '$HOME'");
    }

    #[test]
    fn what_the_shell_would_take_for_an_assignment_is_quoted() {
        assert_eq!(joined(["A=b", "c=d"]), "'A=b' c=d");
    }
}
