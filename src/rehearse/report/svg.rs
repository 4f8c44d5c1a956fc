//! A picture for a pull request: a row for each hook and component, against time.
//!
//! It stands alone: its own background, colours for light and dark, no script, no
//! font and no address outside of it. What it shows is what the timeline tells.

mod draw;
mod foot;
mod label;
mod lanes;
mod layout;
mod reader;
mod rollout;
mod scale;
mod sheet;
mod style;

use super::Report;
use draw::Drawing;
use layout::Layout;

/// Writes a report as one SVG document.
pub fn write_svg(report: &Report) -> String {
    let picture = reader::read(report);
    let layout = Layout::of(&picture);
    Drawing::new(report, &picture, &layout).finish()
}
