//! The book's chapters are listed, listed files exist, links lead to existing files and headings,
//! and every lock and command has a description.

use std::path::{Component, Path, PathBuf};

use crate::Finding;
use crate::source::{Source, TREE, root};

const CHAPTERS: &str = "docs/src/";
const SUMMARY: &str = "docs/src/SUMMARY.md";
const LOCKS: &str = "docs/src/locks.md";

/// Commands without a chapter: name and reason.
const NO_CHAPTER: &[(&str, &str)] = &[
    ("man", "for packagers, who call `make install`"),
    ("completions", "for packagers, who call `make install`"),
];

/// The targets of a Markdown file's links and includes, with their lines.
fn links(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    file.lines.iter().enumerate().flat_map(|(index, line)| {
        let linked = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let included = line.split("{{#include ").skip(1);
        let included = included.filter_map(|rest| rest.split(['}', ':']).next());
        linked
            .chain(included)
            .filter(|t| !t.is_empty() && !t.contains("://"))
            .map(move |target| (index + 1, target))
    })
}

/// The path that a link in `file` leads to.
fn resolve(file: &str, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in Path::new(file).with_file_name(link).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            part => path.push(part),
        }
    }
    path
}

fn dead_links(file: &Source, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let dead = links(file).filter(|(_, link)| !exists(&resolve(&file.path, link)));
    dead.map(|(line, link)| Finding::new(&file.path, line, format!("nothing is at {link}")))
        .collect()
}

/// The links of a Markdown file to headings: the file, empty for the same one, and the heading's
/// name, with their lines.
fn anchors(file: &Source) -> impl Iterator<Item = (usize, &str, &str)> {
    file.lines.iter().enumerate().flat_map(|(index, line)| {
        let linked = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let named = linked.filter_map(|(target, _)| target.split_once('#'));
        named
            .filter(|(path, _)| !path.contains("://"))
            .map(move |(path, name)| (index + 1, path, name))
    })
}

/// The name by which a link leads to a heading.
fn heading_name(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name = heading.trim_start_matches('#').trim().chars().filter(kept);
    name.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Whether a page has the heading, itself or in a file that it includes.
fn has_heading<'a>(page: &Source, name: &str, find: &impl Fn(&Path) -> Option<&'a Source>) -> bool {
    let is_named = |line: &String| line.starts_with('#') && heading_name(line) == name;
    page.lines.iter().any(|line| match line.strip_prefix("{{#include ") {
        Some(rest) => {
            let included = rest.split(['}', ':']).next().unwrap_or(rest);
            find(&resolve(&page.path, included)).is_some_and(|page| has_heading(page, name, find))
        }
        None => is_named(line),
    })
}

fn dead_anchors<'a>(file: &Source, find: impl Fn(&Path) -> Option<&'a Source>) -> Vec<Finding> {
    let dead = anchors(file).filter(|(_, path, name)| {
        let missing = |page: &Source| !has_heading(page, name, &find);
        if path.is_empty() {
            return missing(file);
        }
        path.ends_with(".md") && find(&resolve(&file.path, path)).is_some_and(missing)
    });
    let advice = |path: &str, name: &str| format!("no heading of {path} is called #{name}");
    dead.map(|(line, path, name)| Finding::new(&file.path, line, advice(path, name))).collect()
}

fn unlisted<'a>(summary: &Source, chapters: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let listed: Vec<_> = links(summary).map(|(_, link)| resolve(&summary.path, link)).collect();
    let missing = chapters
        .filter(|path| *path != summary.path && !listed.iter().any(|l| l == Path::new(path)));
    missing
        .map(|path| Finding::new(path, 1, format!("no reader finds it: list it in {SUMMARY}")))
        .collect()
}

/// The names that locks give themselves in their `LockInfo`, with their lines.
fn lock_names(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let infos = file.occurrences("LockInfo { name :").into_iter().filter_map(|rest| rest.get(4));
    infos.map(|name| (name.line, name.text.trim_matches('"')))
}

fn undescribed(file: &Source, chapter: &Source) -> Vec<Finding> {
    let headings = chapter.lines.iter().filter_map(|line| line.strip_prefix('#'));
    let is_described = |name| headings.clone().any(|h| h.trim_start_matches('#').trim() == name);
    let missing = lock_names(file).filter(|(_, name)| !is_described(*name));
    let advice = |name| format!("give {name} a section in {LOCKS}, under its name");
    missing.map(|(line, name)| Finding::new(&file.path, line, advice(name))).collect()
}

