//! Pictures as plain text, for a file or a pipe.

use manycore_measure::{Cell, Column as TableColumn, Table};

use crate::draw::{about, name, split, status};
use crate::rows::Column;
use crate::state::State;

/// Rows of a picture.
const ROWS: usize = 20;
/// Room for a name.
const NAME_WIDTH: usize = 40;

/// A picture of all columns and the first rows.
pub fn text(state: &State) -> String {
    let Some(pictures) = &state.pictures else { return String::new() };
    let (facts, span) = (&pictures.facts, state.shown_span());
    let rows = state.rows();
    let mut table = Table::plain(Column::ALL.map(|column| match column {
        Column::Lock => TableColumn::words(column.heading(span)),
        _ => TableColumn::number(column.heading(span)),
    }));
    for row in rows.iter().take(ROWS) {
        table.row(Column::ALL.map(|column| match column {
            Column::Lock => Cell::from(name(row, NAME_WIDTH)),
            _ => Cell::from(row.text(column, span)),
        }));
    }
    let more = match rows.len().saturating_sub(ROWS) {
        0 => String::new(),
        n => format!("{n} more locks\n"),
    };
    format!(
        "{} (pid {}), {}\n{}\n{}\n{table}\n{more}\n",
        facts.command,
        facts.pid,
        status(state, pictures),
        about(pictures),
        split(state, pictures),
    )
}
