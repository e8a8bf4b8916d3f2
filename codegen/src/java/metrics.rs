//! The classes of counters and histograms.

use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::upper_camel;

use super::comment::{banner, javadoc, text};
use super::native::of_metric;
use crate::c::metrics::{about, argument};
use crate::model::BufferModel;
use crate::text::GeneratedText;

pub(super) fn emit(model: &BufferModel<'_>, metric: &Metric) -> String {
    let mut out = GeneratedText::new();
    let name = upper_camel(&metric.name);
    let kind = metric.shape.kind();
    banner(model, &format!("A {kind}"), &mut out);
    let summary = format!("The {kind} {{@code {}}}.", metric.name);
    javadoc(&summary, &metric.doc, &[], &mut out);
    out.open(&format!("public final class {name} {{"));
    out.open(&format!("private {name}() {{"));
    out.close("}");
    out.blank();
    let bit = model.bit_of(metric);
    javadoc("{@return whether somebody is attached who wants it}", "", &[], &mut out);
    out.open("public static boolean on() {");
    out.line(&format!("return PptRuntime.isWanted({bit});"));
    out.close("}");
    out.blank();
    let (verb, (_, value)) = (metric.shape.verb(), argument(metric));
    let unit = match metric.shape {
        MetricShape::Counter => "how much; unsigned",
        MetricShape::UpDownCounter => "how much; negative to take from it",
        MetricShape::Exponential => "nanoseconds",
        MetricShape::Linear { .. } => "from 0 to 4294967295",
    };
    let unit = match metric.unit.as_str() {
        "" => unit.to_owned(),
        unit_of => format!("{unit}; in {}", text(unit_of)),
    };
    let tag = format!("@param {value} {unit}");
    javadoc(&format!("{}, if somebody is attached.", text(&about(metric))), "", &[tag], &mut out);
    out.open(&format!("public static void {verb}(long {value}) {{"));
    out.line(&format!("if (PptRuntime.isWanted({bit}))"));
    let given = match metric.shape {
        MetricShape::Linear { .. } => {
            let place = format!("\"{} ({})\"", metric.name, metric.shape.ty());
            format!("PptRuntime.fits({value}, 0, 4294967295L, {place})")
        }
        _ => value.to_owned(),
    };
    out.line(&format!("    PptRuntime.{}({given});", of_metric(metric)));
    out.close("}");
    out.close("}");
    out.finish()
}
