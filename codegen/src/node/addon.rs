//! `STEM_node.c`: the functions that JavaScript calls. Each writes the frame in the shared area by C's writer.

use ppt_frame_dsl::metric::Metric;

use super::spelling::{area_bytes, chosen, frame_at, made, of_form, stamp_bit};
use crate::c::comment::banner;
use crate::c::commit::{FrameOrHalf, call_close};
use crate::c::metrics::argument;
use crate::c::types::{half_type, int_type};
use crate::model::{BufferModel, FrameModel, MarkValue, Stamp, WriteForm};
use crate::text::GeneratedText;

const FIXED: &str = include_str!("../../runtime/node/node.c");
const HASHES: &str = include_str!("../../runtime/node/hash.c");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    out.line(&banner(model, "Node's addon"));
    out.lines(["#ifndef _GNU_SOURCE", "#define _GNU_SOURCE 1", "#endif"]);
    // The oldest version with all functions that are called: Node 10.4 and later.
    out.lines(["#ifndef NAPI_VERSION", "#define NAPI_VERSION 3", "#endif"]);
    out.lines(["#include <dlfcn.h>", "#include <node_api.h>"]);
    out.line(&format!("#include \"{}.h\"", model.stem));
    out.blank();
    out.line("#if PPT1_ENABLED");
    out.block(FIXED);
    out.blank();
    let buffer = model.buffer();
    let mut names = Vec::new();
    let mut define = |name: &str, area: bool, body: &[String]| {
        function(name, area, body, &mut out);
        names.push(name.to_owned());
    };
    define("prepare", false, &[format!("ppt_{buffer}_prepare();")]);
    define("allow_attach", false, &["ppt_allow_attach();".into()]);
    for stamp in &model.stamps {
        define(&stamp.name, true, &now(model, stamp));
        if let Some(length) = stamp.length() {
            let stamps = "pptnode_word(area, 0), pptnode_word(area, 8)";
            let result = format!("int64_t const ns = ppt_{buffer}_{length}({stamps});");
            define(&length, true, &[result, "memcpy(area, &ns, sizeof ns);".into()]);
        }
    }
    if model.frames.iter().any(|frame| frame.own_stamp().is_some()) {
        let ticks = format!("uint64_t const at = {}();", model.symbol("ticks"));
        define("ticks", true, &[ticks, "memcpy(area, &at, sizeof at);".into()]);
    }
    for frame in &model.frames {
        for form in &frame.forms {
            define(&of_form(frame, form), true, &write(model, frame, form));
        }
    }
    for metric in &model.metrics {
        let name = format!("{}_{}", metric.shape.verb(), metric.name);
        define(&name, true, &[add(metric)]);
    }
    if model.hashes {
        out.block(HASHES);
        out.blank();
        names.extend(["hash", "hash_u64", "hash128"].map(String::from));
    }
    table(&names, &mut out);
    out.blank();
    start(model, names.len(), &mut out);
    out.finish()
}

fn function(name: &str, area: bool, body: &[String], out: &mut GeneratedText) {
    let head =
        format!("static napi_value pptnode_{name}(napi_env env, napi_callback_info info) {{");
    out.open(&head);
    if area {
        out.line("char *area = pptnode_area(env, info);");
    } else {
        out.lines(["(void)env;", "(void)info;"]);
    }
    out.lines(body.iter().map(String::as_str));
    out.line("return 0;");
    out.close("}");
    out.blank();
}

fn now(model: &BufferModel<'_>, stamp: &Stamp<'_>) -> Vec<String> {
    let ty = crate::c::types::element_type(stamp.stored);
    let now = format!("ppt_{}_{}()", model.buffer(), stamp.name);
    vec![format!("{ty} const now = {now};"), "memcpy(area, &now, sizeof now);".into()]
}

/// The body of the function that writes a frame.
fn write(model: &BufferModel<'_>, frame: &FrameModel<'_>, form: &WriteForm<'_>) -> Vec<String> {
    let half = form.half;
    let ty = half_type(frame, half);
    let mut body = Vec::new();
    if frame.own_stamp().is_some() {
        body.push("uint64_t at = pptnode_word(area, 0);".into());
        body.push("if (at == 0)".into());
        body.push(format!("    at = {}();", model.symbol("ticks")));
    }
    body.push(format!("{ty} *f = ({ty} *)(void *)(area + {});", frame_at(model)));
    for field in frame.given_in(half) {
        if let Some(bit) = stamp_bit(frame, field) {
            let now = format!("ppt_{}_{}()", model.buffer(), model.stamp_of(field).name);
            body.push(format!("if (pptnode_stamps(area, {bit}))"));
            body.push(format!("    f->{} = {now};", field.name));
        }
    }
    let mark = form.mark.as_ref().map(|mark| match &mark.value {
        MarkValue::Named(_, enumerator) => enumerator.clone(),
        MarkValue::Argument(_) => {
            format!("({})pptnode_word(area, 16)", int_type(mark.enum_type.repr))
        }
    });
    debug_assert!(mark.is_some() || chosen(form).is_none());
    let close = call_close(model, FrameOrHalf { frame, half }, "f", mark.as_deref(), "at");
    body.push(format!("{close};"));
    body
}

/// The call that adds.
fn add(metric: &Metric) -> String {
    let ty = argument(metric).0;
    format!("ppt_{}_{}(({ty})pptnode_word(area, 0));", metric.shape.verb(), metric.name)
}

fn table(names: &[String], out: &mut GeneratedText) {
    out.open("static const pptnode_function pptnode_functions[] = {");
    for name in names {
        out.line(&format!("{{\"{name}\", pptnode_{name}}},"));
    }
    out.close("};");
}

fn start(model: &BufferModel<'_>, count: usize, out: &mut GeneratedText) {
    let head = "static napi_value pptnode_init(napi_env env, napi_value exports) {";
    out.open(head);
    let (control, bytes) = (model.symbol("control"), area_bytes(model));
    out.line(&format!("return pptnode_start(env, exports, &{control}, {bytes},"));
    out.line(&format!("                     pptnode_functions, {count});"));
    out.close("}");
    out.blank();
    out.line("#else /* nothing is compiled in */");
    out.open(head);
    out.lines(["(void)env;", "return exports;"]);
    out.close("}");
    out.blank();
    out.line("#endif");
    out.blank();
    out.line(
        "/* Every environment has its own exports: the main thread's, and that of each worker. */",
    );
    out.line("#ifdef NODE_API_MODULE_GET_API_VERSION");
    out.line("NAPI_MODULE_EXPORT int32_t NODE_API_MODULE_GET_API_VERSION(void);");
    out.line("#endif");
    out.open("NAPI_MODULE_INIT() {");
    out.line("napi_value made;");
    out.line("if (napi_get_boolean(env, 1, &made) != napi_ok ||");
    let set = format!("napi_set_named_property(env, exports, \"{}\", made)", made(model));
    out.line(&format!("    {set} != napi_ok)"));
    out.line("    return 0;");
    out.line("return pptnode_init(env, exports);");
    out.close("}");
}
