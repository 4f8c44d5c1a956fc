//! Values of a release: files and maps in their order, then what is set.

use serde_json::{Map, Value};

use super::wire::{Release, Setting};
use super::{BUILD, Helmfile};
use crate::import::set::{Assigned, assign};
use crate::import::values::{any_text, merge, parse};
use crate::import::{Imported, Lookup, Options};

/// All values of a release, as one map.
pub(super) fn values(
    imported: &mut Imported,
    options: &Options<'_>,
    helmfile: &Helmfile,
    release: &Release,
    subject: &str,
) -> Map<String, Value> {
    let mut values = Map::new();
    for entry in &release.values {
        match entry {
            Value::Object(written) => merge(&mut values, written.clone()),
            Value::String(path) => match file(options, helmfile, path) {
                Ok(read) => {
                    merge(&mut values, read);
                    let message =
                        format!("values of {path} are copied, so that what is changed there later does not count");
                    imported.warn(subject, message);
                }
                Err(Missing::May(_)) if may_be_missing(release) => {
                    imported.warn(subject, format!("values of {path} are not carried over: there is no such file"));
                }
                Err(Missing::May(why) | Missing::Never(why)) => {
                    imported.error(subject, format!("values of {path} are not carried over: {why}"));
                }
            },
            other => {
                imported.error(subject, format!("values are not carried over, since {other} is neither file nor map"))
            }
        }
    }
    for secret in &release.secrets {
        let secret = secret.as_str().unwrap_or("written in the helmfile");
        let message = format!(
            "secrets {secret} are not carried over, as they would stand readable in Git: put them into a Secret, and \
             name it in valuesFrom (Flux only)"
        );
        imported.error(subject, message);
    }
    settings(imported, release, subject, &mut values);
    if any_text(&Value::Object(values.clone()), &is_reference) {
        let message = "a value begins with `ref+`, which helmfile replaces by what a store holds: put that into a Secret, \
                       and name it in valuesFrom (Flux only)";
        imported.error(subject, message);
    }
    values
}

/// What helmfile's library `vals` replaces.
fn is_reference(text: &str) -> bool {
    ["ref+", "secretref+"].iter().any(|start| text.starts_with(start))
}

fn may_be_missing(release: &Release) -> bool {
    release.missing_file_handler.as_deref().is_some_and(|handler| handler != "Error")
}

/// Why there are no values of a file, and whether `missingFileHandler` has a say.
enum Missing {
    May(String),
    Never(String),
}

fn file(options: &Options<'_>, helmfile: &Helmfile, path: &str) -> Result<Map<String, Value>, Missing> {
    if path.contains("::") || path.contains("://") {
        return Err(Missing::Never("they come over the network: write them into the helmfile".into()));
    }
    if path.ends_with(".gotmpl") {
        return Err(Missing::Never(format!("it is a Go template: {BUILD}")));
    }
    let place = match helmfile.directory.as_str() {
        "" => path.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        directory => format!("{directory}/{path}"),
    };
    match (options.file)(&place) {
        Lookup::Found(text) => parse(&text).map_err(Missing::Never),
        Lookup::NotLooked => Err(Missing::Never("files are not looked at".into())),
        Lookup::Problem(why) => Err(Missing::May(why)),
    }
}

fn settings(imported: &mut Imported, release: &Release, subject: &str, values: &mut Map<String, Value>) {
    let guessed = release.set.iter().map(|setting| ("set", setting, true));
    let texts = release.set_string.iter().map(|setting| ("setString", setting, false));
    for (field, setting, is_guessed) in guessed.chain(texts) {
        let outcome = match assigned(setting, is_guessed) {
            Ok(Some(assigned)) => assign(values, &escaped(&setting.name), &assigned),
            // Helmfile passes nothing on to Helm.
            Ok(None) => Ok(()),
            Err(why) => Err(why),
        };
        if let Err(why) = outcome {
            let message = format!("{field} {} is not carried over: {why}: write it into values", setting.name);
            imported.error(subject, message);
        }
    }
}

fn assigned(setting: &Setting, is_guessed: bool) -> Result<Option<Assigned>, String> {
    let one = setting.value.as_ref().map(text).transpose()?.filter(|text| !text.is_empty());
    if let Some(text) = one {
        let text = escaped(&text);
        return Ok(Some(if is_guessed { Assigned::Guessed(text) } else { Assigned::Text(text) }));
    }
    if !setting.file.is_empty() {
        return Err(format!("it is the content of {}", setting.file));
    }
    let items = setting.values.iter().map(|item| text(item).map(|text| escaped(&text)));
    let items = items.collect::<Result<Vec<String>, String>>()?;
    Ok(Some(items).filter(|items| !items.is_empty()).map(|items| match is_guessed {
        true => Assigned::List(items),
        false => Assigned::TextList(items),
    }))
}

fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Null => Ok(String::new()),
        Value::Array(_) | Value::Object(_) => Err("it is no single value".to_owned()),
    }
}

/// Helmfile lets braces and commas stand for themselves.
fn escaped(text: &str) -> String {
    text.replace('{', "\\{").replace('}', "\\}").replace(',', "\\,")
}
