//! What came out, as a page that loads nothing.

use std::fmt::{self, Write};

use manycore_measure::{Claim, Judgement, escaped};

use crate::figure::{Figure, Parameter};
use crate::picture;
use crate::render::{numbers, tally};
use crate::run::Reproduction;
use crate::statement::{Statement, expectation};

const STYLE: &str = include_str!("page.css");

/// The page of all figures, which contains their pictures.
pub(crate) fn page(found: &[Reproduction]) -> String {
    let mut page = String::new();
    write(found, &mut page).expect("writing to a string cannot fail");
    page
}

fn write(found: &[Reproduction], page: &mut String) -> fmt::Result {
    writeln!(page, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(page, "<title>Published figures, simulated</title>\n<style>\n{STYLE}</style>")?;
    writeln!(page, "<h1>Published figures, simulated</h1>")?;
    let claims: Vec<&Claim> = found.iter().flat_map(|found| &found.claims).collect();
    writeln!(page, "<p>{}</p>", escaped(&tally(&claims)))?;
    writeln!(
        page,
        "<p>Which mechanism is ahead, about where each stops scaling, and why: that is what a simulation can tell. It \
        cannot tell how many operations a second a machine does, nor ratios to less than about 30 %. Expectations were written down before the \
        first run.</p>\n<ul>"
    )?;
    for Reproduction { figure, .. } in found {
        writeln!(
            page,
            "<li><a href=\"#{0}\">{1}</a>",
            escaped(&figure.id),
            escaped(&figure.title)
        )?;
    }
    writeln!(page, "</ul>")?;
    found.iter().try_for_each(|found| section(found, page))?;
    writeln!(page, "</html>")
}

fn section(found: &Reproduction, page: &mut String) -> fmt::Result {
    let Figure { id, title, source, published, model, machine, .. } = &found.figure;
    writeln!(page, "<section id=\"{}\">\n<h2>{}</h2>", escaped(id), escaped(title))?;
    writeln!(page, "<p class=\"source\">{}</p>", escaped(source))?;
    writeln!(page, "<p>Published: {}</p>", escaped(published.trim()))?;
    writeln!(page, "<p>Here: {}</p>", escaped(model.trim()))?;
    writeln!(
        page,
        "<p>Simulated on <code>{}</code>; again by <code>manycore figures {}</code>.</p>",
        escaped(machine),
        escaped(id)
    )?;
    writeln!(page, "<div class=\"pictures\">")?;
    for (_, picture) in picture::of(found) {
        // Each picture is a document of its own. It begins with a header that only a separate file
        // may have.
        let svg = picture.svg();
        writeln!(page, "{}", svg.find("<svg").map_or("", |start| &svg[start..]))?;
    }
    writeln!(page, "</div>")?;
    claims(found, page)?;
    parameters(&found.figure.parameters, page)?;
    writeln!(page, "</section>")
}

fn claims(found: &Reproduction, page: &mut String) -> fmt::Result {
    let headings = ["claim", "where", "published", "bound", "found", "band", "verdict", "expected"];
    head(&headings, page)?;
    for (claim, Statement { place, .. }) in found.claims.iter().zip(&found.figure.claims) {
        let class = match claim.verdict {
            Judgement::Pass => "pass",
            Judgement::Fail => "fail",
            Judgement::Undecided | Judgement::PublishedOnly => "note",
        };
        write!(page, "<tr><td>{}", escaped(&claim.text))?;
        if !claim.note.is_empty() {
            write!(page, "<br><span class=\"note\">{}</span>", escaped(&claim.note))?;
        }
        write!(page, "<td>{}", escaped(place))?;
        numbers(claim).iter().try_for_each(|cell| write!(page, "<td class=\"number\">{cell}"))?;
        write!(page, "<td class=\"{class}\">{}", claim.verdict)?;
        writeln!(page, "<td>{}", claim.expected.map_or("", expectation))?;
    }
    writeln!(page, "</table></div>")
}

fn parameters(parameters: &[Parameter], page: &mut String) -> fmt::Result {
    writeln!(page, "<h3>Free parameters</h3>")?;
    head(&["parameter", "value", "chosen", "by"], page)?;
    for Parameter { name, value, provenance, why } in parameters {
        writeln!(
            page,
            "<tr><td>{}<td>{}<td>{provenance}<td>{}",
            escaped(name),
            escaped(value),
            escaped(why)
        )?;
    }
    writeln!(page, "</table></div>")
}

fn head(headings: &[&str], page: &mut String) -> fmt::Result {
    write!(page, "<div class=\"scrolls\"><table>\n<tr>")?;
    headings.iter().try_for_each(|heading| write!(page, "<th>{heading}"))?;
    writeln!(page)
}
