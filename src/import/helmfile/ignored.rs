//! Why fields of a helmfile are not carried over.

use crate::import::wire::Ignored;
use crate::import::{Imported, Severity};

pub(super) fn report(imported: &mut Imported, subject: &str, ignored: &[Ignored]) {
    for Ignored { path, field, .. } in ignored {
        let top = path.strip_prefix("helmDefaults.").unwrap_or(path);
        let top = top.strip_prefix("repositories[].").unwrap_or(top).split(['.', '[']).next().unwrap_or_default();
        let (severity, reason) = why(top, field);
        imported.note(severity, subject, format!("{path} is not carried over: {reason}"));
    }
}

fn why(top: &str, field: &str) -> (Severity, &'static str) {
    if let Some(reason) = lost(top) {
        return (Severity::Error, reason);
    }
    (Severity::Warning, done_otherwise(top, field))
}

/// Why a field that what is installed depends on cannot be carried over.
fn lost(top: &str) -> Option<&'static str> {
    Some(match top {
        "strategicMergePatches"
        | "jsonPatches"
        | "transformers"
        | "dependencies"
        | "forceNamespace"
        | "postRenderer"
        | "postRendererArgs" => "it changes what is installed, and Packages have no such field: put it into the chart",
        "username" | "password" | "registryConfig" => {
            "put the credentials into a Secret beside the Package, and its name into chart.secretRef"
        }
        "caFile"
        | "certFile"
        | "keyFile"
        | "passCredentials"
        | "skipTLSVerify"
        | "insecureSkipTLSVerify"
        | "plainHttp"
        | "managed" => "the source of the Package's charts is made without it",
        "verify" | "keyring" | "verifyTemplate" => "signatures are not checked; chart.digest pins what is installed",
        "inherit" | "defaultInherit" | "valuesTemplate" | "setTemplate" | "installedTemplate" | "conditionTemplate"
        | "waitTemplate" => "import what `helmfile build --embed-values` prints",
        "env" => "a Package reads no environment: write it into values",
        "valuesPathPrefix" => "write the whole path of each values file",
        "reuseValues" => "a release has the values that are written, and no others",
        "args" | "syncArgs" | "devel" | "kubeVersion" | "apiVersions" => {
            "how Helm is called is the same for all releases of Packages"
        }
        _ => return None,
    })
}

/// What stands in for a field that may go.
fn done_otherwise(top: &str, field: &str) -> &'static str {
    match top {
        "skipCRDs" => "an upgrade leaves CRDs as they are; on Flux the install brings them",
        "labels" | "commonLabels" => "only helmfile selects releases by them",
        "wait" | "waitForJobs" | "waitRetries" | "trackMode" | "trackTimeout" => "releases are always waited for",
        "atomic" | "rollbackOnFailure" | "cleanupOnFail" => "what a failure leads to is said by rollback.safe",
        "missingFileHandler" | "missingFileHandlerConfig" => "a file that is not there is an error",
        _ if field.starts_with("track") || field.starts_with("suppress") || field.starts_with("diff") => {
            "it is for the output of helmfile"
        }
        "force"
        | "forceConflicts"
        | "recreatePods"
        | "historyMax"
        | "createNamespace"
        | "skipDeps"
        | "skipRefresh"
        | "disableValidation"
        | "disableValidationOnInstall"
        | "disableOpenAPIValidation"
        | "skipSchemaValidation"
        | "cascade"
        | "deleteWait"
        | "deleteTimeout"
        | "takeOwnership"
        | "serverSide"
        | "syncReleaseLabels"
        | "enableDNS"
        | "updateStrategy" => "how a release is installed, retried and removed is decided by Windlass",
        "helmBinary" | "kustomizeBinary" | "lockFilePath" | "unitTests" | "description" | "chartPath" => {
            "it is for helmfile alone"
        }
        _ => "Packages have no such field",
    }
}
