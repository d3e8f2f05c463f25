//! Modules of one folder use each other in one direction only: each can be read, tested and moved
//! without the ones that use it.
//!
//! A module stands for all modules below it. A module's uses of its parent, and a parent's uses of
//! its modules, are not judged: a folder is one unit.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::source::{Source, TREE, Token};

/// Names of modules, on the way from a crate's root.
type Path<'a> = Vec<&'a str>;

/// The uses between the modules of one folder: user, used, and the first place.
type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a Source, usize)>>;

/// The crate of a file, and the module that the file is.
fn module_of(file: &Source) -> Option<(&str, Path<'_>)> {
    let (krate, rest) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut names: Vec<_> = rest.strip_suffix(".rs")?.split('/').collect();
    names.pop_if(|last| ["mod", "lib", "main"].contains(last));
    Some((krate, names))
}

/// The paths in a file, outside of its tests, with their lines. A `use` with braces is expanded.
fn paths(file: &Source) -> Vec<(usize, Path<'_>)> {
    let tokens: Vec<_> = file.tokens.iter().filter(|token| !token.test).collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let begins = is_name(tokens[at]) && (at == 0 || tokens[at - 1].text != "::");
        if tokens[at].text == "use" {
            at = branch(&tokens, at + 1, &[], &mut found);
        } else if begins {
            let (path, end) = plain(&tokens, at);
            found.push((tokens[at].line, path));
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

fn is_name(token: &Token) -> bool {
    token.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names from here on that are joined by `::`, and the tokens after the last of them.
fn plain<'a>(tokens: &[&'a Token], mut at: usize) -> (Path<'a>, usize) {
    let mut path = Vec::new();
    while at < tokens.len() && is_name(tokens[at]) {
        path.push(tokens[at].text.as_str());
        at += 1;
        if tokens.get(at).is_none_or(|token| token.text != "::") {
            break;
        }
        at += 1;
    }
    (path, at)
}

/// Adds the paths of a branch of a `use`; returns the rest after the branch.
fn branch<'a>(
    tokens: &[&'a Token],
    at: usize,
    prefix: &[&'a str],
    found: &mut Vec<(usize, Path<'a>)>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or(";", |token| token.text.as_str());
    let (path, mut end) = plain(tokens, at);
    let path = [prefix, &path].concat();
    if text(end) == "{" {
        end += 1;
        while !["}", ";"].contains(&text(end)) {
            end = branch(tokens, end, &path, found);
            end += usize::from(text(end) == ",");
        }
        return end + 1;
    }
    found.push((tokens[at].line, path));
    while ![",", "}", ";"].contains(&text(end)) {
        end += 1;
    }
    end
}

/// The module to which a path in `module` leads, if it is one of the known modules.
fn target<'a>(path: &[&'a str], module: &[&'a str], all: &BTreeSet<Path<'a>>) -> Option<Path<'a>> {
    let ups = path.iter().take_while(|name| **name == "super").count();
    let mut full = match *path.first()? {
        "crate" => path[1..].to_vec(),
        "self" => [module, &path[1..]].concat(),
        "super" => [&module[..module.len().checked_sub(ups)?], &path[ups..]].concat(),
        first if all.contains(&[module, &[first]].concat()) => [module, path].concat(),
        _ => return None,
    };
    while !all.contains(&full) {
        full.pop()?;
    }
    Some(full)
}

/// The uses between neighbouring modules, by their folder.
fn uses<'a>(files: &[(&'a Source, Path<'a>)]) -> BTreeMap<Path<'a>, Uses<'a>> {
    let all: BTreeSet<_> = files.iter().map(|(_, module)| module.clone()).collect();
    let mut folders: BTreeMap<Path<'a>, Uses<'a>> = BTreeMap::new();
    for (file, module) in files {
        for (line, path) in paths(file) {
            let Some(target) = target(&path, module, &all) else { continue };
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(user), Some(used)) = (module.get(common), target.get(common)) {
                let uses = folders.entry(module[..common].to_vec()).or_default();
                uses.entry(user).or_default().entry(used).or_insert((file, line));
            }
        }
    }
    folders
}

/// A path from a module back to itself, if there is one: each step is a module and its use.
fn circle<'a>(uses: &Uses<'a>, start: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut reached = vec![start];
    let mut next = 0;
    while let Some(user) = reached.get(next).copied() {
        for used in uses.get(user).into_iter().flat_map(BTreeMap::keys) {
            if *used == start {
                let mut steps = vec![(user, start)];
                while let Some(before) = came_from.get(steps[0].0).copied() {
                    steps.insert(0, (before, steps[0].0));
                }
                return Some(steps);
            }
            if !reached.contains(used) {
                came_from.insert(used, user);
                reached.push(used);
            }
        }
        next += 1;
    }
    None
}

fn check(files: &[(&Source, Path<'_>)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, uses) in uses(files) {
        let mut told = BTreeSet::new();
        for start in uses.keys() {
            let Some(steps) = (!told.contains(start)).then(|| circle(&uses, start)).flatten()
            else {
                continue;
            };
            told.extend(steps.iter().map(|(user, _)| *user));
            let places = steps.iter().map(|(user, used)| {
                let (file, line) = uses[user][used];
                format!("\n    `{user}` uses `{used}`: {}:{line}", file.path)
            });
            let (file, line) = uses[steps[0].0][steps[0].1];
            let room = folder.join("::");
            let advice = format!("a circle in `{room}`:{}", places.collect::<String>());
            findings.push(Finding::new(&file.path, line, advice));
        }
    }
    findings
}

#[test]
fn modules_have_an_order() {
    let mut crates: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for file in TREE.iter() {
        if let Some((krate, module)) = module_of(file) {
            crates.entry(krate).or_default().push((file, module));
        }
    }
    crate::report(crates.values().flat_map(|files| check(files)));
}

#[test]
fn notices_a_circle() {
    let found = |texts: &[(&str, &str)]| {
        let sources: Vec<_> = texts
            .iter()
            .map(|(name, text)| Source::new(&format!("crates/x/src/{name}.rs"), text))
            .collect();
        let files: Vec<_> =
            sources.iter().filter_map(|file| Some((file, module_of(file)?.1))).collect();
        check(&files).len()
    };
    assert_eq!(found(&[("a", "use crate::b::B;"), ("b", "use crate::{c, d};"), ("c", "")]), 0);
    assert_eq!(found(&[("a", "use crate::b::B;"), ("b", "fn f() { super::a::g() }")]), 1);
    assert_eq!(
        found(&[("a", "use crate::{b::{B, C}};"), ("b/mod", ""), ("b/c", "crate::a::f()")]),
        1
    );
    assert_eq!(
        found(&[("a", "use crate::b;"), ("b", "#[cfg(test)]\nmod t {\n use crate::a;\n}")]),
        0
    );
    assert_eq!(found(&[("lib", "mod a; use a::A;"), ("a", "use crate::X;")]), 0);
}
