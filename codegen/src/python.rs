//! Python: an extension module in C, on top of the C output, and a stub for type checkers.

mod methods;
mod module;
mod spelling;
mod stub;

use self::spelling::{SCOPE, function_name, metric_name};
use ppt_frame_dsl::Declared;

use crate::c::C;
use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// Words that cannot be names in Python, except those that the frame language refuses itself.
const KEYWORDS: [&str; 25] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "class", "def", "del",
    "elif", "except", "finally", "from", "global", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise",
];
const MORE_KEYWORDS: [&str; 3] = ["try", "with", "yield"];
/// Names that the module uses, in addition to the clocks.
const OF_MODULE: [&str; 3] = ["on", "prepare", "Scope"];
/// Names that the module uses if frames have hashes.
const OF_HASHES: [&str; 3] = ["hash", "hash_u64", "hash128"];
/// Types that the stub uses.
const OF_STUB: [&str; 8] =
    ["Buffer", "IntEnum", "Sequence", "SupportsFloat", "SupportsIndex", "final", "object", "str"];

/// Writes `STEM.h`, `STEM.c`, `STEM_python.c` and `BUFFER.pyi`.
pub(crate) struct Python;

impl Emitter for Python {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let mut outputs = C.emit(model);
        let name = format!("{}_python.c", model.stem);
        outputs.push(GeneratedFile { name, text: module::emit(model) });
        let name = format!("{}.pyi", model.buffer());
        outputs.push(GeneratedFile { name, text: stub::emit(model) });
        outputs
    }

    fn takes(&self, model: &BufferModel<'_>, declared: Declared, name: &str) -> bool {
        let keyword = KEYWORDS.contains(&name) || MORE_KEYWORDS.contains(&name);
        let is_frame = |name: &str| model.frames.iter().any(|frame| frame.name == name);
        let is_function = |name: &str| {
            model.frames.iter().any(|frame| {
                let mut marked = frame.forms.iter().filter(|form| form.mark.is_some());
                marked.any(|form| function_name(frame, form) == name)
            })
        };
        let of_module = || {
            OF_MODULE.contains(&name)
                || OF_STUB.contains(&name)
                || model.hashes && OF_HASHES.contains(&name)
                || model.stamps.iter().any(|stamp| stamp.name == name)
                || name.strip_suffix(SCOPE).is_some_and(is_frame)
                || is_function(name)
        };
        let is_metric = || model.metrics.iter().any(|metric| metric_name(metric) == name);
        // IntEnum reserves names between underscores, and `mro`.
        let of_enum = || name == "mro" || name.starts_with('_') && name.ends_with('_');
        keyword
            || match declared {
                Declared::Enum(_) | Declared::Frame(_) => of_module() || is_metric(),
                // The function has the same name.
                Declared::Metric(_) => false,
                Declared::Value(..) => of_enum(),
                Declared::Buffer | Declared::Field(..) => false,
            }
    }
}
