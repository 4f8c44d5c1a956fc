//! Objects that keep their order without a controller.
//!
//! On Flux each release waits, by `dependsOn` with an expression of its own, for
//! the releases it depends on; on Argo CD it stands in a wave above theirs. The
//! first components of a Package depend on the last ones of every Package it
//! requires, so that one set of edges orders everything.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::packages::Packages;
use super::stream::Stream;
use super::{Note, Options, Refusal, Subject, Translation, engine_of, notes};
use crate::api::Engine;
use crate::api::wellknown::{ANNOTATION_UPSTREAM, ARGO_SYNC_WAVE};
use crate::engine::{
    ArgoTarget, ChartEvidence, Dependency, DependencyState, FluxTarget, Owner, PathPin, RenderContext, Target,
    ready_expr, render,
};
use crate::package::definition::{ChartSource, Component, Definition};
use crate::package::digest::{ComponentDigest, digest};
use crate::package::names::{child_name, hex};
use crate::package::order::order;

/// A component that is in the stream: what others need to wait for it.
struct Node<'a> {
    package: usize,
    component: Cow<'a, Component>,
    engine: Engine,
    name: String,
    digest: ComponentDigest,
    /// Position among the components of its Package.
    wave: u32,
    /// Nodes that come first; all of them stand before this one.
    above: Vec<usize>,
    /// One more than the highest above.
    level: u32,
    /// Fingerprint of everything above.
    upstream: Option<String>,
}

/// Every Package as objects that keep their order by themselves.
///
/// # Errors
/// Everything that stands in the way: hooks (unless they are to be left out), a
/// suspended Package, and what the engine cannot do. Nothing is translated then.
pub fn native(packages: &[Definition], options: &Options) -> Result<Translation, Vec<Refusal>> {
    let set = Packages::new(packages).map_err(|refusal| vec![refusal])?;
    let mut builder = Builder { options, nodes: Vec::new(), last: BTreeMap::new(), notes: Vec::new() };
    let mut refusals = Vec::new();
    for &position in &set.order {
        refusals.extend(builder.add_package(&set, position));
    }
    let mut stream = Stream::default();
    for node in &builder.nodes {
        let Some(package) = set.get(node.package) else { continue };
        refusals.extend(builder.objects(package, node, &mut stream).err());
    }
    if refusals.is_empty() {
        Ok(Translation { objects: stream.into_objects(), notes: builder.notes })
    } else {
        Err(refusals)
    }
}

struct Builder<'a> {
    options: &'a Options,
    nodes: Vec<Node<'a>>,
    /// For each Package the nodes on which a requirer waits.
    last: BTreeMap<usize, BTreeSet<usize>>,
    notes: Vec<Note>,
}

