//! Names, offsets and types that the module, its types and the addon share.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Int;

use crate::model::{
    BufferModel, FieldModel, FormMark, FrameModel, MarkValue, MemberKind, WriteForm,
};

/// The number of bytes before the bits of stamped fields.
const STAMPED_AT: u32 = 24;

/// `ns_between_tsc` → `nsBetweenTsc`.
pub(super) fn lower_camel(name: &str) -> String {
    let camel = upper_camel(name);
    camel[..1].to_ascii_lowercase() + &camel[1..]
}

/// The text of a literal in single quotes, in JavaScript and in Python.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// The exports of every module.
pub(super) fn members() -> [&'static str; 6] {
    ["NOW", "allowAttach", "failure", "on", "prepare", "then"]
}

/// The further exports of modules with clocks and hashes.
pub(super) fn functions(model: &BufferModel<'_>) -> impl Iterator<Item = String> {
    let stamps = model.stamps.iter().flat_map(|stamp| {
        let names = [Some(stamp.name.clone()), stamp.length()];
        names.into_iter().flatten().map(|name| lower_camel(&name))
    });
    let hashes = ["hash", "hashU64", "hash128"].into_iter().filter(|_| model.hashes);
    stamps.chain(hashes.map(String::from))
}

/// The number of words for the bits of stamped fields: enough for every frame.
fn stamped_words(model: &BufferModel<'_>) -> u32 {
    let stamped =
        |frame: &FrameModel<'_>| frame.given().filter(|model| model.stamp.is_some()).count();
    let most = model.frames.iter().map(stamped).max().unwrap_or(0);
    (most as u32).div_ceil(32)
}

/// The offset of a frame in the area that JavaScript and C share.
pub(super) fn frame_at(model: &BufferModel<'_>) -> u32 {
    (STAMPED_AT + stamped_words(model) * 4).next_multiple_of(8)
}

/// The size of that area in bytes.
pub(super) fn area_bytes(model: &BufferModel<'_>) -> u32 {
    let largest = model.frames.iter().map(|frame| frame.size).max().unwrap_or(0);
    frame_at(model) + largest.next_multiple_of(8)
}

/// The bit of a field that can be stamped, among those of its frame.
pub(super) fn stamp_bit(frame: &FrameModel<'_>, field: &FieldModel<'_>) -> Option<u32> {
    field.stamp?;
    let mut stamped = frame.given().filter(|model| model.stamp.is_some());
    stamped.position(|model| model.name == field.name).map(|bit| bit as u32)
}

/// The offset of a field in the area.
pub(super) fn field_at(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    field: &FieldModel<'_>,
) -> u32 {
    let is_field = |kind: MemberKind| match kind {
        MemberKind::Field(index) => frame.fields[index].name == field.name,
        _ => false,
    };
    let member = frame.members.iter().find(|member| is_field(member.kind));
    frame_at(model) + member.expect("every field is a member").offset
}

/// The storage of a value in the area.
pub(super) struct AreaWrite {
    /// The suffix of the function `ppt_put_…` of the fixed part.
    pub suffix: &'static str,
    /// The size in bytes of an element of the array that it indexes.
    pub unit: u32,
}

/// The storage of an element of a field.
pub(super) fn put(stored: Stored<'_>) -> AreaWrite {
    let (suffix, unit) = match stored {
        Stored::Int(int) => of_int(int),
        Stored::Enum(declared) => of_int(declared.repr),
        Stored::F32 => ("f32", 4),
        Stored::F64 => ("f64", 8),
        Stored::Bool => ("bool", 1),
        Stored::Timeval => ("timeval", 4),
        Stored::Timespec => ("timespec", 4),
        Stored::Text { .. } => ("text", 1),
        Stored::Bytes { .. } => ("bytes", 1),
    };
    AreaWrite { suffix, unit }
}

fn of_int(int: Int) -> (&'static str, u32) {
    (int.word(), int.size().min(4))
}

/// The range of an integer of at most 32 bits.
pub(super) fn range(int: Int) -> Option<(i64, i64)> {
    let bits = int.size() * 8;
    let signed = int.word().starts_with('i');
    match (bits, signed) {
        (64, _) => None,
        (_, true) => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        (_, false) => Some((0, (1 << bits) - 1)),
    }
}

/// The name of a field in messages: `'request.who (i32)'`.
pub(super) fn place(frame: &FrameModel<'_>, field: &FieldModel<'_>) -> String {
    let array = field.array.map_or(String::new(), |count| format!("[{count}]"));
    format!("'{}.{} ({}{array})'", frame.name, field.name, field.type_word())
}

/// The addon's function that writes a frame by one form.
pub(super) fn of_form(frame: &FrameModel<'_>, form: &WriteForm<'_>) -> String {
    format!("{}_{}", form.verb, frame.name)
}

/// The name of a frame, or of the half of a span with fields of its own, in names of functions.
pub(super) fn half_name(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> String {
    // No name of a frame has two underscores.
    half.map_or_else(|| frame.name.into(), |half| format!("{}__{}", frame.name, half.word()))
}

/// The mark that the program chooses.
pub(super) fn chosen<'m, 'a>(form: &'m WriteForm<'a>) -> Option<&'m FormMark<'a>> {
    form.mark.as_ref().filter(|mark| matches!(mark.value, MarkValue::Argument(_)))
}

/// FNV-1a of everything on which JavaScript and the addon must agree.
pub(super) fn made(model: &BufferModel<'_>) -> String {
    let mut text = format!("{} {}", model.symbol(""), area_bytes(model));
    for frame in &model.frames {
        frame.forms.iter().for_each(|form| text += &format!(" {}", of_form(frame, form)));
    }
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("made_{hash:016x}")
}
