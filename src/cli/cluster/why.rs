//! `windlass why`.

use kube::Api;
use kube::api::{DynamicObject, ListParams};

use super::{Cluster, ClusterArguments, block_on, workloads};
use crate::api::wellknown::LABEL_PACKAGE;
use crate::cli::{Exit, Streams};
use crate::controller::cluster::bounded;
use crate::controller::kinds::Kind;
use crate::report::why::{self, Found, Key};

const EXAMPLES: &str = "\
Examples:
  windlass why kubevirt -n packages   what holds it up, down to the root, and what to do";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Package.
    name: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let package = cluster.package(&arguments.name).await?;
        let start: Key = (cluster.namespace.clone(), arguments.name.clone());
        let mut found = Found::default();
        found.packages.insert(start.clone(), package);
        gather(&cluster, &start, &mut found).await?;
        workloads::add(&cluster, &mut found).await?;
        for what in &found.unread {
            writeln!(streams.stderr, "note: {what}; what they say is left out")?;
        }
        streams.stdout.write_all(why::write(&start, &found, jiff::Timestamp::now()).as_bytes())?;
        Ok(Exit::Ok)
    })
}

/// Fetches what the chain of blockers leads to, and the children of its end.
async fn gather(cluster: &Cluster, start: &Key, found: &mut Found) -> anyhow::Result<()> {
    let mut open = vec![start.clone()];
    while let Some(key) = open.pop() {
        let Some(package) = found.packages.get(&key) else { continue };
        let blockers = why::blockers(package);
        if blockers.is_empty() {
            match cluster.revision_under_way(package).await {
                Ok(Some(revision)) => drop(found.revisions.insert(key.clone(), revision)),
                Ok(None) => {}
                Err(error) if error.is_forbidden() => {
                    found.unread.push(format!("you may not get packagerevisions in {}", key.0));
                }
                Err(error) => return Err(error.into()),
            }
            add_children(cluster, &key, found).await?;
        }
        for blocker in blockers {
            if found.packages.contains_key(&blocker) {
                continue;
            }
            match bounded(cluster.packages(Some(&blocker.0)).get(&blocker.1)).await {
                Ok(package) => {
                    found.packages.insert(blocker.clone(), package);
                    open.push(blocker);
                }
                Err(error) if error.is_not_found() => {}
                Err(error) if error.is_forbidden() => {
                    found.unread.push(format!("you may not get Package {}/{}", blocker.0, blocker.1));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// HelmReleases and Applications of a Package, whichever of the kinds there are
/// and may be read.
async fn add_children(cluster: &Cluster, package: &Key, found: &mut Found) -> anyhow::Result<()> {
    for kind in [Kind::HelmRelease, Kind::Application] {
        let resource = kind.resource();
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &package.0, &resource);
        let selector = ListParams::default().labels(&format!("{LABEL_PACKAGE}={}", package.1));
        let list = match bounded(api.list(&selector)).await {
            Ok(list) => list,
            Err(error) if error.is_not_found() => continue,
            Err(error) if error.is_forbidden() => {
                found.unread.push(format!("you may not list {} in {}", resource.plural, package.0));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for object in list.items {
            let mut object = serde_json::to_value(object)?.as_object().cloned().unwrap_or_default();
            object.insert("kind".into(), resource.kind.clone().into());
            found.children.push(object);
        }
    }
    Ok(())
}
