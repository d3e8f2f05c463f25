//! The headers and the library agree: names, types of arguments, sizes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use manycore_tests::capi::installed;

use crate::root;

/// Types of the headers, each with its name in the sources.
const TYPES: &[(&str, &str)] = &[
    ("manycore_status_t", "Status"),
    ("rlu_thread_data_t", "ThreadData"),
    ("manycore_rlu_stats_t", "Stats"),
    ("manycore_mutex_t", "Mutex"),
    ("manycore_rwlock_t", "RwLock"),
    ("manycore_rcu_t", "Rcu"),
    ("manycore_rcu_thread_t", "Thread"),
    ("manycore_rcu_head_t", "Head"),
    ("manycore_rcu_config_t", "Config"),
    ("manycore_rlu_config_t", "Config"),
    ("manycore_map_t", "Map"),
    ("manycore_map_config_t", "Config"),
    ("manycore_map_bytes_t", "Bytes"),
    ("manycore_map_visit_t", "Visit"),
    ("manycore_map_decide_t", "Decide"),
    ("manycore_ldu_t", "Ldu"),
    ("manycore_ldu_table_t", "Arc<Table>"),
    ("manycore_ldu_node_t", "Node"),
    ("manycore_ldu_target_t", "Callbacks"),
    ("manycore_ldu_drained_t", "Drained"),
    ("ts_store_t", "TsStore"),
    ("ts_member_t", "TsMember"),
    ("ts_map_t", "TsMap"),
    ("ts_operation_t", "TsOperation"),
    ("ts_config_t", "Config"),
    ("ts_contents_t", "Contents"),
    ("size_t", "usize"),
    ("uint32_t", "u32"),
    ("uint64_t", "u64"),
    ("int", "c_int"),
    ("char", "c_char"),
    ("void", "c_void"),
];

/// What the names of functions begin with.
const PREFIXES: &[&str] = &["manycore_", "ts_"];

/// Functions by name: the type of the result, and those of the arguments, as the sources write them
/// without `const` and `mut`.
type Functions = BTreeMap<String, Vec<String>>;

/// A type of the sources.
fn rust_type(text: &str) -> String {
    let text = text.replace("*mut ", "*").replace("*const ", "*");
    if text.contains("fn(") { "fn".to_owned() } else { text.trim().to_owned() }
}

/// A type of the headers. The argument's name may follow it.
fn c_type(text: &str) -> String {
    if text.contains("(*") {
        return "fn".to_owned();
    }
    let stars = "*".repeat(text.matches('*').count());
    let base = text.replace("const ", "").replace("struct ", "");
    let base = base.split([' ', '*']).next().unwrap_or_default();
    let known = TYPES.iter().find(|(c, _)| *c == base);
    format!("{stars}{}", known.unwrap_or_else(|| panic!("a type without a name here: {text}")).1)
}

/// Splits arguments at the commas that are not inside brackets.
fn arguments(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty() && *part != "void");
    parts
}

/// The text up to the bracket that closes the one before it.
fn up_to_closing(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    &text[..end.expect("a closing bracket")]
}

fn in_sources(folder: &Path, functions: &mut Functions) {
    for entry in
        folder.read_dir().expect("the sources").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            in_sources(&entry, functions);
            continue;
        }
        let text = fs::read_to_string(&entry).expect("a source");
        for function in text.split("extern \"C\" fn ").skip(1) {
            let (name, rest) = function.split_once('(').expect("a function");
            let list = up_to_closing(rest);
            let result = rest[list.len() + 1..].split('{').next().unwrap_or_default();
            let result = result.trim().trim_start_matches("->").trim();
            let mut types =
                vec![if result.is_empty() { "()".to_owned() } else { rust_type(result) }];
            let of = |a: &str| rust_type(a.split_once(':').expect("a typed argument").1);
            types.extend(arguments(list).into_iter().map(of));
            if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                functions.insert(name.to_owned(), types);
            }
        }
    }
}

/// What all headers declare, but not what they define.
fn in_headers() -> Functions {
    let headers = installed().headers();
    let mut all = String::new();
    for header in ["rlu", "lock", "rcu", "ldu", "map", "timestone"] {
        all += &format!("#include <manycore/{header}.h>\n");
    }
    let source = headers.join("all.c");
    fs::write(&source, all).expect("a file beside the headers");
    let mut command = Command::new("gcc");
    command.args(["-E", "-P", "-I"]).arg(headers.join("..")).arg(&source);
    let output = command.output().expect("gcc is not installed: apt-get install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
    let mut functions = Functions::new();
    // A declaration ends with a semicolon, and has no braces; an inline definition has braces.
    for declaration in text.split([';', '{', '}']) {
        let declaration = declaration.trim();
        let Some((before, rest)) = declaration.split_once('(') else { continue };
        let Some(at) = before.rfind([' ', '*']) else { continue };
        if !PREFIXES.iter().any(|prefix| before[at + 1..].starts_with(prefix)) {
            continue;
        }
        let is_other =
            ["static", "typedef", "return", "="].iter().any(|word| declaration.contains(word));
        if is_other || !declaration.ends_with(')') {
            continue;
        }
        let name = before[at + 1..].to_owned();
        let result = before[..=at].trim();
        let mut types = vec![if result == "void" { "()".to_owned() } else { c_type(result) }];
        types.extend(arguments(up_to_closing(rest)).into_iter().map(c_type));
        functions.insert(name, types);
    }
    functions
}

#[test]
fn headers_declare_what_the_sources_define() {
    let mut sources = Functions::new();
    for name in ["manycore-capi", "timestone-capi"] {
        in_sources(&root().join("crates").join(name).join("src"), &mut sources);
    }
    let headers = in_headers();
    assert!(sources.len() > 40, "only {} functions", sources.len());
    assert_eq!(headers, sources);
}

#[test]
fn the_shared_libraries_export_that_and_nothing_else() {
    let declared = in_headers();
    for library in ["manycore", "timestone"] {
        let mut command = Command::new("nm");
        let output =
            command.args(["-D", "--defined-only"]).arg(installed().library(library)).output();
        let output = output.expect("nm is not installed: apt-get install binutils");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut exported: Vec<_> = text.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        exported.sort_unstable();
        let declared = declared.keys().map(String::as_str);
        let own = declared.filter(|name| name.starts_with("ts_") == (library == "timestone"));
        assert_eq!(exported, own.collect::<Vec<_>>(), "lib{library}");
    }
}

/// With the assertions beside the types in the sources: neither side can change alone.
#[test]
fn sizes_are_those_of_the_book() {
    let program = root().join("tests/programs/capi/abi.c");
    crate::succeeds(&program, "c11", manycore_tests::capi::Variant::Shared);
}
