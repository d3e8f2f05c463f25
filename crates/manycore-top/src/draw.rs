//! The screen: the program, its locks, and the keys.

use manycore_profile::profile::Cpu;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span as Words, Text};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Sparkline, Table, TableState};

use crate::follow::Pictures;
use crate::rows::{Column, Row, Span};
use crate::state::{Page, State};
use crate::{detail, help};
use manycore_profile::render::shortened;
use manycore_profile::{percent, seconds};

/// A lower screen has no curves.
const HEIGHT_OF_CURVES: u16 = 18;
/// The width that a name gets before another column is shown.
const NAME_MIN: u16 = 14;
/// A share of all CPUs that no curve shows.
const NEGLIGIBLE: f64 = 0.005;
/// What stands before a lock of the kernel.
pub const KERNEL_MARK: &str = "[k] ";

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws everything.
pub fn draw(frame: &mut Frame, state: &mut State) {
    let curves = if frame.area().height >= HEIGHT_OF_CURVES { 3 } else { 0 };
    let [head, middle, body, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(curves),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(heading(state, head.width), head);
    draw_curves(frame, state, middle);
    match state.page.clone() {
        Page::Locks => draw_locks(frame, state, body),
        Page::Lock(id) => draw_text(frame, state, body, detail::lines(state, &id)),
        Page::Help => draw_text(frame, state, body, help::lines()),
    }
    frame.render_widget(Line::from(footer(state)).style(REVERSED), foot);
}

/// Three lines on the program.
fn heading(state: &State, width: u16) -> Text<'static> {
    let Some(pictures) = &state.pictures else { return Text::from("looking ...") };
    let facts = &pictures.facts;
    let status = status(state, pictures);
    let room = usize::from(width).saturating_sub(status.chars().count() + 1);
    let title = format!("{} (pid {})", facts.command, facts.pid);
    let title = shortened_end(&title, room);
    let gap = " ".repeat(room.saturating_sub(title.chars().count()) + 1);
    let first = Line::from(vec![Words::styled(title, BOLD), gap.into(), status.into()]);
    Text::from(vec![first, Line::from(about(pictures)), Line::from(split(state, pictures))])
}

/// Whether it runs, and of which time the numbers are.
pub fn status(state: &State, pictures: &Pictures) -> String {
    let span = match (state.shown_span(), &pictures.interval) {
        (Span::Interval, Some(interval)) => format!("last {}", seconds(interval.seconds)),
        _ => format!("all {}", seconds(pictures.total.seconds)),
    };
    match &state.ended {
        Some(how) => format!("ENDED ({how}), {span}"),
        None if state.is_paused => format!("PAUSED, {span}"),
        None => span,
    }
}

/// The program's processes, and what is missing in the pictures.
pub fn about(pictures: &Pictures) -> String {
    let facts = &pictures.facts;
    let many = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let mut text = format!(
        "{}, {}, {}",
        many(facts.threads, "thread", "threads"),
        many(facts.cpus, "CPU", "CPUs"),
        many(facts.processes, "process", "processes"),
    );
    if !facts.lock.is_empty() {
        text += &format!(", lock {}", facts.lock);
    }
    if facts.left_out > 0 {
        text += &format!(", {} ended processes left out", facts.left_out);
    }
    text
}

/// The division of CPU time, and how many threads waited without a CPU.
pub fn split(state: &State, pictures: &Pictures) -> String {
    let picture = match state.shown_span() {
        Span::Interval => pictures.interval.as_ref().unwrap_or(&pictures.total),
        Span::Total => &pictures.total,
    };
    let Cpu { kernel, program, lock_spin, lock_wait, .. } = picture.cpu;
    let all = (kernel + program + lock_spin).max(f64::MIN_POSITIVE);
    let is_interval = state.shown_span() == Span::Interval;
    let parts = if is_interval && pictures.misses_cpu {
        "CPU time not known: it ended meanwhile".to_owned()
    } else {
        format!(
            "program {}, kernel {}, locks {}",
            percent(program / all),
            percent(kernel / all),
            percent(lock_spin / all),
        )
    };
    let mut text = format!(
        "{parts}; {:.1} threads asleep for locks",
        lock_wait / picture.seconds.max(f64::MIN_POSITIVE)
    );
    if let Some(kernel) = &state.kernel
        && kernel.dropped > 0
    {
        text += &format!("; {} waits in the kernel dropped", kernel.dropped);
    }
    text
}

/// A part of CPU time.
type Part = fn(&Cpu) -> f64;

