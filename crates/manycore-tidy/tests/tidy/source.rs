//! The repository's files, as text and, for Rust, as tokens.
//!
//! Rules read tokens rather than a syntax tree, because many of their subjects are in macros, which
//! a tree does not enter; and rather than text, because comments and strings may contain what code
//! may not.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use walkdir::{DirEntry, WalkDir};

/// All text files of the repository.
pub static TREE: LazyLock<Vec<Source>> = LazyLock::new(read_tree);

/// The repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file.
pub struct Source {
    /// Relative to the repository.
    pub path: String,
    pub lines: Vec<String>,
    /// The tokens of a Rust file; empty for others.
    pub tokens: Vec<Token>,
}

/// A token of Rust. A path separator and a lifetime are one token each, as a reader sees them.
pub struct Token {
    pub text: String,
    /// Counted from 1.
    pub line: usize,
    /// Whether it is part of a `#[cfg(test)]` module.
    pub test: bool,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let mut tokens = Vec::new();
        if path.ends_with(".rs") {
            let stream: TokenStream = text.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
            flatten(stream, false, &mut tokens);
        }
        Self { path: path.into(), lines: text.lines().map(str::to_owned).collect(), tokens }
    }

    /// Whether it belongs to the sources of the named crate.
    pub fn is_source_of(&self, name: &str) -> bool {
        // KhronOS' crates have their directories' names after it.
        let of_kernel = name.strip_prefix("khronos-").is_some_and(|name| {
            let rest = self.path.strip_prefix("kernel/khronos/").and_then(|p| p.strip_prefix(name));
            rest.is_some_and(|p| p.starts_with("/src/"))
        });
        of_kernel
            || self
                .path
                .strip_prefix("crates/")
                .and_then(|p| p.strip_prefix(name))
                .is_some_and(|p| p.starts_with("/src/"))
    }

    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| extensions.iter().any(|x| e == *x))
    }

    /// Where a sequence of tokens, written with spaces between, occurs outside test modules: the
    /// rest of the tokens, from its first on.
    pub fn occurrences(&self, sequence: &str) -> Vec<&[Token]> {
        let sequence: Vec<_> = sequence.split(' ').collect();
        let starts = self.tokens.windows(sequence.len()).enumerate().filter(|(_, window)| {
            window.iter().zip(&sequence).all(|(token, text)| token.text == *text && !token.test)
        });
        starts.map(|(start, _)| &self.tokens[start..]).collect()
    }

    /// The text of a line, counted from 1.
    pub fn line(&self, number: usize) -> &str {
        self.lines[number - 1].trim()
    }
}

/// Whether a trimmed line is a comment, in Rust or C.
pub fn is_comment(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("/*") || line.starts_with('*')
}

/// A file's name without its directories.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn flatten(stream: TokenStream, test: bool, out: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    let mut test_follows = false;
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let mut push = |text: String, line| out.push(Token { text, line, test });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.into(), line);
                let of_test =
                    group.delimiter() == Delimiter::Brace && std::mem::take(&mut test_follows);
                test_follows |= group.to_string().replace(' ', "") == "[cfg(test)]";
                flatten(group.stream(), test || of_test, out);
                out.push(Token { text: close.into(), line: group.span_close().start().line, test });
            }
            TokenTree::Punct(punct) if punct.spacing() == Spacing::Joint => {
                let mut text = punct.as_char().to_string();
                match (punct.as_char(), trees.peek()) {
                    (':', Some(TokenTree::Punct(second))) if second.as_char() == ':' => {
                        text.push(':');
                        trees.next();
                    }
                    ('\'', Some(TokenTree::Ident(name))) => {
                        text.push_str(&name.to_string());
                        trees.next();
                    }
                    _ => {}
                }
                push(text, line);
            }
            other => {
                test_follows &= other.to_string() != ";";
                push(other.to_string(), line);
            }
        }
    }
}

fn read_tree() -> Vec<Source> {
    let files = WalkDir::new(root()).sort_by_file_name().into_iter().filter_entry(is_ours);
    files
        .map(|entry| entry.expect("the repository can be read"))
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| {
            let path =
                entry.path().strip_prefix(root()).expect("a file of the tree").to_str()?.to_owned();
            let text =
                String::from_utf8(fs::read(entry.path()).expect("the file can be read")).ok()?;
            Some(Source::new(&path, &text))
        })
        .collect()
}

/// What is committed, rather than built or private.
fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_str().unwrap_or("");
    let hidden = name.starts_with('.') && entry.depth() > 0 && name != ".ci";
    let built = ["target", "docs/book"].iter().any(|path| entry.path() == root().join(path));
    !hidden && !built
}

#[test]
fn sees_what_a_reader_sees() {
    let source = Source::new(
        "a.rs",
        "fn f<'a>(x: &'a str) {\n std::f(x); // g!\n}\n#[cfg(test)]\nmod t {\n static X: u8 = 0;\n}\nconst C: &str = \"\";",
    );
    let texts: Vec<_> = source.tokens.iter().map(|t| t.text.as_str()).collect();
    assert!(texts.windows(3).any(|w| w == ["std", "::", "f"]), "{texts:?}");
    assert!(texts.contains(&"'a") && !texts.contains(&"g"));
    assert_eq!(source.occurrences("static").len(), 0, "part of a test module");
    assert_eq!(source.occurrences("const C")[0][0].line, 8);
}

#[test]
fn reads_this_repository() {
    assert!(TREE.iter().any(|f| f.path == "crates/manycore/src/lib.rs"));
    assert!(TREE.iter().all(|f| !f.path.starts_with("target/debug/")));
}
