//! A page with the charts and tables of all scenes that were played, complete in itself.

use crate::laws::LAWS;
use crate::scene::Scene;
use crate::svg::escaped;
use crate::table::Table;

/// One scene on the page.
pub(crate) struct Section {
    pub(crate) scene: Scene,
    /// An SVG document.
    pub(crate) chart: String,
    pub(crate) tables: Vec<Table>,
}

/// Returns the page.
pub(crate) fn page(sections: &[Section], seeds: &str) -> String {
    let laws = LAWS.iter().map(|law| {
        let (name, means) = (escaped(law.name), escaped(law.means));
        format!("<dt>{name}</dt><dd>{means}</dd>")
    });
    let links = sections.iter().map(|section| {
        let name = escaped(section.scene.name);
        format!("<a href=\"#{name}\">{name}</a>")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Limiters compared</title>\n<style>{STYLE}</style>\n\
         <h1>What limiters make of a limit that they do not know</h1>\n{INTRODUCTION}\n\
         <dl>{}</dl>\n<p>{}</p>\n<nav>{}</nav>\n{}</html>\n",
        laws.collect::<String>(),
        escaped(seeds),
        links.collect::<Vec<_>>().join(" \u{b7} "),
        sections.iter().map(section).collect::<String>(),
    )
}

fn section(section: &Section) -> String {
    let Section {
        scene,
        chart,
        tables,
    } = section;
    let (name, title) = (escaped(scene.name), escaped(scene.title));
    let tables: String = tables.iter().map(html).collect();
    format!(
        "<section id=\"{name}\">\n<h2>{name}</h2>\n\
         <figure role=\"img\" aria-label=\"{title}\">{chart}</figure>\n\
         <div>{tables}</div>\n</section>\n"
    )
}

fn html(table: &Table) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows = table.iter().enumerate();
    let rows = rows.map(|(index, cells)| row(cells, if index == 0 { "th" } else { "td" }));
    format!("<table>\n{}</table>\n", rows.collect::<String>())
}

const INTRODUCTION: &str = "\
<p>A service answers only so many requests a second and refuses the rest, which is called throttling. Its clients are \
not told how many. Each section is one scene of that; each panel in it plays the same service and the same \
wishes with another limiter in the client.</p>\n\
<p><b>How to read a panel:</b> time runs to the right, requests per second go up. Blue got through, orange was \
throttled, and the upper edge of both is all that was sent. The dashed line is the limit of the service. A good \
limiter fills the space below the dashed line with blue and shows no orange. The purple line, where there is a single \
client, is the rate that its limiter allows itself. <i>Used</i> is what got through, as a share of what a client that \
knows the limit would have got through; <i>lost</i> are operations given up on.</p>";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:880px;margin:2em auto;padding:0 1em}\
figure{margin:0;background:#fff;border-radius:6px;overflow:hidden}\
svg{display:block;max-width:100%;height:auto}\
h2{font-size:1.15em;margin:2.5em 0 .6em}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1em}\
dt{font-weight:bold}dd{margin:0}\
div{overflow-x:auto}\
table{border-collapse:collapse;font-size:.8em;margin:1em 0;font-variant-numeric:tabular-nums}\
th,td{padding:.15em .6em;text-align:right;border-bottom:1px solid #8886}\
th:first-child,td:first-child{text-align:left;white-space:nowrap}";
