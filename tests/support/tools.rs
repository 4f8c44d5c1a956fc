//! Where the programs of the bench are; `tests/bench/tools.sh` knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs and directories by name, all of them built.
#[derive(Debug, Clone, Default)]
pub struct Tools(BTreeMap<String, PathBuf>);

impl Tools {
    /// Asks the script. The error says what to run when something is missing.
    pub fn find() -> Result<Self, String> {
        let script = repository().join("tests/bench/tools.sh");
        let output =
            Command::new(&script).arg("list").output().map_err(|error| format!("{}: {error}", script.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let names = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, path)| (name.to_owned(), PathBuf::from(path)))
            .collect();
        Ok(Self(names))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.get(name).unwrap_or_else(|| panic!("the bench has no program {name}")).clone()
    }

    /// Is there such a program? False for the stand-in until it is written.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// The root of the source tree.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
