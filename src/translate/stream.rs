//! A stream in which every object occurs once.

use std::collections::HashMap;

use super::{Refusal, Subject};
use crate::engine::{Manifest, ObjectKey};

/// Objects in order; the same object a second time is left out.
#[derive(Default)]
pub(super) struct Stream {
    objects: Vec<Manifest>,
    seen: HashMap<ObjectKey, (usize, Subject)>,
}

impl Stream {
    /// Adds an object of `about`.
    ///
    /// Another object of the same name is a refusal: two components, possibly
    /// of two Packages, would take turns in writing it.
    pub fn push(&mut self, object: Manifest, about: &Subject) -> Result<(), Refusal> {
        let key = object.key();
        match self.seen.get(&key) {
            None => {
                self.seen.insert(key, (self.objects.len(), about.clone()));
                self.objects.push(object);
                Ok(())
            }
            Some((position, _)) if self.objects.get(*position) == Some(&object) => Ok(()),
            Some((_, other)) => Err(Refusal::new(about.clone(), format!("{key} is also what {other} becomes"))),
        }
    }

    pub fn into_objects(self) -> Vec<Manifest> {
        self.objects
    }
}
