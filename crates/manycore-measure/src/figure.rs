//! Figures: lines over a number of threads, stacked bars, and heat maps, in one SVG.

mod draw;

use std::fmt::Write;

/// A figure of one or more panels, in rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is about.
    pub title: String,
    /// Its parts, in rows of two.
    pub panels: Vec<Panel>,
}

/// A part of a figure with axes of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Panel {
    /// Values that change along an axis.
    Lines(Lines),
    /// Wholes of several parts.
    Bars(Bars),
    /// Ratios in rows and columns.
    Map(Map),
}

/// The labels along the lower edge, at equal distances, and the quantity of the left edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What the places are.
    pub name: String,
    /// Their names.
    pub places: Vec<String>,
    /// What is measured, with its unit.
    pub measures: String,
}

/// A panel of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// What it shows.
    pub title: String,
    /// Where.
    pub axis: Axis,
    /// One for each thing that is compared.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// A value for each label of the axis; none where nothing is known.
    pub values: Vec<Option<Value>>,
    /// Whether it is there for comparison only: drawn thin and grey.
    pub is_ideal: bool,
}

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The value.
    pub value: f64,
    /// The ends of the value's interval; none if there is none.
    pub interval: Option<(f64, f64)>,
}

/// A panel of bars: at each label one bar, which consists of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// Where.
    pub axis: Axis,
    /// Parts with their sizes at each place, the lowest first.
    pub parts: Vec<(String, Vec<f64>)>,
}

/// A panel of cells, whose colour shows how far a ratio is from 1: a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// What it shows.
    pub title: String,
    /// The columns.
    pub axis: Axis,
    /// The rows by their names, with a ratio for each column; none where nothing is known.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Figure {
    /// The figure as SVG, of text and lines, which can be scaled.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }

    /// A page that loads nothing: the picture, and below it a text with its line breaks.
    pub fn html(&self, text: &str) -> String {
        let title = escaped(&self.title);
        let mut page =
            String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<title>{title}</title>");
        page += "<style>body { font-family: sans-serif; margin: 2em } svg { max-width: 100%; height: auto }</style>\n";
        let _ = writeln!(page, "{}\n<pre>{}</pre>\n</html>", self.svg(), escaped(text));
        page
    }
}

/// Text in which no character has a meaning for HTML or SVG, between tags and between quotation
/// marks.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis() -> Axis {
        let places = ["1", "2", "4"].map(str::to_owned).to_vec();
        Axis { name: "processes".into(), places, measures: "jobs a minute".into() }
    }

    fn figure() -> Figure {
        let value = |value, interval| Some(Value { value, interval });
        let measured = Line {
            name: "measured <a&b>".into(),
            values: vec![value(10.0, Some((9.0, 11.0))), value(15.0, None), None],
            is_ideal: false,
        };
        let linear = Line {
            name: "linear".into(),
            values: [10.0, 20.0, 20.0].map(|linear| value(linear, None)).to_vec(),
            is_ideal: true,
        };
        let lines =
            Lines { title: "throughput".into(), axis: axis(), lines: vec![measured, linear] };
        let bars = Bars {
            title: "waits".into(),
            axis: axis(),
            parts: vec![
                ("mm->mmap_lock".into(), vec![0.0, 10.0, 30.0]),
                ("other".into(), vec![1.0; 3]),
            ],
        };
        Figure { title: "forks".into(), panels: vec![Panel::Lines(lines), Panel::Bars(bars)] }
    }

    #[test]
    fn everything_is_named_and_nothing_is_markup() {
        let svg = figure().svg();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for text in [
            "forks",
            "jobs a minute",
            "processes",
            "linear",
            "mm-&gt;mmap_lock",
            "measured &lt;a&amp;b&gt;",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("<a&b>") && !svg.contains("NaN"), "{svg}");
    }

    /// If a bar has parts of 10 and of 30, the second is three times as high.
    #[test]
    fn bars_are_as_high_as_their_parts() {
        let svg = figure().svg();
        let colour = draw::colour_in_svg(0);
        let heights: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect") && line.contains(&colour))
            .map(|line| {
                let (_, rest) = line.split_once("height=\"").unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            })
            .collect();
        let (low, high) = (heights[0], heights[1]);
        assert!((high / low - 3.0).abs() < 0.2, "{heights:?}");
    }

    #[test]
    fn fields_say_their_ratio_and_differ_in_colour() {
        let map = Map {
            title: "of the best".into(),
            axis: axis(),
            rows: vec![("xeon".into(), vec![Some(0.31), Some(1.0), None])],
        };
        let svg = Figure { title: "map".into(), panels: vec![Panel::Map(map)] }.svg();
        for text in ["xeon", "0.31", "1.00", "processes", "of the best"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let filled = |value: f64| svg.contains(&draw::heat_in_svg(value));
        assert!(filled(0.31) && filled(1.0) && !filled(0.9), "{svg}");
    }

    #[test]
    fn a_figure_without_values_is_still_one() {
        let lines = Lines { title: "nothing".into(), axis: axis(), lines: Vec::new() };
        let bars = Bars {
            title: "nothing".into(),
            axis: Axis { places: Vec::new(), ..axis() },
            parts: Vec::new(),
        };
        let figure =
            Figure { title: "empty".into(), panels: vec![Panel::Lines(lines), Panel::Bars(bars)] };
        assert!(figure.svg().contains("nothing"));
    }

    #[test]
    fn the_page_has_the_picture_and_the_text() {
        let page = figure().html("a table with mm->mmap_lock & more");
        assert!(page.contains("<svg") && page.contains("mm-&gt;mmap_lock &amp; more"), "{page}");
        assert!(
            !page.contains("http://")
                || page.matches("http://").count() == page.matches("http://www.w3.org").count()
        );
    }
}
