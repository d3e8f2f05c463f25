//! The shown contents, and the effect of each key. It knows only the terminal's keys.

use std::collections::VecDeque;
use std::time::Duration;

use manycore_profile::profile::Cpu;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::follow::Pictures;
use crate::kernel::KernelLocks;
use crate::rows::{self, Column, Row, RowId, Span};

/// Intervals whose CPU time is remembered.
const HISTORY_MAX: usize = 400;
/// The shortest and the longest time between two pictures.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// As above.
pub const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// A filter has room for this.
const FILTER_MAX: usize = 60;

/// Which page is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// All locks.
    Locks,
    /// One of them.
    Lock(RowId),
    /// The keys.
    Help,
}

/// What the key asks for besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Stay,
    /// The end.
    Quit,
}

/// What is shown.
pub struct State {
    /// What the program did; none before the first sample.
    pub pictures: Option<Pictures>,
    /// What the kernel did, if it is watched.
    pub kernel: Option<KernelLocks>,
    /// CPU time of the latest intervals, the last one last.
    pub history: VecDeque<(f64, Cpu)>,
    /// Which page.
    pub page: Page,
    /// The time that the page covers.
    pub span: Span,
    /// By which column rows are sorted.
    pub sort: Column,
    /// The other way round.
    pub is_reversed: bool,
    /// Whether the picture is held.
    pub is_paused: bool,
    /// Time between two pictures.
    pub interval: Duration,
    /// Rows are shown that have this.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
    /// Whether quitting ends the program, too.
    pub owns_program: bool,
    /// How the program ended.
    pub ended: Option<String>,
    /// Whether the user has asked to quit and has to confirm it.
    pub asks_to_quit: bool,
    /// The row that is selected.
    pub selected: Option<RowId>,
    /// Lines of the page that are above the screen: of a lock's.
    pub scroll: usize,
    /// Rows that the last screen had room for.
    pub room: usize,
}

impl State {
    /// The list, before anything is known.
    pub fn new(interval: Duration, sort: Column, span: Span, owns_program: bool) -> Self {
        Self {
            pictures: None,
            kernel: None,
            history: VecDeque::new(),
            page: Page::Locks,
            span,
            sort,
            is_reversed: false,
            is_paused: false,
            interval,
            filter: String::new(),
            is_typing: false,
            owns_program,
            ended: None,
            asks_to_quit: false,
            selected: None,
            scroll: 0,
            room: 10,
        }
    }

    /// Takes new pictures.
    pub fn take(&mut self, pictures: Pictures, kernel: Option<KernelLocks>) {
        let interval = pictures.interval.as_ref().filter(|_| !pictures.misses_cpu);
        if let Some(interval) = interval {
            self.history.push_back((interval.seconds, interval.cpu));
            if self.history.len() > HISTORY_MAX {
                self.history.pop_front();
            }
        }
        (self.pictures, self.kernel) = (Some(pictures), kernel);
    }

    /// The time that is shown: before there is an interval, all until now.
    pub fn shown_span(&self) -> Span {
        let has_interval = self.pictures.as_ref().is_some_and(|one| one.interval.is_some());
        if has_interval { self.span } else { Span::Total }
    }

    /// The rows, in their order.
    pub fn rows(&self) -> Vec<Row> {
        let Some(pictures) = &self.pictures else { return Vec::new() };
        let mut rows = rows::rows(pictures, self.kernel.as_ref(), self.shown_span());
        let filter = self.filter.to_lowercase();
        rows.retain(|row| row.matches(&filter));
        rows::sort(&mut rows, self.sort, self.is_reversed);
        rows
    }

    /// The position of the selected row. Before a selection, and when the row is gone, the first
    /// one.
    pub fn place(&self, rows: &[Row]) -> usize {
        rows.iter().position(|row| Some(&row.id) == self.selected.as_ref()).unwrap_or(0)
    }

