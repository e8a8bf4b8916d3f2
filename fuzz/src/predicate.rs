//! Expressions that select frames.

use std::sync::OnceLock;

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{ClockTable, FramesHead, Stamps, TimeNamespace};
use ppt_predicate::{
    Chunk, ExpressionError, FrameKind, MAX_BYTES, Predicate, PredicateRow, to_sql,
};

/// Two kinds of frames, with fields of every type.
const FRAMES: &str = "option time ns monotonic;
    enum What : i8 { TIMEOUT = -1, UPDATE = 0, LOGIN = 2 }
    frame job { u64 big; i8 small; f32 single; f64 real; bool yes; What what; char name[8];
        bytes raw[2]; u8 pos[2]; u32 took @unit(\"ns\"); u32 len @unit(\"B\"); duration wait;
        interval time handle; time cpu @clock(thread_cpu); time at @at; int end; }
    frame other { int small; time when @clock(tsc); }";

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| ppt_codegen::parse(FRAMES.as_bytes(), "f.frame").unwrap().schema)
}

/// Text up to the first NUL is refused with a message, or selects frames, made of the rest, as the same
/// expression for SQL does.
pub(crate) fn predicate(input: &[u8]) {
    let end = input.iter().position(|&byte| byte == 0).unwrap_or(input.len());
    let text = String::from_utf8_lossy(&input[..end]);
    let frame = input.get(end + 1..).unwrap_or_default();
    let sql = to_sql(&text);
    let found = match answers(&text, frame) {
        Ok(found) => found,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.draw("--where", true);
            return;
        }
    };
    assert_eq!(to_sql(&sql), sql);
    if sql.len() <= MAX_BYTES {
        assert_eq!(answers(&sql, frame).unwrap(), found, "{text} {sql}");
    }
}

/// What the expression says of frames of these bytes: as they are, and all 0.
fn answers(text: &str, bytes: &[u8]) -> Result<Vec<Option<bool>>, ExpressionError> {
    let schema = schema();
    let kinds = schema.frames.iter().map(|frame| FrameKind { buffer: "f", schema, frame });
    let programs = Predicate::parse(text)?.compile(&kinds.collect::<Vec<_>>())?;
    let clocks = ClockTable::default();
    let stamps = Stamps::new(&clocks, 1, TimeNamespace::SAME);
    let head = FramesHead { tid: 7, drained_mono_ns: 9, ..FramesHead::default() };
    let mut all = Vec::new();
    for offset in [None, Some(1_700_000_000_000_000_000), Some(i128::from(i64::MAX))] {
        let chunk = Chunk { stamps: &stamps, offset, head: &head, pid: 1 };
        let mut padded = bytes.to_vec();
        padded.resize(schema.stride as usize, 0);
        for bytes in [bytes, &padded, &vec![0; padded.len()], &vec![0xff; padded.len()]] {
            let row = PredicateRow { chunk: &chunk, seqno: u64::MAX, bytes };
            all.extend(programs.iter().flatten().map(|program| program.matches(&row)));
        }
    }
    Ok(all)
}
