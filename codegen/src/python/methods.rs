//! The functions of Python's module, with their docstrings.

use ppt_frame_dsl::metric::Metric;

use super::spelling::{function_name, metric_name, scope_name, string, zero};
use crate::c::commit::FrameOrHalf;
use crate::c::metrics::{about, argument};
use crate::model::{ABOUT_LENGTH, BufferModel, FrameModel, MarkValue, ScopeInterval};
use crate::text::GeneratedText;

/// The table of the module's methods.
pub(super) fn methods(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.lines([
        "#pragma GCC diagnostic push",
        "#pragma GCC diagnostic ignored \"-Woverlength-strings\"",
    ]);
    out.open("static PyMethodDef pptpy_methods[] = {");
    model.frames.iter().for_each(|frame| frame_methods(frame, out));
    model.metrics.iter().for_each(|metric| metric_method(metric, out));
    buffer_methods(model, out);
    out.line("{0, 0, 0, 0},");
    out.close("};");
    out.line("#pragma GCC diagnostic pop");
    out.blank();
}

fn frame_methods(frame: &FrameModel<'_>, out: &mut GeneratedText) {
    let fast = "METH_FASTCALL | METH_KEYWORDS";
    let frame_name = frame.name;
    for form in &frame.forms {
        let function = function_name(frame, form);
        let (verb, written) = (form.verb, FrameOrHalf { frame, half: form.half });
        out.line(&format!("{{\"{function}\", PPT_PY_FAST(pptpy_{verb}_{frame_name}), {fast},"));
        let (first, effect) = match form.mark.as_ref().map(|mark| (mark.field, &mark.value)) {
            None => (String::new(), "Writes a frame".into()),
            Some((_, MarkValue::Named(value, _))) => {
                (String::new(), format!("Writes a frame as `{value}`"))
            }
            Some((field, MarkValue::Argument(_))) => {
                (format!("{field}, "), format!("Writes a frame as that {field}"))
            }
        };
        let about = format!("{effect}, if somebody is attached. Fields that are not given are 0.");
        out.line(&format!(" {}}},", docstring(&function, &first, written, &about)));
    }
    if let Some(ScopeInterval { start, end }) = frame.interval() {
        let (scope, written) = (scope_name(frame), FrameOrHalf { frame, half: None });
        out.line(&format!("{{\"{scope}\", PPT_PY_FAST(pptpy_scope_of_{frame_name}), {fast},"));
        let about = format!(
            "A context manager: stamps {} at its start, {} at its end, and writes the frame.",
            start.name, end.name
        );
        out.line(&format!(" {}}},", docstring(&scope, "", written, &about)));
    }
}

fn metric_method(metric: &Metric, out: &mut GeneratedText) {
    let (function, (_, value)) = (metric_name(metric), argument(metric));
    let about = about(metric) + ", if somebody is attached.";
    let about = match metric.doc.trim() {
        "" => about,
        doc => format!("{about}\n\n{doc}"),
    };
    let doc = string(&format!("{function}($module, {value}, /)\n--\n\n{about}"));
    let verb = metric.shape.verb();
    out.line(&format!("{{\"{function}\", pptpy_{verb}_{}, METH_O,", metric.name));
    out.line(&format!(" {doc}}},"));
}

fn buffer_methods(model: &BufferModel<'_>, out: &mut GeneratedText) {
    let on = string("on($module, /)\n--\n\nWhether somebody is attached.");
    out.line(&format!("{{\"on\", pptpy_on, METH_NOARGS, {on}}},"));
    let prepare = "prepare($module, /)\n--\n\nLets an idle thread pay for its first frame.";
    out.line(&format!("{{\"prepare\", pptpy_prepare, METH_NOARGS, {}}},", string(prepare)));
    if model.hashes {
        for (name, data, about) in [
            ("hash", "data", "The hash of bytes, for fields of type `hash`: XXH3, 64 bits."),
            ("hash_u64", "number", "The hash of the 8 bytes of a number."),
            ("hash128", "data", "The same for fields of type `hash128`, as 16 bytes."),
        ] {
            let doc = string(&format!("{name}($module, {data}, /)\n--\n\n{about}"));
            out.line(&format!("{{\"{name}\", pptpy_{name}, METH_O, {doc}}},"));
        }
    }
    for stamp in &model.stamps {
        let unit = if stamp.clock.is_some() { " in nanoseconds" } else { "" };
        let meaning = stamp.about() + unit;
        let about =
            format!("{}($module, /)\n--\n\n{meaning}; 0 when nobody is attached.", stamp.name);
        out.line(&format!("{{\"{0}\", pptpy_{0}, METH_NOARGS, {1}}},", stamp.name, string(&about)));
        if let Some(length) = stamp.length() {
            let about = string(&format!("{length}($module, start, end, /)\n--\n\n{ABOUT_LENGTH}"));
            out.line(&format!("{{\"{length}\", pptpy_{length}, METH_VARARGS, {about}}},"));
        }
    }
}

/// A docstring whose first line makes inspect.signature() work. `first` has the parameters before the fields.
fn docstring(
    function: &str,
    first: &str,
    FrameOrHalf { frame, half }: FrameOrHalf<'_, '_>,
    about: &str,
) -> String {
    let fields = frame.given_in(half).map(|field| format!(", {}={}", field.name, zero(field)));
    let doc = format!(
        "{function}($module, {first}/{})\n--\n\n{}",
        fields.collect::<String>(),
        if frame.doc.is_empty() {
            about.into()
        } else {
            format!("{about}\n\n{}", frame.doc.trim())
        }
    );
    string(&doc)
}
