//! Tables for a terminal.

use std::io::IsTerminal;

use comfy_table as comfy;

/// A column: its heading, and the side to which its cells are aligned.
#[derive(Clone, Debug)]
pub struct Column {
    heading: String,
    right: bool,
}

impl Column {
    /// A column of words. Its lines break when the terminal is narrow.
    pub fn words(heading: &str) -> Self {
        Self { heading: heading.into(), right: false }
    }

    /// A column of numbers. It is never broken.
    pub fn number(heading: &str) -> Self {
        Self { heading: heading.into(), right: true }
    }
}

/// The meaning of a cell, which is shown as a colour. A table must say the same in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// Less important than the rest.
    Faint,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell with a tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// A table, drawn by its `Display`.
///
/// On a terminal, the table is as wide as that and shows tones in colour unless `NO_COLOR` is set.
/// Elsewhere, and on a terminal that does not know its size, as serial consoles do not, it has any
/// width, with one line for each row.
#[derive(Debug)]
pub struct Table {
    inner: comfy::Table,
    colour: bool,
}

impl Table {
    /// An empty table for the standard output.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self::with(columns, terminal, terminal && !no_colour()).of_a_width()
    }

    /// An empty table for a file: without colours, of any width.
    pub fn plain(columns: impl IntoIterator<Item = Column>) -> Self {
        Self::with(columns, false, false)
    }

    /// An empty table for the standard error.
    pub fn for_stderr(columns: impl IntoIterator<Item = Column>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let mut table = Self::with(columns, terminal, terminal && !no_colour());
        table.inner.use_stderr();
        table.of_a_width()
    }

    fn of_a_width(mut self) -> Self {
        if self.inner.width() == Some(0) {
            self.inner.force_no_tty();
        }
        self
    }

    fn with(columns: impl IntoIterator<Item = Column>, terminal: bool, colour: bool) -> Self {
        let mut inner = comfy::Table::new();
        let lines = comfy::LineStyle::none().fill('-').junction(' ');
        inner.load_style(comfy::TableStyle::new().header_separator(lines));
        inner.set_content_arrangement(comfy::ContentArrangement::Dynamic);
        if colour {
            inner.enforce_styling();
        }
        if !terminal {
            inner.force_no_tty();
        }
        let columns: Vec<_> = columns.into_iter().collect();
        inner.set_header(columns.iter().map(|column| column.heading.as_str()));
        for (made, asked) in inner.column_iter_mut().zip(&columns) {
            made.set_padding((0, 1));
            if asked.right {
                made.set_cell_alignment(comfy::CellAlignment::Right);
                made.set_constraint(comfy::ColumnConstraint::ContentWidth);
            }
        }
        Self { inner, colour }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Self {
        let colour = self.colour;
        self.inner.add_row(cells.into_iter().map(|cell| {
            let drawn = comfy::Cell::new(cell.text);
            match cell.tone {
                _ if !colour => drawn,
                Tone::Plain => drawn,
                Tone::Good => drawn.fg(comfy::Color::Green),
                Tone::Bad => drawn.fg(comfy::Color::Red),
                Tone::Faint => drawn.add_attribute(comfy::Attribute::Dim),
            }
        }));
        self
    }
}

fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<_> = self.inner.lines().collect();
        let trimmed: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
        f.write_str(&trimmed.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(mut table: Table) -> Table {
        table.row(["futex".into(), Cell::new("1.83 M", Tone::Good)]);
        table.row(["ticket".into(), Cell::new("5.00  ", Tone::Bad)]);
        table
    }

    #[test]
    fn numbers_stand_right_and_lines_have_no_tail() {
        let columns = [Column::words("lock"), Column::number("op/s")];
        let text = filled(Table::with(columns, false, false)).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines.iter().all(|line| *line == line.trim_end()), "{text:?}");
        assert!(lines[2].ends_with("1.83 M"), "{text}");
        assert!(lines[3].ends_with("5.00"), "{text}");
    }

    #[test]
    fn colour_only_when_asked() {
        let columns = || [Column::words("lock"), Column::number("op/s")];
        assert!(filled(Table::with(columns(), true, true)).to_string().contains('\u{1b}'));
        assert!(!filled(Table::with(columns(), true, false)).to_string().contains('\u{1b}'));
    }
}
