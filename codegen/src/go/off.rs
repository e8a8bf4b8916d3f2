//! `frames_off.go`: functions without effect, for builds that cannot call C.

use super::comment::banner;
use super::native::{added, function};
use super::package::tabs;
use super::spelling::{arguments, now, of_form};
use crate::model::BufferModel;
use crate::text::GeneratedText;

const HASHES: &str = include_str!("../../runtime/go/off_hash.go");

pub(super) fn emit(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "Go without C", &mut out);
    out.line("//go:build !(cgo && linux && (amd64 || arm64))");
    out.blank();
    out.line(&format!("package {}", model.buffer()));
    out.blank();
    if model.hashes {
        out.line("import \"unsafe\"");
        out.blank();
    }
    out.line("// Nobody is ever attached.");
    out.line("var ppt_page = new([64]uint64)");
    out.blank();
    let mut nothing = |head: &str| out.lines([&*format!("func {head} {{}}"), ""]);
    nothing("ppt_prepare()");
    nothing("ppt_allow_attach()");
    for frame in &model.frames {
        for form in &frame.forms {
            let arguments = arguments(frame, form, "*");
            nothing(&format!("ppt_{}({arguments})", of_form(frame, form)));
        }
    }
    for metric in &model.metrics {
        let (verb, (_, ty)) = (metric.shape.verb(), added(metric));
        nothing(&format!("ppt_{verb}_{}(value {ty})", metric.name));
    }
    for stamp in &model.stamps {
        function(&format!("{}() int64", now(stamp)), &["return 0".into()], &mut out);
        if let Some(length) = stamp.length() {
            let head = format!("ppt_{length}(start, end int64) int64");
            function(&head, &["return -1".into()], &mut out);
        }
    }
    if model.hashes {
        out.block(HASHES);
    }
    tabs(&out.finish())
}