/// The variants of the enumeration `Command`, with their lines, by their names on the command line.
fn commands(file: &Source) -> Vec<(usize, String)> {
    let declared = file.occurrences("enum Command {").into_iter().flat_map(|rest| &rest[3..]);
    let body: Vec<_> = declared.take_while(|token| token.text != "}").collect();
    let variants = body.windows(2).filter(|pair| pair[1].text == "(");
    variants
        .filter(|pair| pair[0].text.starts_with(char::is_uppercase))
        .map(|pair| (pair[0].line, pair[0].text.to_lowercase()))
        .collect()
}

fn without_chapter(file: &Source, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let exempt = |name: &str| NO_CHAPTER.iter().any(|(listed, _)| *listed == name);
    let chapter = |name: &str| format!("{CHAPTERS}commands/{name}.md");
    let missing = commands(file)
        .into_iter()
        .filter(|(_, name)| !exempt(name) && !exists(Path::new(&chapter(name))));
    missing
        .map(|(line, name)| {
            Finding::new(&file.path, line, format!("write {} about it", chapter(&name)))
        })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let pages = TREE.iter().filter(|file| file.has_extension(&["md"]));
    crate::report(pages.flat_map(|file| dead_links(file, |path| root().join(path).exists())));
}

#[test]
fn links_lead_to_headings() {
    let find = |path: &Path| TREE.iter().find(|file| Path::new(&file.path) == path);
    let pages = TREE.iter().filter(|file| file.has_extension(&["md"]));
    crate::report(pages.flat_map(|file| dead_anchors(file, find)));
}

#[test]
fn chapters_are_listed() {
    let summary = TREE.iter().find(|file| file.path == SUMMARY).expect("the book has a summary");
    let chapters =
        TREE.iter().map(|file| file.path.as_str()).filter(|path| path.starts_with(CHAPTERS));
    crate::report(unlisted(summary, chapters.filter(|path| path.ends_with(".md"))));
}

#[test]
fn every_lock_is_described() {
    let chapter =
        TREE.iter().find(|file| file.path == LOCKS).expect("the book has a chapter on locks");
    let sources = || TREE.iter().filter(|file| file.is_source_of("manycore"));
    crate::report(sources().flat_map(|file| undescribed(file, chapter)));
    assert!(sources().flat_map(lock_names).count() > 1, "no lock found: has `LockInfo` changed?");
}

#[test]
fn every_command_has_a_chapter() {
    let sources = || TREE.iter().filter(|file| file.is_source_of("manycore-cli"));
    crate::report(
        sources().flat_map(|file| without_chapter(file, |path| root().join(path).exists())),
    );
    assert!(
        sources().flat_map(commands).count() > 1,
        "no command found: is `Command` called otherwise?"
    );
}

#[test]
fn notices_a_command_without_a_chapter() {
    let file = Source::new(
        "a.rs",
        "enum Command {\n Run(run::Options),\n Man(Pages),\n Top(Options),\n}\nenum A { B(u8) }",
    );
    let findings = without_chapter(&file, |path| path.ends_with("run.md"));
    assert_eq!(crate::lines(findings), [4]);
}

#[test]
fn notices_a_lock_that_is_not_described() {
    let lock = Source::new("a.rs", "const A: LockInfo = LockInfo {\n name: \"tas\" };");
    assert_eq!(crate::lines(undescribed(&lock, &Source::new(LOCKS, "about tas\n## ttas"))), [2]);
    assert!(undescribed(&lock, &Source::new(LOCKS, "### tas")).is_empty());
}

#[test]
fn notices_dead_links_and_lost_chapters() {
    let page = Source::new(
        "docs/src/a.md",
        "[x](b.md#c)\n[y](../gone.md) [z](https://a.example/b) [w](#here)\n{{#include no.md}}",
    );
    let findings = dead_links(&page, |path| path == Path::new("docs/src/b.md"));
    assert_eq!(crate::lines(findings), [2, 3]);
    let summary = Source::new(SUMMARY, "- [a](a.md)");
    assert_eq!(unlisted(&summary, ["docs/src/a.md", "docs/src/lost.md"].into_iter()).len(), 1);
}

#[test]
fn notices_links_to_headings_that_are_not_there() {
    let page = Source::new(
        "docs/src/a.md",
        "# One: `two`\n[x](#one-two) [y](#two)\n[z](b.md#at-the-end)\n[w](b.md#gone)\n[v](c.rs#L3)",
    );
    let other = Source::new("docs/src/b.md", "{{#include ../c.md}}");
    let included = Source::new("docs/c.md", "## At the end");
    let all = [&other, &included];
    let find = |path: &Path| all.into_iter().find(|file| Path::new(&file.path) == path);
    assert_eq!(crate::lines(dead_anchors(&page, find)), [2, 4]);
}
