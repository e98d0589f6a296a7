//! A drawing surface: the handful of SVG elements that charts are made of.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use core::fmt::{self, Write as _};

/// The greys and dark colors of the charts, for readers who prefer a dark page.
const DARK: &str = "<style>@media (prefers-color-scheme:dark){\
    [fill=\"#ffffff\"]{fill:#0d1117}\
    [fill=\"#1a1a1a\"],[fill=\"#222222\"]{fill:#e6edf3}\
    [fill=\"#555555\"],[fill=\"#666666\"]{fill:#9da7b3}\
    [fill=\"#e2e2e2\"],[fill=\"#e4e4e4\"]{fill:#30363d}\
    [fill=\"#5b1a8a\"]{fill:#c297ea}\
    [stroke=\"#1a1a1a\"],[stroke=\"#222222\"]{stroke:#e6edf3}\
    [stroke=\"#555555\"],[stroke=\"#666666\"]{stroke:#9da7b3}\
    [stroke=\"#e2e2e2\"],[stroke=\"#e4e4e4\"]{stroke:#30363d}\
    [stroke=\"#5b1a8a\"]{stroke:#c297ea}\
    }</style>\n";

/// A picture under construction. Lengths are in pixels, from the upper left corner.
#[derive(Debug)]
pub(crate) struct Picture {
    width: f64,
    height: f64,
    elements: String,
}

/// Where a text is anchored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Font {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) color: &'static str,
}

/// A rectangle, by its left upper corner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Picture {
    /// Creates a white picture.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let mut picture = Self {
            width,
            height,
            elements: String::new(),
        };
        picture.areas(&[Area::new((0.0, 0.0), width, height)], "#ffffff");
        picture
    }

    /// Fills `areas` with one color.
    pub(crate) fn areas(&mut self, areas: &[Area], color: &str) {
        let areas = areas.iter().filter(|area| area.height > 0.0);
        let outlines: Vec<_> = areas.map(|area| area.corners()).collect();
        self.outlines(&outlines, color);
    }

    /// Fills what lies within `outlines` with one color.
    pub(crate) fn outlines<O: AsRef<[(f64, f64)]>>(&mut self, outlines: &[O], color: &str) {
        let mut path = String::new();
        for outline in outlines {
            trace(&mut path, outline.as_ref());
            path.push('z');
        }
        self.element(format_args!("<path d=\"{path}\" fill=\"{color}\"/>"));
    }

    /// Draws a line; `dash` is `none` or a pattern like `6 4`.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, dash: &str) {
        self.path(&[from, to], 1.2, color, dash);
    }

    /// Draws a line through `points`.
    pub(crate) fn path(&mut self, points: &[(f64, f64)], width: f64, color: &str, dash: &str) {
        let mut path = String::new();
        trace(&mut path, points);
        self.element(format_args!(
            "<path d=\"{path}\" stroke=\"{color}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dash}\" fill=\"none\"/>"
        ));
    }

    /// Writes a text whose base line is at `at`.
    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, font: Font, text: &str) {
        self.turned_text(at, anchor, font, 0, text);
    }

    /// Writes a text turned by `degrees` about its anchor.
    pub(crate) fn turned_text(
        &mut self,
        at: (f64, f64),
        anchor: Anchor,
        font: Font,
        degrees: i16,
        text: &str,
    ) {
        let (x, y) = at;
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let Font { size, bold, color } = font;
        let weight = if bold { "bold" } else { "normal" };
        let text = escaped(text);
        self.element(format_args!(
            "<text x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\" font-size=\"{size}\" \
             font-weight=\"{weight}\" fill=\"{color}\" \
             transform=\"rotate({degrees} {x:.2} {y:.2})\">{text}</text>"
        ));
    }

    /// Returns the whole document.
    pub(crate) fn finish(self) -> String {
        let (width, height, elements) = (self.width, self.height, self.elements);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
             {DARK}{elements}</svg>\n"
        )
    }

    fn element(&mut self, element: fmt::Arguments<'_>) {
        append(&mut self.elements, element);
        self.elements.push('\n');
    }
}

impl Area {
    pub(crate) const fn new((x, y): (f64, f64), width: f64, height: f64) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    fn corners(self) -> [(f64, f64); 4] {
        let (right, foot) = (self.x + self.width, self.y + self.height);
        [
            (self.x, self.y),
            (right, self.y),
            (right, foot),
            (self.x, foot),
        ]
    }
}

fn trace(path: &mut String, points: &[(f64, f64)]) {
    for (index, (x, y)) in points.iter().enumerate() {
        let step = if index == 0 { 'M' } else { 'L' };
        append(path, format_args!("{step}{x:.1} {y:.1}"));
    }
}

fn append(text: &mut String, more: fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _always_ok = text.write_fmt(more);
}

/// Returns `text` as markup that shows it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{Anchor, Area, Font, Picture};

    #[test]
    fn what_a_text_says_is_no_markup() {
        let mut picture = Picture::new(10.0, 10.0);
        let font = Font {
            size: 10.0,
            bold: false,
            color: "#000000",
        };
        picture.text((0.0, 0.0), Anchor::Start, font, "a < b & c");
        assert!(picture.finish().contains(">a &lt; b &amp; c</text>"));
    }

    #[test]
    fn an_area_without_height_draws_nothing() {
        let mut picture = Picture::new(10.0, 10.0);
        let flat = Area::new((1.0, 1.0), 3.0, 0.0);
        picture.areas(&[flat], "#123456");
        assert!(picture.finish().contains("<path d=\"\" fill=\"#123456\"/>"));
    }
}
