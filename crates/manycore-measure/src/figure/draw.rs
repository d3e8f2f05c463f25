//! A figure as SVG.

use std::ops::Add;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Axis, Bars, Figure, Line, Lines, Map, Panel, Value};

/// To the right and down, in pixels.
type Pixels = (i32, i32);
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
/// Writing text to a string does not fail.
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const PANEL: (u32, u32) = (640, 420);
const TITLE_HEIGHT: u32 = 40;
/// Room for the numbers of the left edge, and for the names of the places.
const LEFT: u32 = 80;
const BELOW: u32 = 45;
const TITLE: (&str, u32) = ("sans-serif", 20);
const TEXT: (&str, u32) = ("sans-serif", 14);
const SMALL: (&str, u32) = ("sans-serif", 12);
/// Half of a bar's width; places are 1 apart.
const HALF_BAR: f64 = 0.32;
/// The room above the highest value, and on the right, for the legend, as a share of the labels'
/// width.
const HEADROOM: f64 = 1.05;
const LEGEND: f64 = 0.45;

/// Colours that people who see no red or no green can also distinguish (M. Okabe and K. Ito, "Color
/// universal design").
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 140, 20),
    RGBColor(110, 110, 110),
];

/// The picture.
pub fn svg(figure: &Figure) -> String {
    let mut text = String::new();
    let columns = figure.panels.len().clamp(1, 2);
    let rows = figure.panels.len().div_ceil(2).max(1);
    let size = (PANEL.0 * columns as u32, TITLE_HEIGHT + PANEL.1 * rows as u32);
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    draw(figure, &area, (rows, columns)).expect("writing to a string cannot fail");
    drop(area);
    text
}

fn draw(figure: &Figure, area: &Area<'_>, (rows, columns): (usize, usize)) -> Drawn {
    area.fill(&WHITE)?;
    let below = area.titled(&figure.title, TITLE)?;
    for (panel, area) in figure.panels.iter().zip(below.split_evenly((rows, columns))) {
        match panel {
            Panel::Lines(lines) => draw_lines(lines, &area)?,
            Panel::Bars(bars) => draw_bars(bars, &area)?,
            Panel::Map(map) => draw_map(map, &area)?,
        }
    }
    area.present()
}

fn draw_lines(panel: &Lines, area: &Area<'_>) -> Drawn {
    let values = panel.lines.iter().flat_map(|line| line.values.iter().flatten());
    let highest = values.map(|v| v.interval.map_or(v.value, |(_, high)| high.max(v.value)));
    let mut chart = chart(&panel.title, &panel.axis, highest.fold(0.0, f64::max), area)?;
    let mut numbers = 0..;
    for line in &panel.lines {
        match line.is_ideal {
            true => draw_ideal(line, &mut chart)?,
            false => draw_line(line, numbers.next().unwrap_or_default(), &mut chart)?,
        }
    }
    legend(&mut chart)
}

/// The known values of a line, each with its index.
fn known(line: &Line) -> impl Iterator<Item = (f64, Value)> {
    line.values.iter().enumerate().filter_map(|(at, v)| Some((at as f64, (*v)?)))
}

fn draw_ideal(line: &Line, chart: &mut Chart<'_, '_>) -> Drawn {
    let style = ShapeStyle::from(RGBColor(150, 150, 150)).stroke_width(1);
    chart
        .draw_series(LineSeries::new(known(line).map(|(at, v)| (at, v.value)), style))?
        .label(&line.name)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    Ok(())
}

fn draw_line<'a, 'b: 'a>(line: &Line, number: usize, chart: &mut Chart<'a, 'b>) -> Drawn {
    let style = ShapeStyle::from(colour(number)).stroke_width(2);
    chart.draw_series(LineSeries::new(known(line).map(|(at, v)| (at, v.value)), style))?;
    chart
        .draw_series(known(line).map(|(at, v)| mark(number, (at, v.value), style)))?
        .label(&line.name)
        .legend(move |(x, y)| mark(number, (x + 9, y), style));
    let intervals = known(line).filter_map(|(at, v)| Some((at, v.interval?)));
    chart.draw_series(
        intervals.map(|(at, (low, high))| PathElement::new([(at, low), (at, high)], style)),
    )?;
    Ok(())
}

/// A place, and a line around it.
type Mark<'a, C> = <EmptyElement<C, SVGBackend<'a>> as Add<PathElement<Pixels>>>::Output;

/// The outlines of marks: a square, two triangles, a cross, a diamond, a bar. They distinguish
/// lines that have the same grey on paper.
const OUTLINES: [&[Pixels]; 6] = [
    &[(-4, -4), (4, -4), (4, 4), (-4, 4), (-4, -4)],
    &[(-5, 4), (5, 4), (0, -5), (-5, 4)],
    &[(-4, -4), (4, 4), (0, 0), (-4, 4), (4, -4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0), (0, -6)],
    &[(-5, -4), (5, -4), (0, 5), (-5, -4)],
    &[(0, -6), (0, 6)],
];

fn mark<'a, C>(number: usize, at: C, style: ShapeStyle) -> Mark<'a, C> {
    EmptyElement::at(at) + PathElement::new(OUTLINES[number % OUTLINES.len()], style)
}

