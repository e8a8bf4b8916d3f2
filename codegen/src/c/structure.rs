//! A frame as a struct: the same for C and C++ except the names of types.

use ppt_frame_dsl::role::SpanHalf;

use super::comment::remark;
use crate::model::{FieldModel, FrameModel, MemberKind};
use crate::text::GeneratedText;

/// The members of a frame's struct.
pub(crate) fn members(
    frame: &FrameModel<'_>,
    half: Option<SpanHalf>,
    element: impl Fn(&FieldModel<'_>) -> String,
    out: &mut GeneratedText,
) {
    for member in &frame.members {
        let name = &frame.member_name(member, half);
        let (member, remark) = match member.kind {
            MemberKind::Sequence => (format!("uint64_t {name}"), "from 1; set when written".into()),
            MemberKind::FrameId => {
                (format!("uint16_t {name}"), "which frame it is; set when written".into())
            }
            MemberKind::Field(index) => {
                let field = &frame.fields[index];
                let array = field.length().map_or(String::new(), |n| format!("[{n}]"));
                (format!("{} {name}{array}", element(field)), remark(field))
            }
            MemberKind::Padding(bytes) => (format!("unsigned char {name}[{bytes}]"), String::new()),
        };
        let remark = if remark.is_empty() { remark } else { format!(" /* {remark} */") };
        out.line(&format!("{member};{remark}"));
    }
}

/// Assertions that the compiler's layout of `name` is that of the schema.
pub(crate) fn assertions(
    frame: &FrameModel<'_>,
    half: Option<SpanHalf>,
    name: &str,
    out: &mut GeneratedText,
) {
    out.line(&format!("PPT1_ASSERT(sizeof({name}) == {}, \"layout of {name}\");", frame.size));
    for member in frame.members.iter().filter(|member| matches!(member.kind, MemberKind::Field(_)))
    {
        out.line(&format!(
            "PPT1_ASSERT(__builtin_offsetof({name}, {}) == {}, \"layout of {name}\");",
            frame.member_name(member, half),
            member.offset
        ));
    }
    out.blank();
}
