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
    match top {
        "strategicMergePatches"
        | "jsonPatches"
        | "transformers"
        | "dependencies"
        | "forceNamespace"
        | "postRenderer"
        | "postRendererArgs" => {
            (Severity::Error, "it changes what is installed, and Packages have no such field: put it into the chart")
        }
        "username" | "password" | "registryConfig" => {
            (Severity::Error, "put the credentials into a Secret beside the Package, and its name into chart.secretRef")
        }
        "caFile"
        | "certFile"
        | "keyFile"
        | "passCredentials"
        | "skipTLSVerify"
        | "insecureSkipTLSVerify"
        | "plainHttp"
        | "managed" => (Severity::Error, "the source of the Package's charts is made without it"),
        "verify" | "keyring" | "verifyTemplate" => {
            (Severity::Error, "signatures are not checked; chart.digest pins what is installed")
        }
        "inherit" | "defaultInherit" | "valuesTemplate" | "setTemplate" | "installedTemplate" | "conditionTemplate"
        | "waitTemplate" => (Severity::Error, "import what `helmfile build --embed-values` prints"),
        "env" => (Severity::Error, "a Package reads no environment: write it into values"),
        "valuesPathPrefix" => (Severity::Error, "write the whole path of each values file"),
        "reuseValues" => (Severity::Error, "a release has the values that are written, and no others"),
        "args" | "syncArgs" | "devel" | "kubeVersion" | "apiVersions" => {
            (Severity::Error, "how Helm is called is the same for all releases of Packages")
        }
        "skipCRDs" => (Severity::Warning, "an upgrade leaves CRDs as they are; on Flux the install brings them"),
        "labels" | "commonLabels" => (Severity::Warning, "only helmfile selects releases by them"),
        "wait" | "waitForJobs" | "waitRetries" | "trackMode" | "trackTimeout" => {
            (Severity::Warning, "releases are always waited for")
        }
        "atomic" | "rollbackOnFailure" | "cleanupOnFail" => {
            (Severity::Warning, "what a failure leads to is said by rollback.safe")
        }
        "missingFileHandler" | "missingFileHandlerConfig" => {
            (Severity::Warning, "a file that is not there is an error")
        }
        _ if field.starts_with("track") || field.starts_with("suppress") || field.starts_with("diff") => {
            (Severity::Warning, "it is for the output of helmfile")
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
        | "updateStrategy" => {
            (Severity::Warning, "how a release is installed, retried and removed is decided by Windlass")
        }
        "helmBinary" | "kustomizeBinary" | "lockFilePath" | "unitTests" | "description" | "chartPath" => {
            (Severity::Warning, "it is for helmfile alone")
        }
        _ => (Severity::Warning, "Packages have no such field"),
    }
}
