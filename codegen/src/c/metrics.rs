//! Counters and histograms in C and C++.

use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::block_macro;

use super::comment::{comment, doc};
use crate::model::BufferModel;
use crate::text::GeneratedText;

/// Declarations of the symbols that the linker must find.
pub(crate) fn symbols(model: &BufferModel<'_>, out: &mut GeneratedText) {
    out.line(&format!("void {}(unsigned cell, uint64_t value);", model.symbol("add")));
    out.line(&format!(
        "void {}(unsigned sum, unsigned bucket, uint64_t value);",
        model.symbol("observe")
    ));
}

/// The type and the name of the argument with the value.
pub(crate) fn argument(metric: &Metric) -> (&'static str, &'static str) {
    match metric.shape {
        MetricShape::Counter => ("uint64_t", "n"),
        MetricShape::UpDownCounter => ("int64_t", "n"),
        MetricShape::Exponential => ("int64_t", "ns"),
        MetricShape::Linear { .. } => ("uint32_t", "value"),
    }
}

/// The call that adds the argument while ppt is attached.
pub(crate) fn call(model: &BufferModel<'_>, metric: &Metric) -> String {
    let (first, (_, value)) = (metric.cells.start, argument(metric));
    let (add, observe) = (model.symbol("add"), model.symbol("observe"));
    match metric.shape {
        MetricShape::Counter => format!("{add}({first}, {value})"),
        MetricShape::UpDownCounter => format!("{add}({first}, ppt1_i64({value}))"),
        MetricShape::Exponential => {
            format!("{observe}({first}, {first} + ppt1_exponential({value}), ppt1_i64({value}))")
        }
        MetricShape::Linear { from, to, buckets } => {
            let range = format!("UINT64_C({from}), UINT64_C({to}), {buckets}");
            let bucket = format!("{first} + ppt1_linear({value}, {range})");
            format!("{observe}({first}, {bucket}, ppt1_u32({value}))")
        }
    }
}

/// The effect of a metric in words, for a comment.
pub(crate) fn about(metric: &Metric) -> String {
    let Metric { name, unit, .. } = metric;
    let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
    comment(&match metric.shape {
        MetricShape::Counter => format!("Adds to counter `{name}`{unit}"),
        MetricShape::UpDownCounter => format!("Adds to counter `{name}`{unit}, or takes from it"),
        MetricShape::Exponential => format!("Counts a length of time in histogram `{name}`"),
        MetricShape::Linear { .. } => format!("Counts a value in histogram `{name}`{unit}"),
    })
}

/// The function that adds, and the macro that first checks the gate.
pub(super) fn function(model: &BufferModel<'_>, metric: &Metric, out: &mut GeneratedText) {
    let (ty, value) = argument(metric);
    let function = format!("ppt_{}_{}", metric.shape.verb(), metric.name);
    let name = block_macro(metric.shape.verb(), &metric.name);
    out.open(&format!("static inline void {function}({ty} {value}) {{"));
    out.line(&format!("{};", call(model, metric)));
    out.close("}");
    doc(&metric.doc, out);
    let about = about(metric);
    out.line(&format!("/* {about}, if somebody is attached; else {value} is not evaluated. */"));
    out.line(&format!(
        "#define {name}({value}) ({}() ? {function}({value}) : (void)0)",
        model.on_function(&metric.name)
    ));
    out.blank();
}

/// The same names without effect, for programs that are compiled without ppt.
pub(super) fn disabled(metric: &Metric, out: &mut GeneratedText) {
    let name = block_macro(metric.shape.verb(), &metric.name);
    let (_, value) = argument(metric);
    out.line(&format!("#define {name}({value}) ((void)sizeof({value}))"));
}
