//! The keys, and what the columns mean.

use ratatui::text::Line;

/// As the screen and `--help` have it.
pub const KEYS: &str = "\
Keys:
  Up, Down, PgUp, PgDn   choose a lock (also k, j; g and G: first, last)
  Enter                  what is known of it: where threads wait, who has
                         it meanwhile, which threads; Esc: back
  < >, 1 to 8            sort by another column;  r: the other way round
  /                      only locks whose name has a text;  Esc: all
  t                      the last interval, or all until now
  space, p               hold the picture;  + -: longer, shorter intervals
  ?                      help;  q: quit (of a program that `top` has
                         started: twice, and it ends, too)

Columns:
  lock     as in `profile`; [k] is one of the kernel's
  waited   time waited for it: of the time that threads ran or waited
           for locks; in totals, the time
  waits    attempts that had to wait; a second, or all
  mean     wait, on average
  worst    the longest wait (to about 20 % if there was a longer one
           before the interval)
  now      threads that wait for it now
  held     share of the time in which it was held, from samples; blank
           where readers or several locks hold together
  taken    acquisitions; a second, or all
";

/// For the screen.
pub fn lines() -> Vec<Line<'static>> {
    KEYS.lines().map(Line::from).collect()
}
