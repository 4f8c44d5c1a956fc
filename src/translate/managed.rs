//! The children as the controller writes them.

use std::collections::BTreeMap;

use super::packages::Packages;
use super::stream::Stream;
use super::{Note, Options, Refusal, Subject, Translation, engine_of, notes};
use crate::api::Engine;
use crate::engine::{ArgoTarget, Commit, FluxTarget, GitOrigin, Owner, PathPin, RenderContext, Target, render};
use crate::package::definition::{ChartSource, Component, Definition, PathChart};
use crate::package::digest::digest;
use crate::package::order::order;

/// The children of every Package as the controller writes them on a first
/// install: Packages after those they require, components after those they
/// depend on, every object once. Hooks run on upgrades only and are left out.
///
/// Charts at a `path` on Flux are pinned to the commit that `source` names;
/// without one they follow the sourceRef, and a note says so.
///
/// # Errors
/// Everything that stands in the way; nothing is translated then.
pub fn managed(packages: &[Definition], options: &Options) -> Result<Translation, Vec<Refusal>> {
    let set = Packages::new(packages).map_err(|refusal| vec![refusal])?;
    let (mut stream, mut said, mut refusals) = (Stream::default(), Vec::new(), Vec::new());
    for package in set.order.iter().filter_map(|&position| set.get(position)) {
        match package_objects(package, options, &mut stream) {
            Ok(notes) => said.extend(notes),
            Err(mut found) => refusals.append(&mut found),
        }
    }
    if refusals.is_empty() { Ok(Translation { objects: stream.into_objects(), notes: said }) } else { Err(refusals) }
}

fn package_objects(package: &Definition, options: &Options, stream: &mut Stream) -> Result<Vec<Note>, Vec<Refusal>> {
    let engine = engine_of(package, options.engine).map_err(|refusal| vec![refusal])?;
    let order = order(&package.components).map_err(|cycle| vec![Refusal::new(Subject::package(package), cycle)])?;
    let mut said = notes::engine_package(package, engine);
    let mut refusals = Vec::new();
    for hook in order.hooks.iter().filter_map(|&position| package.components.get(position)) {
        let message = "a hook runs when the version changes, so there is nothing of it in a first install".to_owned();
        said.push(Note { about: Subject::component(package, hook), message });
    }
    let ordered = order.components.iter().filter_map(|&position| package.components.get(position));
    for (wave, component) in (0..).zip(ordered) {
        said.extend(notes::engine(package, component, engine));
        if engine == Engine::Flux && matches!(&component.chart, ChartSource::Path(chart) if pin(chart).is_none()) {
            let message = "the controller pins its chart to a commit; none is known here (--repo-url, --revision), \
                           so this shows the chart of the sourceRef";
            said.push(Note { about: Subject::component(package, component), message: message.to_owned() });
        }
        if let Err(refusal) = component_objects(package, component, wave, engine, options, stream) {
            refusals.push(refusal);
        }
    }
    if refusals.is_empty() { Ok(said) } else { Err(refusals) }
}

fn component_objects(
    package: &Definition,
    component: &Component,
    wave: u32,
    engine: Engine,
    options: &Options,
    stream: &mut Stream,
) -> Result<(), Refusal> {
    let about = Subject::component(package, component);
    let refuse = |message: String| Refusal::new(about.clone(), message);
    let digest = digest(component, engine).map_err(|error| refuse(error.to_string()))?;
    let pin = match &component.chart {
        ChartSource::Repository(_) => None,
        ChartSource::Path(chart) => pin(chart),
    };
    let path_pin = match &pin {
        Some((origin, commit)) => PathPin::Commit { origin, commit },
        None => PathPin::Follow,
    };
    let target = match engine {
        Engine::Flux => Target::Flux(FluxTarget { path_pin, depends_on: &[] }),
        Engine::Argo => Target::Argo(ArgoTarget { project: &options.project, destination: &options.destination }),
    };
    let context = RenderContext {
        package,
        account: package.service_account.as_ref(),
        wave,
        digest: &digest,
        hook: None,
        owner: Owner::Controller,
        guard: options.guard,
        annotations: BTreeMap::new(),
        target,
    };
    let rendered = render(component, &context).map_err(|error| refuse(error.to_string()))?;
    rendered.into_objects().into_iter().try_for_each(|object| stream.push(object, &about))
}

fn pin(chart: &PathChart) -> Option<(GitOrigin, Commit)> {
    let source = chart.source.as_ref()?;
    Some((GitOrigin::from_url(&source.repo_url), Commit::parse(&source.revision)?))
}