/// The three parts of CPU time over the latest intervals. A full line is the time of all CPUs.
fn draw_curves(frame: &mut Frame, state: &State, area: Rect) {
    let parts: [(&str, Part); 3] = [
        ("program", |cpu| cpu.program),
        ("kernel", |cpu| cpu.kernel),
        ("locks", |cpu| cpu.lock_spin),
    ];
    let cpus = state.pictures.as_ref().map_or(1, |pictures| pictures.facts.cpus.max(1));
    for ((name, part), line) in parts.into_iter().zip(area.rows()) {
        let [label, curve] =
            Layout::horizontal([Constraint::Length(9), Constraint::Min(0)]).areas(line);
        frame.render_widget(Line::styled(name, FAINT), label);
        let shown = state.history.iter().rev().take(usize::from(curve.width)).rev();
        // In steps of the curve's resolution; any value above zero is visible.
        let eighths = shown.map(|(seconds, cpu)| {
            let share = part(cpu) / seconds.max(f64::MIN_POSITIVE) / cpus as f64;
            if share < NEGLIGIBLE { 0 } else { (share * 8.0).ceil() as u64 }
        });
        let data: Vec<u64> = eighths.collect();
        frame.render_widget(Sparkline::default().data(&data).max(8), curve);
    }
}

/// The columns that fit, from left to right: the most important ones, and the one by which rows are
/// sorted.
pub fn columns(width: u16, sort: Column) -> Vec<Column> {
    let mut wanted = vec![sort];
    wanted.extend([
        Column::Waited,
        Column::Waits,
        Column::Now,
        Column::Mean,
        Column::Held,
        Column::Worst,
        Column::Acquired,
    ]);
    let mut left = width.saturating_sub(NAME_MIN);
    let mut shown = vec![Column::Lock];
    for column in wanted {
        if !shown.contains(&column) && column.width() < left {
            left -= column.width() + 1;
            shown.push(column);
        }
    }
    Column::ALL.into_iter().filter(|column| shown.contains(column)).collect()
}

fn draw_locks(frame: &mut Frame, state: &mut State, area: Rect) {
    let rows = state.rows();
    let span = state.shown_span();
    let columns = columns(area.width, state.sort);
    let numbers: u16 = columns.iter().skip(1).map(|column| column.width() + 1).sum();
    let name_width = usize::from(area.width.saturating_sub(numbers));
    state.room = usize::from(area.height.saturating_sub(1));
    let place = state.place(&rows);
    // Only what is seen is made: there may be many thousands.
    let first = (place + 1).saturating_sub(state.room);
    let seen = rows.iter().skip(first).take(state.room);
    let cells = seen.map(|row| {
        TableRow::new(columns.iter().map(|column| match column {
            Column::Lock => Cell::from(name(row, name_width)),
            _ => Cell::from(Text::from(row.text(*column, span)).right_aligned()),
        }))
    });
    let headings = columns.iter().map(|column| heading_of(*column, state, span));
    let widths = columns.iter().map(|column| match column {
        Column::Lock => Constraint::Length(name_width as u16),
        _ => Constraint::Length(column.width()),
    });
    let table = Table::new(cells, widths)
        .header(TableRow::new(headings).style(REVERSED))
        .row_highlight_style(BOLD.add_modifier(Modifier::UNDERLINED));
    let selected = (!rows.is_empty()).then(|| place.checked_sub(first)).flatten();
    let mut table_state = TableState::default().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut table_state);
    if rows.is_empty() {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        frame.render_widget(Line::styled(why_empty(state), FAINT), below);
    }
}

fn why_empty(state: &State) -> &'static str {
    match (state.filter.is_empty(), &state.pictures) {
        (false, _) => "no lock has that (Esc: all)",
        (true, None) => "",
        (true, Some(_)) => "no lock was used until now",
    }
}

/// The column that rows are sorted by is marked.
fn heading_of(column: Column, state: &State, span: Span) -> Cell<'static> {
    let mark = match (column == state.sort, state.is_reversed) {
        (false, _) => "",
        (true, false) => "*",
        (true, true) => "^",
    };
    let text = format!("{}{mark}", column.heading(span));
    match column {
        Column::Lock => Cell::from(text),
        _ => Cell::from(Text::from(text).right_aligned()),
    }
}

/// The name, in so much room.
pub fn name(row: &Row, width: usize) -> String {
    let (what, name) = &row.title;
    let before = format!("{}{what}", if row.is_kernel() { KERNEL_MARK } else { "" });
    let name = shortened(name, width.saturating_sub(before.chars().count()).max(4));
    before + &name
}

fn draw_text(frame: &mut Frame, state: &mut State, area: Rect, lines: Vec<Line<'static>>) {
    let width = usize::from(area.width);
    let lines: Vec<Line> = lines.into_iter().flat_map(|line| wrapped(line, width)).collect();
    state.room = usize::from(area.height);
    state.scroll = state.scroll.min(lines.len().saturating_sub(state.room));
    let seen = lines.into_iter().skip(state.scroll).take(state.room);
    frame.render_widget(Paragraph::new(seen.collect::<Vec<_>>()), area);
}

