//! The `--engine` of a command.

use clap::ValueEnum;

use crate::api::Engine;

/// Who applies the releases.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineArgument {
    /// Flux: one HelmRelease per component.
    Flux,
    /// Argo CD: one Application per component.
    Argo,
}

impl From<EngineArgument> for Engine {
    fn from(argument: EngineArgument) -> Self {
        match argument {
            EngineArgument::Flux => Self::Flux,
            EngineArgument::Argo => Self::Argo,
        }
    }
}
