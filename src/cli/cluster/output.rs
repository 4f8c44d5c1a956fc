//! How objects of a cluster are printed: `-o`, as with kubectl.

use clap::ValueEnum;
use kube::Resource;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::cli::Streams;
use crate::package::yaml::write::write;

/// Formats besides the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The objects as they are stored.
    Json,
    /// The same as YAML.
    Yaml,
    /// The table with more columns.
    Wide,
    /// Their names, for other commands.
    Name,
}

/// Formats for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The objects as they are stored.
    Json,
    /// The same as YAML.
    Yaml,
    /// Their names.
    Name,
}

impl Output {
    /// What is meant for a program; `None` for a table.
    pub fn machine(self) -> Option<Machine> {
        match self {
            Self::Json => Some(Machine::Json),
            Self::Yaml => Some(Machine::Yaml),
            Self::Name => Some(Machine::Name),
            Self::Wide => None,
        }
    }
}

/// Prints objects in a format for programs. One that was asked for by its name stands alone,
/// others in a List.
///
/// # Errors
/// When it cannot be written.
pub fn print(
    objects: &[DynamicObject],
    singular: &str,
    format: Machine,
    is_single: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let text = match format {
        Machine::Name => names(objects, singular),
        Machine::Json => format!("{:#}\n", document(objects, is_single)?),
        Machine::Yaml => write(&[document(objects, is_single)?])?,
    };
    Ok(streams.stdout.write_all(text.as_bytes())?)
}

fn names(objects: &[DynamicObject], singular: &str) -> String {
    objects.iter().filter_map(|object| Some(format!("{singular}/{}\n", object.meta().name.as_ref()?))).collect()
}

fn document(objects: &[DynamicObject], is_single: bool) -> anyhow::Result<Value> {
    let mut items = objects.iter().map(as_shown).collect::<anyhow::Result<Vec<Value>>>()?;
    match (is_single, items.pop()) {
        (true, Some(item)) => Ok(item),
        (_, last) => {
            items.extend(last);
            Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
        }
    }
}

/// Who set which field is of no use to a reader.
fn as_shown(object: &DynamicObject) -> anyhow::Result<Value> {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    Ok(serde_json::to_value(object)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
            "metadata": {"name": name, "managedFields": [{"manager": "x"}]}, "spec": {"version": "1.0.0", "later": 1},
        }))
        .unwrap()
    }

    fn printed(objects: &[DynamicObject], output: Machine, is_single: bool) -> String {
        let mut stdout = Vec::new();
        let mut streams = Streams {
            stdin: &mut std::io::empty(),
            stdout: &mut stdout,
            stderr: &mut std::io::sink(),
            color_stdout: false,
            color_stderr: false,
            live_stderr: false,
        };
        print(objects, "package.windlass.dev", output, is_single, &mut streams).unwrap();
        String::from_utf8(stdout).unwrap()
    }

    #[test]
    fn names_can_be_given_to_kubectl() {
        let text = printed(&[object("a"), object("b")], Machine::Name, false);
        assert_eq!(text, "package.windlass.dev/a\npackage.windlass.dev/b\n");
    }

    #[test]
    fn objects_are_printed_whole_but_for_who_set_which_field() {
        let text = printed(&[object("a")], Machine::Json, true);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&found["kind"], &found["spec"]["later"]), (&json!("Package"), &json!(1)));
        assert_eq!(found["metadata"], json!({"name": "a"}));
        let text = printed(&[object("a")], Machine::Json, false);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&found["kind"], found["items"].as_array().map(Vec::len)), (&json!("List"), Some(1)));
        let text = printed(&[object("a")], Machine::Yaml, true);
        assert!(text.contains("kind: Package\n"), "{text}");
    }

    #[test]
    fn a_table_is_left_to_others() {
        assert_eq!(Output::Wide.machine(), None);
    }
}
