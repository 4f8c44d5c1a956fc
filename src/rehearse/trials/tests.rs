//! A play that is forked is the play from the beginning.

use rstest::rstest;

use super::*;
use crate::api::Engine;
use crate::package::load::{Input, NamespaceRule, load};
use crate::package::names::Namespace;
use crate::rehearse::play::play;
use crate::rehearse::scene::read;

fn packages(version: &str, commit: u32, engine: Engine) -> Vec<crate::translate::Compiled> {
    let text = format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: shop}}\nspec:\n  version: {version}\n  \
         rollback: {{safe: true}}\n  components:\n  - {{name: db, chart: {{repository: 'https://c.example.org', name: db, \
         version: {version}}}}}\n  - {{name: api, chart: {{repository: 'https://c.example.org', name: api, version: {version}}}, \
         install: {{dependsOn: [db]}}}}\n"
    );
    let rule = NamespaceRule::Default(Namespace::parse("apps").unwrap());
    let loaded = load(&[Input::Text { bytes: text.into(), shown: "p.yaml".into() }], &rule).unwrap();
    read(loaded.packages, engine, commit).unwrap()
}

fn scene(engine: Engine) -> Scene {
    Scene { before: packages("1.0.0", 1, engine), after: packages("2.0.0", 2, engine), ..Scene::default() }
}

#[rstest]
fn what_is_forked_before_a_restart_is_what_is_played_with_it(#[values(Engine::Flux, Engine::Argo)] engine: Engine) {
    let scene = scene(engine);
    let prepared = prepare(&scene).unwrap();
    let mut seen = 0;
    prepared.play_with_restarts(&scene, 1, |step, forked| {
        let whole = play(&Scene { restart_at: Some(step), ..scene.clone() });
        let [forked, whole] = [forked, &whole].map(|played| report::report(&scene, played));
        assert_eq!(forked.moments, whole.moments, "{step}");
        assert_eq!((forked.end, forked.steps, forked.took), (whole.end, whole.steps, whole.took), "{step}");
        seen += 1;
        assert_eq!(step, seen);
    });
    assert_eq!(seen, play(&scene).steps);
}

#[rstest]
fn what_is_prepared_once_is_played_as_if_it_were_the_first_time(
    #[values(FailAt::Release, FailAt::Workload, FailAt::Rollback)] at: FailAt,
) {
    let scene = scene(Engine::Flux);
    let prepared = prepare(&scene).unwrap();
    let place = scene.find("api").unwrap();
    let failing = Scene { failures: vec![Failure { place, at }], ..scene.clone() };
    for scene in [&failing, &scene, &failing] {
        let (one, other) = (report::report(scene, &prepared.play(scene)), report::report(scene, &play(scene)));
        assert_eq!((one.moments, one.steps, one.remarks), (other.moments, other.steps, other.remarks));
    }
}
