//! For people: what random histories come to, one line each, and the whole story
//! of one of them.

use std::time::Instant;

use proptest::strategy::ValueTree as _;
use windlass::rehearse::Rehearsal;

use crate::judge::judge;
use crate::seeds::{outcome, tree};

/// What each of some histories comes to, and how long it takes to play.
pub fn survey(first: u32, count: u32) {
    let mut violations = 0;
    for seed in first..first + count {
        let history = tree(seed).current();
        let begun = Instant::now();
        let outcome = outcome(&history);
        let ms = begun.elapsed().as_millis();
        violations += u32::from(outcome.is_err());
        println!("{seed:>8} {:<5} {ms:>6} ms  {}", history.engine.as_str(), outcome.err().unwrap_or("kept".into()));
    }
    println!("{count} histories, {violations} violations");
}

/// All that happens in one history.
pub fn tell(seed: u32) {
    let history = tree(seed).current();
    println!("{history:#?}");
    let mut rehearsal = history.play(None, None);
    let outcome = judge(&history, &mut rehearsal);
    changes(&rehearsal);
    for note in &rehearsal.notes {
        println!("{:>9} {:?}", note.at, note.what);
    }
    println!("{}", outcome.err().unwrap_or("kept".into()));
}

fn changes(rehearsal: &Rehearsal) {
    for change in rehearsal.world.store.log().iter().filter(|change| change.actor != "argocd") {
        let kind = change.key.kind.as_str();
        let is_told = matches!(kind, "PackageRevision" | "Package") || kind.starts_with("Thing");
        let status = change.object.get("status").filter(|_| is_told).map(ToString::to_string).unwrap_or_default();
        println!("{:>9} {:<18} {:?} {} {status}", change.at, change.actor, change.verb, change.key);
    }
}
