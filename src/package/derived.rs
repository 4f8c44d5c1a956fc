//! What is worked out from a definition once: whoever decides asks for it again
//! and again.

use std::sync::OnceLock;

use crate::api::Engine;

/// Worked out when it is first asked for. A copy works it out anew, since what it
/// belongs to may be changed then; it makes no difference between two of them.
#[derive(Debug)]
pub(crate) struct Derived<T>(OnceLock<T>);

impl<T> Derived<T> {
    pub fn get(&self, work_out: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(work_out)
    }
}

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Clone for Derived<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> PartialEq for Derived<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The same for each engine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForEngine<T> {
    flux: Derived<T>,
    argo: Derived<T>,
}

impl<T> ForEngine<T> {
    pub fn get(&self, engine: Engine, work_out: impl FnOnce() -> T) -> &T {
        match engine {
            Engine::Flux => self.flux.get(work_out),
            Engine::Argo => self.argo.get(work_out),
        }
    }
}

impl<T> Default for ForEngine<T> {
    fn default() -> Self {
        Self { flux: Derived::default(), argo: Derived::default() }
    }
}
