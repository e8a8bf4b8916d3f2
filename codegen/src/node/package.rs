//! The other files of the package: the module for `import`, the recipe of node-gyp, and the manifest.

use super::comment::banner;
use super::spelling::{escaped, functions};
use crate::c::comment::comment;
use crate::model::BufferModel;
use crate::text::GeneratedText;

/// `index.mjs`: every export by its name.
pub(super) fn modules(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Node's module, for import,", "//", &mut out);
    out.line("import ppt_module from './index.js';");
    out.blank();
    for name in exports(model) {
        out.line(&format!("export const {name} = ppt_module.{name};"));
    }
    out.finish()
}

/// The names of all exports.
pub(super) fn exports(model: &BufferModel<'_>) -> Vec<String> {
    let fixed = ["NOW", "on", "failure", "prepare", "allowAttach"].map(String::from);
    let enums = model.schema.enums.iter().map(|declared| declared.name.clone());
    let frames = model.frames.iter().map(|frame| frame.name.to_owned());
    let metrics = model.metrics.iter().map(|metric| metric.name.clone());
    let functions = functions(model).collect::<Vec<_>>();
    fixed.into_iter().chain(functions).chain(enums).chain(frames).chain(metrics).collect()
}

/// `binding.gyp`.
pub(super) fn binding(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Node's recipe", "#", &mut out);
    let stem = escaped(model.stem);
    out.open("{");
    out.open("'targets': [{");
    out.line(&format!("'target_name': '{stem}_node',"));
    out.line(&format!("'sources': ['{stem}.c', '{stem}_node.c'],"));
    out.line("'cflags_c': ['-std=gnu11', '-O2'],");
    out.close("}],");
    out.close("}");
    out.finish()
}

/// `package.json`: a package of one's own, by its path or in `dependencies`.
pub(super) fn manifest(model: &BufferModel<'_>) -> String {
    let [first, _] = model.banner("Node's package");
    let first = comment(&first).replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = GeneratedText::new();
    out.open(&format!("{{ \"//\": \"{first}\","));
    out.line(&format!("\"name\": \"{}\",", model.buffer().to_ascii_lowercase()));
    out.line("\"version\": \"1.0.0\",");
    out.line("\"private\": true,");
    out.line("\"main\": \"index.js\",");
    out.line("\"types\": \"index.d.ts\",");
    out.open("\"exports\": {");
    out.open("\".\": {");
    out.line("\"types\": \"./index.d.ts\",");
    out.line("\"import\": \"./index.mjs\",");
    out.line("\"require\": \"./index.js\"");
    out.close("}");
    out.close("}");
    out.close("}");
    out.finish()
}
