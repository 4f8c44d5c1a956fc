//! A canary: how many nodes run the new version, and what may be unavailable.

use super::label::{shortened, width};
use super::lanes::{Rollout, Step};
use super::layout::{INDENT, Layout, MARGIN, Row, WIDTH};
use super::sheet::Sheet;

const HEIGHT: u64 = 20;

pub(super) fn draw(sheet: &mut Sheet, row: &Row, layout: &Layout, rollout: &Rollout) {
    sheet.open("row rollout", &[("daemonset", &rollout.daemon_set)]);
    let short = rollout.daemon_set.rsplit('/').next().unwrap_or_default();
    let name = shortened(&format!("nodes of {short}"), 11, layout.left - MARGIN - 2 * INDENT - 10);
    sheet.part("small", (MARGIN + 2 * INDENT, row.y + 17), &name, &format!("DaemonSet {}", rollout.daemon_set));
    let begins = rollout.steps.first().map_or(0, |step| layout.scale.x(step.at));
    let ends = layout.scale.x(rollout.ends).max(begins + 3);
    sheet.rect("nodes", [begins, row.y + 2, ends - begins, HEIGHT], "");
    let until = rollout.steps.iter().skip(1).map(|step| step.at).chain([rollout.ends]);
    let mut budget = None;
    for (step, until) in rollout.steps.iter().zip(until) {
        let left = layout.scale.x(step.at).min(ends - 2);
        let right = layout.scale.x(until).min(ends);
        let height = HEIGHT * step.updated / step.desired.max(1);
        let class = if step.back { "back" } else { "canary" };
        // Also where no node has it yet, there is something to point at.
        let height = height.clamp(1, HEIGHT);
        sheet.rect(class, [left, row.y + 2 + HEIGHT - height, right.saturating_sub(left).max(2), height], &step.told);
        if budget.replace(&step.budget) != Some(&step.budget) {
            sheet.path("budget", &format!("M{left} {}V{}", row.y, row.y + 2 + HEIGHT), &step.told);
        }
    }
    let (text, room) = (said(&rollout.steps), WIDTH - MARGIN - layout.left);
    let shown = shortened(&text, 11, room);
    let x = begins.min(WIDTH - MARGIN - width(&shown, 11)).max(layout.left);
    sheet.part("small", (x, row.y + 35), &shown, &text);
    sheet.close();
}

/// Budgets one after the other, and how far it came.
fn said(steps: &[Step]) -> String {
    let (there, back): (Vec<&Step>, Vec<&Step>) = steps.iter().partition(|step| !step.back);
    let parts = [("", there), ("on the way back ", back)].into_iter().filter(|(_, steps)| !steps.is_empty());
    let parts: Vec<String> = parts.map(|(way, steps)| format!("{way}{}", way_of(&steps))).collect();
    parts.join("; ")
}

fn way_of(steps: &[&Step]) -> String {
    let mut budgets: Vec<&str> = steps.iter().map(|step| step.budget.as_str()).collect();
    budgets.dedup();
    let came = steps.last().map(|step| format!("{} of {} nodes, {}", step.updated, step.desired, step.phase.as_str()));
    format!("budget {}: {}", budgets.join(" → "), came.unwrap_or_default())
}
