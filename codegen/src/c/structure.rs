//! A frame as a struct: the same for C and C++ but for the names of types.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::layout::Layout;
use ppt_frame_dsl::schema::{FieldType, Frame};

use super::array_length;
use super::comment::remark;
use crate::text::Text;

/// The members of a frame's struct, in the order of the layout.
pub(crate) fn members(
    schema: &Schema,
    frame: &Frame,
    element: impl Fn(&FieldType) -> String,
    out: &mut Text,
) {
    let layout = Layout::of(schema, frame);
    let mut members =
        vec![(0, "uint64_t ppt_seqno".to_string(), "from 1; set when written".into())];
    if schema.multi() {
        members.push((
            8,
            "uint16_t ppt_frame".into(),
            "which frame it is; set when written".into(),
        ));
    }
    for placed in &layout.placed {
        let field = &frame.fields[placed.index];
        let ty = element(&field.ty);
        let array = array_length(field).map_or(String::new(), |n| format!("[{n}]"));
        members.push((placed.offset, format!("{ty} {}{array}", field.name), remark(field)));
    }
    for (index, padding) in layout.padding.iter().enumerate() {
        let member = format!("unsigned char ppt_pad{index}[{}]", padding.bytes);
        members.push((padding.offset, member, String::new()));
    }
    members.sort_by_key(|it| it.0);
    for (_, member, remark) in &members {
        let remark = if remark.is_empty() { String::new() } else { format!(" /* {remark} */") };
        out.line(&format!("{member};{remark}"));
    }
}

/// The proof that the compiler lays `name` out as the schema says.
pub(crate) fn assertions(schema: &Schema, frame: &Frame, name: &str, out: &mut Text) {
    let layout = Layout::of(schema, frame);
    out.line(&format!("PPT1_ASSERT(sizeof({name}) == {}, \"layout of {name}\");", layout.size));
    for placed in &layout.placed {
        let field = &frame.fields[placed.index].name;
        out.line(&format!(
            "PPT1_ASSERT(__builtin_offsetof({name}, {field}) == {}, \"layout of {name}\");",
            placed.offset
        ));
    }
    out.blank();
}
