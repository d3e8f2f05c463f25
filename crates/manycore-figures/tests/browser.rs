//! The page in a headless Chromium: every picture is drawn, a phone shows all of it, and there is
//! no error.
//!
//! Without Chromium this is skipped, and says so.

#[path = "../../manycore-profile/tests/browser/chromium.rs"]
#[allow(dead_code, reason = "another page is tested with more of it")]
mod chromium;

use std::process::{Command, ExitCode};

use chromium::Chromium;
use libtest_mimic::{Arguments, Trial};
use manycore_bench::simulated::SimulatorPool;
use manycore_bench::worker;
use manycore_figures::{Extent, Figure};

/// What is drawn; its names mean something to HTML.
const FIGURE: &str = r#"
title = "<b>bold</b>"
source = "<script>throw 1</script>"
published = "a"
model = "b"
machine = "xeon-4x6-like"
x = "threads"
panels = ["update"]
[workload.set]
structure = "list"
sync = ["lock:mcs", "lazy", "harris", "rcu", "mvrlu", "rlu"]
threads = [1, 2, 4]
update = [2, 50]
initial = 20
duration = "5us"
[[claim]]
id = "a-rather-long-name"
text = "a claim with <i>markup</i>"
place = "here"
expected = "pass"
of = { series = "lock:mcs", threads = 1, update = 2 }
at_least = 1
"#;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("simulate") {
        manycore_bench::serve_simulator().expect("the test is there");
        return ExitCode::SUCCESS;
    }
    let installed = Command::new("sh").args(["-c", "command -v chromium"]).output();
    let installed = installed.is_ok_and(|found| found.status.success());
    if !installed {
        eprintln!(
            "skipped: there is no chromium; apt-get install --no-install-recommends chromium"
        );
    }
    let trial = Trial::test("the_page_is_drawn_on_any_screen", || {
        the_page_is_drawn_on_any_screen();
        Ok(())
    });
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, vec![trial.with_ignored_flag(!installed)]).exit_code()
}

fn the_page_is_drawn_on_any_screen() {
    let figure = Figure::parse("one", FIGURE, Extent::Whole).unwrap();
    let worker = worker::Command::this_executable(["simulate"]).unwrap();
    let pool = SimulatorPool::new(worker, None, None, false);
    let found = manycore_figures::run(figure, false, &pool).unwrap();
    let directory = tempfile::tempdir().unwrap();
    manycore_figures::write(&[found], directory.path()).unwrap();
    let page = directory.path().join("index.html");

    let mut chromium = Chromium::start().expect("chromium is installed");
    for (width, scheme) in [(320, "dark"), (1200, "light")] {
        chromium.prefer(scheme);
        chromium.open(&page, width, 800);
        assert_eq!(chromium.value("document.documentElement.scrollWidth"), width);
        assert_eq!(chromium.value("document.querySelectorAll('.pictures svg').length"), 3);
        let wide = "Math.max(...[...document.querySelectorAll('svg')].map((svg) => svg.getBoundingClientRect().right))";
        assert!(chromium.value(wide).as_f64().unwrap() <= f64::from(width));
        assert_eq!(chromium.value("document.querySelector('h2').textContent"), "<b>bold</b>");
        assert_eq!(chromium.value("document.querySelectorAll('script, td i').length"), 0);
        let loaded = "performance.getEntriesByType('resource').length";
        assert_eq!(chromium.value(loaded), 0, "nothing from elsewhere");
    }
    assert_eq!(chromium.errors, Vec::<String>::new());
}
