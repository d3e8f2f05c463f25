//! What the command says about itself.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{directory, manycore, printed};

const COMMANDS: [&[&str]; 45] = [
    &["demo"],
    &["run"],
    &["profile"],
    &["top"],
    &["report"],
    &["diff"],
    &["compare"],
    &["bench", "lock"],
    &["bench", "set"],
    &["bench", "index"],
    &["bench", "txn"],
    &["bench", "fs"],
    &["bench", "rmap"],
    &["bench", "mariadb"],
    &["bench", "syscalls"],
    &["bench", "forks"],
    &["bench", "faults"],
    &["bench", "uncontended"],
    &["bench", "grid"],
    &["bench", "goals"],
    &["sim", "lock"],
    &["sim", "many"],
    &["sim", "set"],
    &["sim", "index"],
    &["sim", "txn"],
    &["sim", "fs"],
    &["sim", "rmap"],
    &["sim", "db"],
    &["sim", "kernel"],
    &["sim", "syscall"],
    &["sim", "accuracy"],
    &["predict"],
    &["figures"],
    &["store", "probe"],
    &["store", "verify"],
    &["store", "dump"],
    &["store", "backup"],
    &["store", "compact"],
    &["store", "bench"],
    &["locks"],
    &["machines"],
    &["machines", "measure"],
    &["machines", "derive"],
    &["completions"],
    &["man"],
];

#[test]
fn help_teaches_by_examples() {
    for command in COMMANDS {
        let help = printed(&mut manycore(&[command, &["--help"]].concat()));
        assert!(help.contains("Examples:\n  manycore "), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    let help = printed(&mut manycore(&["--help"]));
    assert!(COMMANDS.iter().all(|command| help.contains(command[0])), "{help}");
    assert!(help.contains("Exit status:"), "{help}");
}

#[test]
fn each_command_has_a_page_with_the_same_sections() {
    let directory = directory();
    let man = directory.path().join("man1");
    printed(&mut manycore(&["man", "--out", man.to_str().unwrap()]));
    for command in COMMANDS {
        let page =
            fs::read_to_string(man.join(format!("manycore-{}.1", command.join("-")))).unwrap();
        assert!(page.contains(".SH EXAMPLES") && page.contains(".SH OPTIONS"), "{page}");
    }
    let page = fs::read_to_string(man.join("manycore.1")).unwrap();
    assert_eq!(page, printed(&mut manycore(&["man"])));
    assert_eq!(
        fs::read_dir(man).unwrap().count(),
        COMMANDS.len() + 4,
        "these, manycore, bench, sim and store"
    );
    assert!(
        page.contains(".SH \"EXIT STATUS\"") && page.contains("manycore\\-compare(1)"),
        "{page}"
    );
}

#[test]
fn completions_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&mut manycore(&["completions", shell]));
        assert!(script.contains("lower-is-better"), "{shell}");
    }
}

#[test]
fn the_lists_of_locks_agree() {
    let plain = printed(&mut manycore(&["locks", "--plain"]));
    let table = printed(&mut manycore(&["locks"]));
    let json: serde_json::Value =
        serde_json::from_str(&printed(&mut manycore(&["locks", "--json"]))).unwrap();
    let all = json["locks"].as_array().unwrap();
    let inline = all.iter().filter(|lock| lock["inline"] == true);
    let named: Vec<&str> = inline.map(|lock| lock["name"].as_str().unwrap()).collect();
    assert_eq!(plain.lines().collect::<Vec<_>>(), named);
    assert!(named.contains(&"futex") && !named.contains(&"anderson"));
    for (lock, line) in all.iter().zip(table.lines().skip(2)) {
        let name = lock["name"].as_str().unwrap();
        assert!(line.trim_start().starts_with(name), "{line}");
        let order = lock["order"].as_str().unwrap();
        assert!(line.contains(&format!(" {order} ")), "{line}");
        assert_eq!(line.contains(" ! "), order != "barging", "{line}");
        assert_eq!(line.contains(" blocks "), lock["blocks"] == true, "{line}");
        assert_eq!(line.contains(" library "), lock["inline"] == false, "{line}");
    }
}

#[test]
fn reader_writer_locks_have_a_list_of_their_own() {
    let table = printed(&mut manycore(&["locks"]));
    let json: serde_json::Value =
        serde_json::from_str(&printed(&mut manycore(&["locks", "--json"]))).unwrap();
    let (_, listed) = table.split_once("reader-writer lock ").expect("a table of them");
    let all = json["rw_locks"].as_array().unwrap();
    assert_eq!((&all[0]["name"], &all[0]["inline"]), (&"adaptive-rw".into(), &true.into()));
    for (lock, line) in all.iter().zip(listed.lines().skip(2)) {
        assert!(line.trim_start().starts_with(lock["name"].as_str().unwrap()), "{line}");
        assert_eq!(
            line.contains(" any "),
            lock["name"] == "adaptive-rw",
            "one for every program: {line}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child =
        manycore(&["man"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap(), "");
}

#[test]
fn no_progress_in_a_pipe() {
    let mut command: Command =
        manycore(&["compare", "--runs", "1", "-q", "--lock", "futex", "true"]);
    assert_eq!(String::from_utf8(command.output().unwrap().stderr).unwrap(), "");
}
