//! Node.js: a package of JavaScript and its types, and the C addon that it calls, on top of the C output.
//! JavaScript writes the fields of a frame into memory that it shares with C, and passes the frame by one call.

mod addon;
mod comment;
mod frames;
mod module;
mod package;
mod spelling;
mod types;

use ppt_frame_dsl::Declared;

use self::spelling::{functions, members};
use crate::c::C;
use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// Words that cannot be names in JavaScript, except those that the frame language refuses itself.
const KEYWORDS: [&str; 30] = [
    "Infinity",
    "NaN",
    "arguments",
    "await",
    "catch",
    "class",
    "debugger",
    "delete",
    "eval",
    "export",
    "extends",
    "finally",
    "function",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "super",
    "this",
    "throw",
    "try",
    "typeof",
];
const MORE_KEYWORDS: [&str; 6] = ["false", "true", "undefined", "var", "with", "yield"];
/// Properties of every object, by which an absent field would seem to be present.
const OF_OBJECTS: [&str; 7] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];
/// Types that the declarations use.
const OF_TYPES: [&str; 2] = ["ArrayBufferView", "Uint8Array"];

/// Writes `STEM.h`, `STEM.c`, `STEM_node.c`, and the files of a package.
pub(crate) struct Node;

impl Emitter for Node {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let mut outputs = C.emit(model);
        let mut file = |name: &str, text| outputs.push(GeneratedFile { name: name.into(), text });
        file(&format!("{}_node.c", model.stem), addon::emit(model));
        file("index.js", module::emit(model));
        file("index.mjs", package::modules(model));
        file("index.d.ts", types::emit(model));
        file("binding.gyp", package::binding(model));
        file("package.json", package::manifest(model));
        outputs
    }

    fn takes(&self, model: &BufferModel<'_>, declared: Declared, name: &str) -> bool {
        let keyword = KEYWORDS.contains(&name) || MORE_KEYWORDS.contains(&name);
        let hidden = name.starts_with("__") || OF_OBJECTS.contains(&name);
        match declared {
            Declared::Enum(_) | Declared::Frame(_) | Declared::Metric(_) => {
                let exported =
                    functions(model).any(|function| function == name) || members().contains(&name);
                keyword || hidden || exported || OF_TYPES.contains(&name)
            }
            Declared::Field(..) => keyword || hidden,
            Declared::Value(..) => hidden,
            Declared::Buffer => false,
        }
    }
}
