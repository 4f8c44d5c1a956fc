//! Conditions that do not show whether an update has been done.

/// A condition that stays True while its object is being updated.
pub struct StaysTrue {
    /// API group of the kind.
    group: &'static str,
    /// The kind.
    kind: &'static str,
    /// Type of the condition.
    condition: &'static str,
    /// What shows the end of an update instead.
    pub instead: &'static str,
}

const TABLE: &[StaysTrue] = &[
    // kubevirt/kubevirt, pkg/virt-operator/util/conditions.go: an update in
    // progress is Available=True with reason UpdateInProgress.
    StaysTrue {
        group: "kubevirt.io",
        kind: "KubeVirt",
        condition: "Available",
        instead: "compare `object.status.observedKubeVirtVersion` with `'v' + version`",
    },
    // kubevirt/controller-lifecycle-operator-sdk, MarkCrUpgradeHealingDegraded:
    // an upgrade that starts sets Available, Progressing and Degraded to True.
    StaysTrue {
        group: "cdi.kubevirt.io",
        kind: "CDI",
        condition: "Available",
        instead: "compare `object.status.observedVersion` with the version",
    },
    StaysTrue {
        group: "hostpathprovisioner.kubevirt.io",
        kind: "HostPathProvisioner",
        condition: "Available",
        instead: "compare `object.status.observedVersion` with the version",
    },
    // kubernetes/kubernetes, pkg/controller/deployment/progress.go: Available
    // means that enough pods are available, of whatever revision.
    StaysTrue {
        group: "apps",
        kind: "Deployment",
        condition: "Available",
        instead: "compare `object.status.updatedReplicas` and `availableReplicas` with `object.spec.replicas`",
    },
];

/// The entry for a condition of a kind, if it is known to stay True.
pub fn stays_true(api_version: &str, kind: &str, condition: &str) -> Option<&'static StaysTrue> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    TABLE.iter().find(|entry| entry.group == group && entry.kind == kind && entry.condition == condition)
}
