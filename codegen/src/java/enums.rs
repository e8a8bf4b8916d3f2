//! The class of an enum.

use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::schema::Enum;

use super::comment::{banner, javadoc};
use crate::model::BufferModel;
use crate::text::GeneratedText;

pub(super) fn emit(model: &BufferModel<'_>, declared: &Enum) -> String {
    let mut out = GeneratedText::new();
    let name = upper_camel(&declared.name);
    banner(model, "An enum", &mut out);
    javadoc(
        "An enum of the frame file. A field is 0 where it is null.",
        &declared.doc,
        &[],
        &mut out,
    );
    out.open(&format!("public enum {name} implements PptRuntime.Numbered {{"));
    let (last, most) = declared.values.split_last().expect("an enum has a value");
    let mut constant = |(name, value): &(String, i128), end: &str| {
        out.line(&format!("/** {value}. */"));
        out.line(&format!("{name}({}){end}", literal(*value)));
    };
    most.iter().for_each(|value| constant(value, ","));
    constant(last, ";");
    out.blank();
    out.line("private final long ppt_number;");
    out.blank();
    out.open(&format!("{name}(long number) {{"));
    out.line("ppt_number = number;");
    out.close("}");
    out.blank();
    javadoc("{@return the number in frames}", "", &[], &mut out);
    out.line("@java.lang.Override");
    out.open("public long number() {");
    out.line("return ppt_number;");
    out.close("}");
    out.blank();
    let about = "{@return the first value with this number; null if there is none}";
    javadoc(about, "", &["@param number in frames".into()], &mut out);
    out.open(&format!("public static {name} of(long number) {{"));
    out.open(&format!("for ({name} value : values())"));
    out.line("if (value.ppt_number == number)");
    out.line("    return value;");
    out.close("return null;");
    out.close("}");
    out.close("}");
    out.finish()
}

/// A number as a Java `long`: a u64 keeps its bits.
fn literal(value: i128) -> String {
    match i32::try_from(value) {
        Ok(value) => format!("{value}"),
        Err(_) => format!("{}L", value as i64),
    }
}