fn draw_bars(panel: &Bars, area: &Area<'_>) -> Drawn {
    let at = |sizes: &[f64], place: usize| sizes.get(place).copied().unwrap_or(0.0);
    let places = panel.axis.places.len();
    let height = |place| panel.parts.iter().map(|(_, sizes)| at(sizes, place)).sum::<f64>();
    let highest = (0..places).map(height).fold(0.0, f64::max);
    let mut chart = chart(&panel.title, &panel.axis, highest, area)?;
    let mut bottoms = vec![0.0; places];
    for (number, (name, sizes)) in panel.parts.iter().enumerate() {
        let style = colour(number).filled();
        let bars = bottoms.iter_mut().enumerate().filter_map(|(place, bottom)| {
            let (low, size) = (*bottom, at(sizes, place));
            *bottom += size;
            let x = place as f64;
            let corners = [(x - HALF_BAR, low), (x + HALF_BAR, low + size)];
            (size > 0.0).then(|| Rectangle::new(corners, style))
        });
        chart
            .draw_series(bars)?
            .label(name)
            .legend(move |(x, y)| Circle::new((x + 9, y), 5, style));
    }
    legend(&mut chart)
}

/// Room for the names of a map's rows, for its title, and for the names of its columns.
const ROW_NAMES: i32 = 150;
const MAP_TITLE: i32 = 30;
const COLUMN_NAMES: i32 = 45;

fn draw_map(panel: &Map, area: &Area<'_>) -> Drawn {
    let (width, height) = area.dim_in_pixel();
    let columns = panel.axis.places.len().max(1) as i32;
    let wide = (width as i32 - ROW_NAMES - 10) / columns;
    let high = (height as i32 - MAP_TITLE - COLUMN_NAMES) / panel.rows.len().max(1) as i32;
    let high = high.min(36);
    let middle = words(SMALL, HPos::Center, VPos::Center);
    let title = format!("{}: {}", panel.title, panel.axis.measures);
    area.draw_text(&title, &words(TEXT, HPos::Center, VPos::Top), (width as i32 / 2, 8))?;
    for (row, (name, values)) in panel.rows.iter().enumerate() {
        let top = MAP_TITLE + row as i32 * high;
        let beside = (ROW_NAMES - 6, top + high / 2);
        area.draw_text(name, &words(SMALL, HPos::Right, VPos::Center), beside)?;
        for (column, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let left = ROW_NAMES + column as i32 * wide;
            let corners = [(left, top), (left + wide - 1, top + high - 1)];
            area.draw(&Rectangle::new(corners, heat(*value).filled()))?;
            area.draw_text(&format!("{value:.2}"), &middle, (left + wide / 2, top + high / 2))?;
        }
    }
    let below = MAP_TITLE + panel.rows.len() as i32 * high + 12;
    for (column, name) in panel.axis.places.iter().enumerate() {
        area.draw_text(name, &middle, (ROW_NAMES + column as i32 * wide + wide / 2, below))?;
    }
    let at = (ROW_NAMES + columns * wide / 2, below + 18);
    area.draw_text(&panel.axis.name, &words(TEXT, HPos::Center, VPos::Center), at)
}

/// Text beside the point at which it is drawn.
fn words(size: (&'static str, u32), across: HPos, down: VPos) -> TextStyle<'static> {
    TextStyle::from(size.into_font()).pos(Pos::new(across, down))
}

/// The colour is orange at a half and less, white at 1, and blue at twice and more.
fn heat(ratio: f64) -> RGBColor {
    let share = ratio.max(1e-9).log2().clamp(-1.0, 1.0);
    let RGBColor(red, green, blue) =
        if share < 0.0 { RGBColor(230, 120, 0) } else { RGBColor(86, 180, 233) };
    let mixed = |part: u8| (255.0 + (f64::from(part) - 255.0) * share.abs()).round() as u8;
    RGBColor(mixed(red), mixed(green), mixed(blue))
}

fn chart<'a, 'b>(
    title: &str,
    axis: &Axis,
    highest: f64,
    area: &'a Area<'b>,
) -> Result<Chart<'a, 'b>, DrawingAreaErrorKind<std::io::Error>> {
    // Something to draw axes for where there is nothing.
    let top = if highest > 0.0 { highest * HEADROOM } else { 1.0 };
    let width = axis.places.len().max(1) as f64 * (1.0 + LEGEND);
    let mut chart = ChartBuilder::on(area)
        .caption(title, TEXT)
        .margin(10)
        .x_label_area_size(BELOW)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(-0.5..width - 0.5, 0.0..top)?;
    let place = |at: &f64| match at.fract() {
        0.0 if *at >= 0.0 => axis.places.get(*at as usize).cloned().unwrap_or_default(),
        // Between two places, or beside them.
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_labels((2.0 * width) as usize)
        .x_label_formatter(&place)
        .y_label_formatter(&|value| number(*value))
        .x_desc(&axis.name)
        .y_desc(&axis.measures)
        .label_style(SMALL)
        .axis_desc_style(TEXT)
        .draw()?;
    Ok(chart)
}

fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Drawn {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(220, 220, 220))
        .label_font(SMALL)
        .draw()
}

/// The colour for a number; colours repeat if there are many.
fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// The fewest digits with which the marks of an axis differ.
fn number(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, " G"),
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = format!("{scaled:.3}");
    format!("{}{prefix}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// How the picture writes it.
#[cfg(test)]
pub fn colour_in_svg(number: usize) -> String {
    in_svg(colour(number))
}

/// How the picture writes the colour of a ratio.
#[cfg(test)]
pub fn heat_in_svg(ratio: f64) -> String {
    in_svg(heat(ratio))
}

#[cfg(test)]
fn in_svg(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_short() {
        let cases = [
            (0.0, "0"),
            (2.5, "2.5"),
            (5000.0, "5000"),
            (12_500.0, "12.5 k"),
            (3e6, "3 M"),
            (0.05, "0.05"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