    /// Does what a key says.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Action::Stay;
        }
        let asked = std::mem::take(&mut self.asks_to_quit);
        if key.code == KeyCode::Char('q') {
            self.asks_to_quit = self.owns_program && self.ended.is_none() && !asked;
            return if self.asks_to_quit { Action::Stay } else { Action::Quit };
        }
        match key.code {
            KeyCode::Char(' ' | 'p') => self.is_paused = !self.is_paused,
            KeyCode::Char('t') => {
                self.span = if self.span == Span::Total { Span::Interval } else { Span::Total };
            }
            KeyCode::Char('+') => self.interval = (self.interval * 2).min(INTERVAL_MAX),
            KeyCode::Char('-') => self.interval = (self.interval / 2).max(INTERVAL_MIN),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.open(Page::Help),
            _ => match self.page {
                Page::Locks => self.key_of_list(key.code),
                Page::Lock(_) | Page::Help => self.key_of_text(key.code),
            },
        }
        Action::Stay
    }

    fn open(&mut self, page: Page) {
        (self.page, self.scroll) = (page, 0);
    }

    fn key_of_list(&mut self, key: KeyCode) {
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.go(|place, _| place.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(|place, _| place + 1),
            KeyCode::PageUp => self.go(|place, room| place.saturating_sub(room)),
            KeyCode::PageDown => self.go(|place, room| place + room),
            KeyCode::Home | KeyCode::Char('g') => self.go(|_, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.go(|_, _| usize::MAX),
            KeyCode::Enter | KeyCode::Char('l') => {
                let rows = self.rows();
                if let Some(row) = rows.get(self.place(&rows)) {
                    self.selected = Some(row.id.clone());
                    self.open(Page::Lock(row.id.clone()));
                }
            }
            KeyCode::Char('/') | KeyCode::F(4) => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('r' | 'I') => self.is_reversed = !self.is_reversed,
            KeyCode::Left | KeyCode::Char('<') => self.sort_beside(-1),
            KeyCode::Right | KeyCode::Char('>') => self.sort_beside(1),
            KeyCode::Char(digit @ '1'..='8') => {
                self.sort_by(Column::ALL[digit as usize - '1' as usize]);
            }
            _ => {}
        }
    }

    fn go(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let rows = self.rows();
        let place = to(self.place(&rows), self.room.max(1)).min(rows.len().saturating_sub(1));
        self.selected = rows.get(place).map(|row| row.id.clone());
    }

    fn sort_beside(&mut self, by: isize) {
        let at = Column::ALL.iter().position(|column| *column == self.sort).unwrap_or(0);
        let all = Column::ALL.len() as isize;
        self.sort_by(Column::ALL[(at as isize + by).rem_euclid(all) as usize]);
    }

    fn sort_by(&mut self, column: Column) {
        (self.sort, self.is_reversed) = (column, false);
    }

    fn key_of_text(&mut self, key: KeyCode) {
        match key {
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.open(Page::Locks),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            // The end is known when it is drawn.
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.room),
            KeyCode::PageDown => self.scroll += self.room,
            KeyCode::Home | KeyCode::Char('g') => self.scroll = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll = usize::MAX / 2,
            _ => {}
        }
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => (self.is_typing, self.filter) = (false, String::new()),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if !c.is_control() && self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(c);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn state(owns_program: bool) -> State {
        let mut state =
            State::new(Duration::from_secs(1), Column::Waited, Span::Interval, owns_program);
        state.take(example::pictures(), Some(example::kernel()));
        state
    }

    fn press(state: &mut State, keys: &[KeyCode]) -> Action {
        let pressed = keys.iter().map(|key| state.key(KeyEvent::from(*key)));
        pressed.last().unwrap_or(Action::Stay)
    }

    fn typed(state: &mut State, text: &str) -> Action {
        press(state, &text.chars().map(KeyCode::Char).collect::<Vec<_>>())
    }

    fn selected(state: &State) -> String {
        let rows = state.rows();
        rows[state.place(&rows)].title.1.clone()
    }

    #[test]
    fn the_selection_stays_with_its_lock() {
        let mut state = state(false);
        assert_eq!(selected(&state), "cache_lock");
        typed(&mut state, "t");
        press(&mut state, &[KeyCode::Down]);
        assert_eq!(selected(&state), "mmap_lock");
        // By the mean wait it is second, too; by acquisitions last.
        typed(&mut state, "8");
        assert_eq!((selected(&state).as_str(), state.rows().len()), ("mmap_lock", 4));
        press(&mut state, &[KeyCode::Down, KeyCode::Down]);
        assert_eq!(selected(&state), "mmap_lock", "there is nothing behind the last row");
        press(&mut state, &[KeyCode::Home]);
        assert_eq!(selected(&state), "cache_lock");
        press(&mut state, &[KeyCode::End, KeyCode::PageUp]);
        assert_eq!(selected(&state), "cache_lock");
    }

    #[test]
    fn columns_are_chosen_by_number_and_by_their_neighbours() {
        let mut state = state(false);
        typed(&mut state, "4r");
        assert_eq!((state.sort, state.is_reversed), (Column::Mean, true));
        typed(&mut state, ">");
        assert_eq!((state.sort, state.is_reversed), (Column::Worst, false));
        typed(&mut state, "1<");
        assert_eq!(state.sort, Column::Acquired);
        press(&mut state, &[KeyCode::Right]);
        assert_eq!(state.sort, Column::Lock);
    }

    #[test]
    fn a_filter_is_typed_kept_and_taken_back() {
        let mut state = state(false);
        typed(&mut state, "/MmapQ");
        press(&mut state, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!((state.filter.as_str(), state.rows().len()), ("Mmap", 1));
        assert_eq!(selected(&state), "mmap_lock");
        press(&mut state, &[KeyCode::Esc]);
        assert_eq!(state.rows().len(), 4);
        // While it is typed, no letter is a command.
        assert_eq!(typed(&mut state, "/q"), Action::Stay);
        press(&mut state, &[KeyCode::Esc]);
        assert_eq!((state.is_typing, state.rows().len()), (false, 4));
    }

    #[test]
    fn a_lock_opens_and_closes() {
        let mut state = state(false);
        press(&mut state, &[KeyCode::Enter]);
        assert_eq!(state.page, Page::Lock(state.rows()[0].id.clone()));
        press(&mut state, &[KeyCode::Down, KeyCode::Char('t')]);
        assert_eq!((state.scroll, state.span), (1, Span::Total));
        press(&mut state, &[KeyCode::Esc]);
        assert_eq!((&state.page, state.scroll), (&Page::Locks, 0));
        typed(&mut state, "/nothing has this");
        press(&mut state, &[KeyCode::Enter, KeyCode::Enter]);
        assert_eq!(state.page, Page::Locks, "there is none to open");
    }

    #[test]
    fn a_program_of_its_own_is_not_ended_by_mistake() {
        assert_eq!(typed(&mut state(false), "q"), Action::Quit);
        assert_eq!(typed(&mut state(true), "q"), Action::Stay);
        assert_eq!(typed(&mut state(true), "qq"), Action::Quit);
        assert_eq!(typed(&mut state(true), "qtq"), Action::Stay);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state(true).key(interrupt), Action::Quit);
        let mut ended = state(true);
        ended.ended = Some("exit status 0".to_owned());
        assert_eq!(typed(&mut ended, "q"), Action::Quit);
    }

    #[test]
    fn intervals_have_bounds() {
        let mut state = state(false);
        typed(&mut state, &"-".repeat(9));
        assert_eq!(state.interval, INTERVAL_MIN);
        typed(&mut state, &"+".repeat(30));
        assert_eq!(state.interval, INTERVAL_MAX);
    }

    #[test]
    fn before_the_first_interval_there_are_totals() {
        let mut state = State::new(INTERVAL_MIN, Column::Waited, Span::Interval, false);
        assert_eq!((state.rows().len(), state.shown_span()), (0, Span::Total));
        press(&mut state, &[KeyCode::Down, KeyCode::Enter, KeyCode::End]);
        let first = Pictures { interval: None, ..example::pictures() };
        state.take(first, None);
        assert_eq!((state.rows().len(), state.history.len()), (3, 0));
        state.take(example::pictures(), None);
        assert_eq!((state.shown_span(), state.history.len()), (Span::Interval, 1));
    }
}
