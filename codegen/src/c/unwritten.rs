//! Errors for programs that write a frame which is begun and ended, or which takes steps: such a program does
//! not compile, and the compiler names the correct form.

use ppt_frame_dsl::names::block_macro;

use super::types::frame_type;
use crate::model::{BufferModel, FrameModel, MarkValue};
use crate::text::GeneratedText;

/// The verb of frames that are written.
const WRITE: &str = "write";

/// The message, if a frame is not written; `name_of` returns the name of a form.
pub(crate) fn reason(frame: &FrameModel<'_>, name_of: impl Fn(&str) -> String) -> Option<String> {
    if frame.forms.iter().any(|form| form.verb == WRITE) {
        return None;
    }
    let has_steps = frame.forms.iter().any(|form| {
        form.mark.as_ref().is_some_and(|mark| matches!(mark.value, MarkValue::Argument(_)))
    });
    let mark = if has_steps { "chain" } else { "span" };
    let names: Vec<String> = frame.forms.iter().map(|form| name_of(form.verb)).collect();
    Some(format!("ppt: {} is a {mark}: use {}", frame.name, names.join(" and ")))
}

/// The macros of both forms in C, with and without ppt.
pub(super) fn macros(model: &BufferModel<'_>, out: &mut GeneratedText) {
    for frame in &model.frames {
        let ty = frame_type(frame);
        if let Some(why) = reason(frame, |verb| block_macro(verb, frame.name)) {
            out.line(&format!(
                "#define {}(f) PPT1_ASSERT(0, \"{why}\"); \\",
                block_macro(WRITE, frame.name)
            ));
            out.line(&format!("    for ({ty} f = PPT1_ZERO({ty}); (void)f, 0;)"));
            let function = |verb: &str| format!("ppt_{verb}_{}_frame", frame.name);
            let why = reason(frame, function).unwrap_or_default();
            out.line(&format!("#define {}() PPT1_ASSERT(0, \"{why}\")", function(WRITE)));
            out.blank();
        }
    }
}
