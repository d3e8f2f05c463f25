//! The page in a headless Chromium: it draws, sorts, filters, opens and zooms, on any screen,
//! without an error.
//!
//! Without Chromium these tests are skipped, and say so. `MANYCORE_PICTURES=DIRECTORY` keeps
//! pictures of the page.

mod chromium;
#[path = "../it/render/made_up.rs"]
mod support;

use std::path::Path;
use std::process::{Command, ExitCode};

use chromium::Chromium;
use libtest_mimic::{Arguments, Trial};
use manycore_profile::render::page;
use serde_json::{Value, json};
use support::{HOSTILE, profile};

/// A test: its name, and its actions on the open page.
type Test = (&'static str, fn(&mut Chromium, &Path));

const TESTS: [Test; 8] = [
    ("every_part_is_drawn_and_names_stay_text", every_part_is_drawn_and_names_stay_text),
    ("the_table_sorts_filters_and_opens", the_table_sorts_filters_and_opens),
    ("the_flame_graph_zooms_and_searches", the_flame_graph_zooms_and_searches),
    ("system_calls_are_accounted_for", system_calls_are_accounted_for),
    ("waits_of_no_time_have_shares", waits_of_no_time_have_shares),
    ("the_keyboard_is_enough", the_keyboard_is_enough),
    ("a_phone_has_no_sideways_scrolling", a_phone_has_no_sideways_scrolling),
    ("a_large_profile_opens", a_large_profile_opens),
];

fn main() -> ExitCode {
    let installed = Command::new("sh").args(["-c", "command -v chromium"]).output();
    let installed = installed.is_ok_and(|found| found.status.success());
    if !installed {
        eprintln!(
            "skipped: there is no chromium; apt-get install --no-install-recommends chromium"
        );
    }
    let trials = TESTS.iter().map(|(name, test)| {
        let run = move || {
            let directory = tempfile::tempdir()?;
            let file = directory.path().join("page.html");
            std::fs::write(&file, page::html(&profile(300, 40)))?;
            let mut chromium = Chromium::start().ok_or("chromium has gone")?;
            chromium.open(&file, 1200, 900);
            test(&mut chromium, &file);
            assert_eq!(chromium.errors, Vec::<String>::new());
            Ok(())
        };
        Trial::test(*name, run).with_ignored_flag(!installed)
    });
    let mut arguments = Arguments::from_args();
    // One browser at a time: each is several processes.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// The texts of a column of the table of locks, from the top.
fn column(chromium: &mut Chromium, number: usize) -> Vec<String> {
    let cells = format!(
        "[...document.querySelectorAll('#locks tbody tr:not(.details)')].map((row) => row.cells[{number}].textContent)"
    );
    let cells = chromium.value(&cells);
    cells.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
}

fn click(chromium: &mut Chromium, selector: &str) {
    chromium.value(&format!("document.querySelector({}).click()", json!(selector)));
}

fn write(chromium: &mut Chromium, selector: &str, text: &str) {
    let (selector, text) = (json!(selector), json!(text));
    chromium.value(&format!(
        "{{ const box = document.querySelector({selector}); box.value = {text}; box.dispatchEvent(new Event('input')); }}"
    ));
}

fn every_part_is_drawn_and_names_stay_text(chromium: &mut Chromium, _: &Path) {
    let parts = chromium
        .value("[...document.querySelectorAll('main section')].map((part) => part.id).join(' ')");
    let all = "time notes locks flame samples timeline waits threads cycles orders convoys system-calls kernel outsiders";
    assert_eq!(parts, all);
    assert_eq!(chromium.value("document.querySelectorAll('main img, main script').length"), 0);
    let text = chromium.value("document.body.textContent");
    assert!(text.as_str().unwrap().contains(HOSTILE.split('\u{2028}').next().unwrap()));
    let empty = chromium.value(
        "[...document.querySelectorAll('main section')].filter((part) => part.textContent.length < 30).map((part) => part.id)",
    );
    assert_eq!(empty, json!([]));
    for scheme in ["light", "dark"] {
        chromium.prefer(scheme);
        keep(chromium, &format!("report-{scheme}"));
        let colours = chromium.value(
            "(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.body))",
        );
        assert!(contrast(&colours) > 7.0, "{scheme}: {colours}");
    }
}

fn system_calls_are_accounted_for(chromium: &mut Chromium, file: &Path) {
    let said = chromium.value("document.querySelector('#system-calls').innerText");
    let said = said.as_str().unwrap();
    for part in [
        "pool on CPU 0-2,4: 9,000 of 10,014 calls on sockets moved (90 %), 14 bypassed, 1,000 in place",
        "10 on other descriptors; 2 processes.",
        "6.10 us (half of them), 21.0 us (99 %), 90.0 us (99.9 %), 10.4 ms (the longest)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let cells = |chromium: &mut Chromium, row: usize| {
        let row = format!(
            "[...document.querySelectorAll('#system-calls tbody tr')[{row}].cells].map((cell) => cell.textContent)"
        );
        chromium.value(&row)
    };
    let why = "100 no thread to block, 5 not a socket";
    assert_eq!(cells(chromium, 0), json!(["recvfrom", "8,000", "99 %", "7", "100", "5", why]));
    let hostile = cells(chromium, 1);
    let starts = HOSTILE.split('\u{2028}').next().unwrap();
    assert!(hostile[0].as_str().unwrap().starts_with(starts), "{hostile}");
    assert!(hostile[6].as_str().unwrap().contains(starts), "{hostile}");
    click(chromium, "#system-calls thead th:nth-child(5) button");
    assert_eq!(cells(chromium, 1)[0], "recvfrom", "by those in place");

    // A function whose calls stayed in place has no latency, and a profile without moved calls has
    // no such part.
    let mut profile = profile(3, 5);
    let calls = profile.system_calls.as_mut().unwrap();
    calls.mechanism = "in-place".into();
    (calls.latency_ns, calls.moved, calls.bypassed, calls.in_place) = (None, 0, 0, 0);
    calls.cpus.clear();
    calls.functions.clear();
    std::fs::write(file, page::html(&profile)).unwrap();
    chromium.open(file, 1200, 900);
    let said = chromium.value("document.querySelector('#system-calls').innerText");
    let said = said.as_str().unwrap();
    assert!(said.contains("in-place: 0 of 0 calls on sockets moved, 0 bypassed"), "{said}");
    assert!(!said.contains("took"), "{said}");
    profile.system_calls = None;
    std::fs::write(file, page::html(&profile)).unwrap();
    chromium.open(file, 1200, 900);
    assert_eq!(chromium.value("document.querySelector('#system-calls')"), Value::Null);
}

fn waits_of_no_time_have_shares(chromium: &mut Chromium, file: &Path) {
    let mut profile = profile(3, 5);
    profile.stacks.iter_mut().for_each(|stack| stack.wait_ns = 0);
    profile.kernel_locks.clear();
    std::fs::write(file, page::html(&profile)).unwrap();
    chromium.open(file, 1200, 900);
    write(chromium, "#flame input[type=search]", "main");
    let text = chromium.value("document.querySelector('#flame').textContent");
    let text = text.as_str().unwrap();
    assert!(text.contains("0 %") && !text.contains("NaN"), "{text}");
}

/// The contrast of two colours as WCAG has it.
fn contrast(colours: &Value) -> f64 {
    let luminance = |colour: &Value| -> f64 {
        let numbers =
            colour.as_str().unwrap().trim_start_matches("rgb(").trim_end_matches(')').split(", ");
        let linear = numbers.map(|number| (number.parse::<f64>().unwrap() / 255.0).powf(2.2));
        linear.zip([0.2126, 0.7152, 0.0722]).map(|(part, weight)| part * weight).sum()
    };
    let (one, other) = (luminance(&colours[0]), luminance(&colours[1]));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn the_table_sorts_filters_and_opens(chromium: &mut Chromium, _: &Path) {
    assert!(column(chromium, 0)[0].starts_with("lock_0"), "most waited for first");
    assert_eq!(column(chromium, 0).len(), 100, "a hundred rows at once");
    click(chromium, "#locks thead th:nth-child(1) button");
    let names = column(chromium, 0);
    assert!(names[0].starts_with("in "), "{names:?}");
    click(chromium, "#locks thead th:nth-child(3) button");
    assert!(column(chromium, 0)[0].starts_with("lock_0"));
    assert_eq!(column(chromium, 2)[0], "900,001");
    click(chromium, "#locks thead th:nth-child(3) button");
    assert_eq!(column(chromium, 2)[0], "3,001", "again: the other way round");
    let order = chromium
        .value("document.querySelector('#locks thead th:nth-child(3)').getAttribute('aria-sort')");
    assert_eq!(order, "ascending");

    write(chromium, "#locks input", "lock_27");
    assert_eq!(column(chromium, 0).len(), 11, "lock_27 and lock_270 to lock_279");
    let status = chromium.value("document.querySelector('#locks [role=status]').textContent");
    assert!(status.as_str().unwrap().starts_with("11 of 301"), "{status}");
    write(chromium, "#locks input", "");
    chromium.value(
        "{ const side = document.querySelector('#locks select'); side.value = 'kernel'; side.dispatchEvent(new Event('change')); }",
    );
    assert!(column(chromium, 0)[0].starts_with("mmap_lock kernel"), "{:?}", column(chromium, 0));
    click(chromium, "#locks tbody button.row");
    let details = chromium.value("document.querySelector('#locks tr.details').textContent");
    assert!(details.as_str().unwrap().contains("do_page_fault"), "{details}");
    click(chromium, "#locks tbody button.row");
    assert_eq!(chromium.value("document.querySelectorAll('#locks tr.details').length"), 0);
}

fn the_flame_graph_zooms_and_searches(chromium: &mut Chromium, _: &Path) {
    let width = "(label) => [...document.querySelectorAll('.flame button')].find((node) => node.textContent === label)?.style.width";
    assert_eq!(chromium.value(&format!("({width})('all waits')")), "100%");
    let before = chromium.value(&format!("({width})('work_0')"));
    assert_ne!(before, "100%");
    chromium.value("[...document.querySelectorAll('.flame button')].find((node) => node.textContent === 'work_0').click()");
    assert_eq!(chromium.value(&format!("({width})('work_0')")), "100%");
    assert_eq!(chromium.value(&format!("({width})('work_2')")), Value::Null, "out of sight");
    keep(chromium, "flame-zoomed");
    chromium.value("[...document.querySelectorAll('#flame .controls button')][0].click()");
    assert_eq!(chromium.value(&format!("({width})('work_0')")), before);
    write(chromium, "#flame input", "work_0");
    assert_eq!(chromium.value("document.querySelectorAll('.flame button.found').length"), 1);
    let said = chromium.value("document.querySelector('#flame .readout').textContent");
    assert!(said.as_str().unwrap().contains("% of the time waited has 'work_0'"), "{said}");
    chromium.value(
        "{ const order = document.querySelector('#flame select'); order.value = 'lock'; order.dispatchEvent(new Event('change')); }",
    );
    let second = chromium.value("document.querySelectorAll('.flame button')[1].textContent");
    assert!(second.as_str().unwrap().starts_with("lock "), "{second}");
}

fn the_keyboard_is_enough(chromium: &mut Chromium, _: &Path) {
    let focused = "document.activeElement.textContent";
    chromium.value("document.querySelector('.flame button').focus()");
    chromium.press("ArrowDown");
    assert_eq!(chromium.value(focused), "main");
    chromium.press("ArrowRight");
    assert_eq!(chromium.value(focused), "do_page_fault", "beside `main`, and shorter");
    chromium.press("Enter");
    assert_eq!(chromium.value(focused), "do_page_fault", "what is zoomed to keeps the focus");
    chromium.press("Escape");
    assert_eq!(chromium.value(focused), "all waits");
    chromium.value("document.querySelector('#timeline svg').focus()");
    chromium.press("ArrowRight");
    let said = chromium.value("document.querySelector('#timeline .readout').textContent");
    assert!(said.as_str().unwrap().starts_with("100 ms to 200 ms:"), "{said}");
    chromium.value("document.querySelector('#locks tbody button.row').focus()");
    chromium.press("Enter");
    assert_eq!(chromium.value("document.querySelectorAll('#locks tr.details').length"), 1);
    let unreachable = chromium.value(
        "[...document.querySelectorAll('main button')].filter((one) => !one.closest('.flame') && one.tabIndex < 0).length",
    );
    assert_eq!(unreachable, 0);
}

fn a_phone_has_no_sideways_scrolling(chromium: &mut Chromium, file: &Path) {
    for width in [320, 390] {
        chromium.open(file, width, 800);
        let wide = chromium.value("document.documentElement.scrollWidth");
        assert_eq!(wide, width);
        click(chromium, "#locks tbody button.row");
        assert_eq!(chromium.value("document.documentElement.scrollWidth"), width);
    }
    keep(chromium, "report-phone");
}

fn a_large_profile_opens(chromium: &mut Chromium, file: &Path) {
    std::fs::write(file, page::html(&profile(100_000, 2000))).unwrap();
    chromium.open(file, 1200, 900);
    let left_out = chromium.value("document.querySelector('#left-out').textContent");
    assert!(left_out.as_str().unwrap().contains("of 100000 locks"), "{left_out}");
    assert_eq!(column(chromium, 0).len(), 100);
}

/// Keeps a screenshot, if that is requested.
fn keep(chromium: &mut Chromium, name: &str) {
    let Some(directory) = std::env::var_os("MANYCORE_PICTURES") else { return };
    let path = Path::new(&directory).join(format!("{name}.png"));
    let mut decode = Command::new("base64");
    decode.arg("-d").stdin(std::process::Stdio::piped());
    decode.stdout(std::fs::File::create(path).expect("a file for a picture"));
    let mut decode = decode.spawn().expect("base64 runs");
    let picture = chromium.picture();
    std::io::Write::write_all(&mut decode.stdin.take().unwrap(), picture.as_bytes()).unwrap();
    assert!(decode.wait().unwrap().success());
}