/// A line, wrapped into several. All but the first are indented further.
fn wrapped(line: Line<'static>, width: usize) -> Vec<Line<'static>> {
    let text = line.to_string();
    let further = text.chars().take_while(|c| *c == ' ').count() + 2;
    if text.chars().count() <= width || width <= 2 * further {
        return vec![line];
    }
    let mut lines = vec![String::new()];
    // The blanks at the start belong to the first word.
    for word in text.split_inclusive(' ') {
        let last = lines.last_mut().expect("there is one");
        let room = width.saturating_sub(last.chars().count());
        if word.trim_end().chars().count() <= room || last.trim().is_empty() {
            last.push_str(word);
        } else {
            lines.push(" ".repeat(further) + word);
        }
    }
    lines.into_iter().map(|text| Line::styled(text, line.style)).collect()
}

fn footer(state: &State) -> String {
    if state.is_typing {
        return format!("filter: {}_  Enter: keep  Esc: all", state.filter);
    }
    if state.asks_to_quit {
        return "the program still runs: q again ends it, too".to_owned();
    }
    let filter = match state.filter.as_str() {
        "" => String::new(),
        text => format!("[{text}] "),
    };
    match state.page {
        Page::Locks => format!("{filter}q quit ? help Enter lock </> sort r turn / filter t total"),
        Page::Lock(_) | Page::Help => format!("{filter}Esc back q quit ? help t total"),
    }
}

/// The beginning of a text, in so much room.
fn shortened_end(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(2)).collect();
    kept + &".."[..room.min(2)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::*;
    use crate::{batch, example};

    fn state() -> State {
        let mut state = State::new(Duration::from_secs(1), Column::Waited, Span::Interval, false);
        (0..3).for_each(|_| state.take(example::pictures(), Some(example::kernel())));
        state
    }

    fn screen(state: &mut State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let text = terminal.backend().to_string();
        assert!(text.lines().count() == usize::from(height), "{text}");
        text
    }

    #[test]
    fn the_list_looks_like_this() {
        insta::assert_snapshot!(screen(&mut state(), 90, 20));
    }

    #[test]
    fn a_narrow_screen_keeps_what_tells_most() {
        let mut state = state();
        insta::assert_snapshot!(screen(&mut state, 40, 10));
        let shown = [Column::Lock, Column::Waited, Column::Waits, Column::Worst];
        assert_eq!(columns(40, Column::Worst), shown);
        // Nothing fits, and nothing breaks.
        for (width, height) in [(1, 1), (5, 3), (20, 4), (20, 5), (20, 6), (500, 200)] {
            for page in [Page::Locks, Page::Help, Page::Lock(state.rows()[0].id.clone())] {
                state.page = page;
                screen(&mut state, width, height);
            }
        }
    }

    #[test]
    fn a_lock_looks_like_this() {
        let mut state = state();
        state.key(KeyEvent::from(KeyCode::Enter));
        let text = screen(&mut state, 90, 36);
        insta::assert_snapshot!(text);
        assert!(!text.contains('\u{1b}'), "a thread's name is no command: {text:?}");
    }

    #[test]
    fn a_lock_of_the_kernel_opens_too() {
        let mut state = state();
        let rows = state.rows();
        state.page = Page::Lock(rows.iter().find(|row| row.is_kernel()).unwrap().id.clone());
        state.span = Span::Total;
        let text = screen(&mut state, 90, 24);
        for part in [
            "rwsem of the kernel",
            "last interval: no wait",
            "task server in /web.slice",
            "down_write",
            "while its owner was in",
            "unmap_vmas",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_end_and_the_question_are_said() {
        let mut state = state();
        state.owns_program = true;
        state.key(KeyEvent::from(KeyCode::Char('q')));
        assert!(screen(&mut state, 90, 20).contains("q again ends it"));
        state.ended = Some("exit status 3".to_owned());
        assert!(screen(&mut state, 90, 20).contains("ENDED (exit status 3)"));
        state.filter = "nothing has this".to_owned();
        assert!(screen(&mut state, 90, 20).contains("no lock has that"));
    }

    #[test]
    fn text_for_a_pipe_looks_like_this() {
        insta::assert_snapshot!(batch::text(&state()));
    }

    #[test]
    fn what_is_missing_is_said_in_text_and_on_the_screen() {
        let mut state = state();
        let mut pictures = example::pictures();
        pictures.facts.left_out = 12;
        pictures.misses_cpu = true;
        let curves = state.history.len();
        state.take(pictures, Some(example::kernel()));
        assert_eq!(state.history.len(), curves, "nothing is known that could be drawn");
        for text in [batch::text(&state), screen(&mut state, 120, 20)] {
            assert!(text.contains("12 ended processes left out"), "{text}");
            assert!(
                text.contains("CPU time not known") && !text.contains("program 60 %"),
                "{text}"
            );
            let line = text.lines().find(|line| line.contains("cache_lock")).unwrap();
            assert!(!line.contains("100 %") && line.contains("8.00 us"), "{text}");
        }
        state.span = Span::Total;
        assert!(!batch::text(&state).contains("not known"));
    }

    #[test]
    fn long_lines_go_on_below() {
        let text = |line: &str, width| -> Vec<String> {
            wrapped(Line::from(line.to_owned()), width).iter().map(Line::to_string).collect()
        };
        assert_eq!(text("  one two three", 11), ["  one two ", "    three"]);
        assert_eq!(text("short", 11), ["short"]);
        assert_eq!(
            text("  a_name_that_is_too_long for it", 12),
            ["  a_name_that_is_too_long ", "    for it"]
        );
    }
}