impl<'a> Builder<'a> {
    fn add_package(&mut self, set: &Packages<'a>, position: usize) -> Vec<Refusal> {
        let Some(package) = set.get(position) else { return Vec::new() };
        let about = Subject::package(package);
        let engine = match engine_of(package, self.options.engine) {
            Ok(engine) => engine,
            Err(refusal) => return vec![refusal],
        };
        let order = match order(&package.components) {
            Ok(order) => order,
            Err(cycle) => return vec![Refusal::new(about, cycle)],
        };
        self.notes.extend(notes::engine_package(package, engine));
        self.notes.extend(notes::native_package(package, &set.outside(position)));
        let mut refusals = self.hooks(package, &order.hooks);
        if package.suspend {
            let message = "suspend needs the controller: these objects would move all the same";
            refusals.push(Refusal::new(about, message));
        }
        let required: BTreeSet<usize> =
            set.required(position).filter_map(|required| self.last.get(&required)).flatten().copied().collect();
        let (mut by_name, mut last) = (BTreeMap::new(), BTreeSet::new());
        for (wave, &index) in (0..).zip(&order.components) {
            let Some(component) = package.components.get(index) else { continue };
            self.notes.extend(notes::engine(package, component, engine));
            self.notes.extend(notes::native(package, component, engine));
            let mut above: Vec<usize> =
                component.depends_on.iter().filter_map(|name| by_name.get(name.as_str()).copied()).collect();
            if component.depends_on.is_empty() {
                above.extend(&required);
            }
            match self.node(package, position, component, engine, wave, above) {
                Ok(node) => {
                    node.above.iter().for_each(|above| {
                        last.remove(above);
                    });
                    last.insert(self.nodes.len());
                    by_name.insert(component.name.as_str(), self.nodes.len());
                    self.nodes.push(node);
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        // A group has no components: who requires it waits for what it requires.
        self.last.insert(position, if order.components.is_empty() { required } else { last });
        refusals
    }

    fn hooks(&mut self, package: &Definition, hooks: &[usize]) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        for hook in hooks.iter().filter_map(|&index| package.components.get(index)) {
            let about = Subject::component(package, hook);
            if self.options.skip_hooks {
                self.notes.push(Note { about, message: "a hook needs the controller: it is left out".to_owned() });
            } else {
                let message = "a hook needs the controller; only `windlass render --skip-hooks` leaves it out";
                refusals.push(Refusal::new(about, message));
            }
        }
        refusals
    }

    fn node(
        &self,
        package: &Definition,
        position: usize,
        component: &'a Component,
        engine: Engine,
        wave: u32,
        above: Vec<usize>,
    ) -> Result<Node<'a>, Refusal> {
        let refuse = |message: String| Refusal::new(Subject::component(package, component), message);
        let nodes: Vec<&Node<'_>> = above.iter().filter_map(|&index| self.nodes.get(index)).collect();
        if let Some(other) = nodes.iter().find(|node| node.engine != engine) {
            let other = other.engine.as_str();
            return Err(refuse(format!("it cannot wait for {other} without the controller: both need one engine")));
        }
        let digest = digest(component, engine).map_err(|error| refuse(error.to_string()))?;
        let level = nodes.iter().map(|node| node.level + 1).max().unwrap_or(0);
        let states = nodes.iter().map(|node| (&node.name, node.digest.as_str(), node.upstream.as_deref()));
        let states: BTreeSet<_> = states.collect();
        let upstream = (!states.is_empty()).then(|| format!("v1:{}", hex(&json!(states).to_string(), 64)));
        // Without the controller nothing would ever take a canary further.
        let component = match &component.canary {
            Some(_) => Cow::Owned(Component { canary: None, ..component.clone() }),
            None => Cow::Borrowed(component),
        };
        let name = child_name(&package.name, &component.name);
        Ok(Node { package: position, component, engine, name, digest, wave, above, level, upstream })
    }

    fn objects(&self, package: &Definition, node: &Node<'_>, stream: &mut Stream) -> Result<(), Refusal> {
        let about = Subject::component(package, &node.component);
        let depends_on: Vec<Dependency> = self.above(node).map(dependency).collect();
        let mut annotations = BTreeMap::new();
        let target = match node.engine {
            Engine::Flux => {
                annotations.extend(node.upstream.clone().map(|upstream| (ANNOTATION_UPSTREAM, upstream)));
                Target::Flux(FluxTarget { path_pin: PathPin::Follow, depends_on: &depends_on })
            }
            Engine::Argo => {
                if self.options.waves {
                    annotations.insert(ARGO_SYNC_WAVE, node.level.to_string());
                }
                Target::Argo(ArgoTarget { project: &self.options.project, destination: &self.options.destination })
            }
        };
        let context = RenderContext {
            package,
            account: package.service_account.as_ref(),
            wave: node.wave,
            digest: &node.digest,
            hook: None,
            owner: Owner::Git,
            guard: self.options.guard,
            annotations,
            target,
        };
        let rendered = render(&node.component, &context).map_err(|error| Refusal::new(about.clone(), error))?;
        rendered.into_objects().into_iter().try_for_each(|object| stream.push(object, &about))
    }

    fn above(&self, node: &Node<'_>) -> impl Iterator<Item = &Node<'a>> {
        node.above.iter().filter_map(|&index| self.nodes.get(index))
    }
}

fn dependency(node: &Node<'_>) -> Dependency {
    let chart = match &node.component.chart {
        ChartSource::Repository(chart) if chart.is_oci() => ChartEvidence::Oci(&chart.version),
        ChartSource::Repository(chart) => ChartEvidence::Exact(chart.version.as_written()),
        // Its HelmChart follows ChartVersion, so the version is all that tells one content from another.
        ChartSource::Path(chart) => chart
            .chart_version
            .as_ref()
            .map_or(ChartEvidence::Unknown, |version| ChartEvidence::Exact(version.as_written())),
    };
    let state = DependencyState { digest: &node.digest, upstream: node.upstream.as_deref(), chart };
    Dependency { name: node.name.clone(), ready_expr: ready_expr(&state) }
}
