//! Colours and patterns, for light and for dark. Nothing is told by colour alone.

/// Colours of one scheme: by what they are for.
struct Scheme {
    paper: &'static str,
    ink: &'static str,
    dim: &'static str,
    grid: &'static str,
    hook: &'static str,
    moves: &'static str,
    canary: &'static str,
    rollback: &'static str,
    good: &'static str,
    bad: &'static str,
}

const LIGHT: Scheme = Scheme {
    paper: "#ffffff",
    ink: "#1f2328",
    dim: "#59636e",
    grid: "#d1d9e0",
    hook: "#8250df",
    moves: "#0969da",
    canary: "#0f7b86",
    rollback: "#bc4c00",
    good: "#1a7f37",
    bad: "#cf222e",
};

const DARK: Scheme = Scheme {
    paper: "#0d1117",
    ink: "#f0f6fc",
    dim: "#9198a1",
    grid: "#3d444d",
    hook: "#bc8cff",
    moves: "#58a6ff",
    canary: "#39c5cf",
    rollback: "#f0883e",
    good: "#3fb950",
    bad: "#ff7b72",
};

/// Everything but colours.
const SHAPES: &str = "\
.windlass text{font-family:system-ui,-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif;font-size:12px;\
stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.windlass text.head{font-size:16px;font-weight:600}
.windlass text.package{font-size:13px;font-weight:600}
.windlass text.small,.windlass text.clock,.windlass text.label{font-size:11px}
.windlass text.clock{text-anchor:middle}
.windlass text.gap{text-anchor:middle;font-style:italic}
.windlass path{fill:none;stroke-width:2}
.windlass .grid,.windlass .edge,.windlass .hair{stroke-width:1}
.windlass .link{stroke-width:1.5;stroke-dasharray:2 2}
.windlass .restart{stroke-width:1.5;stroke-dasharray:6 3}
.windlass .cutline{stroke-width:1;stroke-dasharray:3 3}
.windlass .cut{fill-opacity:.6}
.windlass .gate{fill-opacity:.3;stroke-width:1}
.windlass .budget{stroke-width:1}
.windlass .nodes{fill-opacity:.12;stroke-width:1}
.windlass .mark{stroke-width:2.5;stroke-linecap:round;stroke-linejoin:round}
.windlass .mark.halo{stroke-width:7}
";

/// Rules of the document, with the colours of a scheme that asks for dark.
pub(super) fn style() -> String {
    format!("<style>\n{SHAPES}{}@media (prefers-color-scheme:dark){{\n{}}}\n</style>", rules(&LIGHT), rules(&DARK))
}

fn rules(scheme: &Scheme) -> String {
    let Scheme { paper, ink, dim, grid, hook, moves, canary, rollback, good, bad } = scheme;
    format!(
        "\
.windlass .paper{{fill:{paper};stroke:{grid}}}
.windlass text{{fill:{ink};stroke:{paper}}}
.windlass text.small,.windlass text.clock,.windlass text.gap,.windlass text.still{{fill:{dim}}}
.windlass text.fault{{fill:{bad}}}
.windlass text.fine{{fill:{good}}}
.windlass .grid,.windlass .edge{{stroke:{grid}}}
.windlass .run{{fill:{dim}}}
.windlass .wait{{fill:url(#windlass-wait);stroke:{dim}}}
.windlass .hook{{fill:{hook}}}
.windlass .move{{fill:{moves}}}
.windlass .gate{{fill:{moves};stroke:{moves}}}
.windlass .rollback{{fill:url(#windlass-back);stroke:{rollback}}}
.windlass .removal{{fill:none;stroke:{dim}}}
.windlass .stands{{fill:url(#windlass-stands);stroke:none}}
.windlass .nodes{{fill:{canary};stroke:{canary}}}
.windlass .canary{{fill:{canary}}}
.windlass .back{{fill:{rollback}}}
.windlass .budget{{stroke:{ink}}}
.windlass .lines{{stroke:{grid}}}
.windlass .rollbacks{{stroke:{rollback}}}
.windlass .dots{{fill:{bad}}}
.windlass .good{{stroke:{good}}}
.windlass .bad{{stroke:{bad}}}
.windlass .attempt{{stroke:{rollback}}}
.windlass .other,.windlass .link{{stroke:{dim}}}
.windlass .restart{{stroke:{bad}}}
.windlass .halo{{stroke:{paper}}}
.windlass .cut{{fill:{paper}}}
.windlass .cutline{{stroke:{dim}}}
"
    )
}

/// Patterns of bars: lines one way for what waits, the other way for what goes back.
pub(super) const PATTERNS: &str = "\
<defs>
<pattern id=\"windlass-wait\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<path class=\"lines hair\" d=\"M0 6L6 0\"/></pattern>
<pattern id=\"windlass-back\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<path class=\"rollbacks\" d=\"M0 0L6 6M-1 5L1 7M5 -1L7 1\"/></pattern>
<pattern id=\"windlass-stands\" width=\"6\" height=\"14\" patternUnits=\"userSpaceOnUse\">\
<rect class=\"dots\" x=\"0\" y=\"0\" width=\"3\" height=\"14\"/></pattern>
</defs>";

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn all_is_legible_on_light_and_on_dark() {
        for scheme in [LIGHT, DARK] {
            for text in [scheme.ink, scheme.dim, scheme.good, scheme.bad] {
                assert!(contrast(text, scheme.paper) >= 4.5, "{text} on {}", scheme.paper);
            }
            for shape in [scheme.hook, scheme.moves, scheme.canary, scheme.rollback] {
                assert!(contrast(shape, scheme.paper) >= 3.0, "{shape} on {}", scheme.paper);
            }
        }
    }
}
