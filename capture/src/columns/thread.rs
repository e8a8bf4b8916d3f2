//! The thread that a frame is about.

use ppt_frame_dsl::schema::Schema;

use super::frame_id;

/// Reads which thread the frames of a buffer are about, where a field says so (`@thread`).
#[derive(Debug, Clone)]
pub struct FrameThreads {
    multi: bool,
    /// By frame id: where the number is.
    offsets: Vec<Option<usize>>,
}

impl FrameThreads {
    /// Of a checked schema; None if no kind of frames has such a field.
    pub fn from_schema(schema: &Schema) -> Option<FrameThreads> {
        let offset = |frame: &ppt_frame_dsl::schema::Frame| {
            frame.thread().map(|field| field.offset as usize)
        };
        let offsets: Vec<_> = schema.frames.iter().map(offset).collect();
        let has_any = offsets.iter().any(Option::is_some);
        has_any.then_some(FrameThreads { multi: schema.multi(), offsets })
    }

    /// The thread that a frame is about; None if it is the one that wrote it. A number that no thread can have counts
    /// as none.
    #[inline]
    pub fn of(&self, frame: &[u8]) -> Option<i32> {
        let id = if self.multi { usize::from(frame_id(frame)) } else { 0 };
        let offset = (*self.offsets.get(id)?)?;
        let bytes = frame.get(offset..offset + 4)?;
        let number = i32::from_le_bytes(bytes.try_into().ok()?);
        (number > 0).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_thread_has_are_none() {
        let text = r#"{"v":1,"buffer":"b","slots":16,"stride":24,"frames":[{"name":"f","kind":"plain","size":24,"fields":[{"name":"a","type":"u32","offset":12,"thread":true},{"name":"b","type":"u64","offset":16}]},{"name":"g","kind":"plain","size":16,"fields":[{"name":"a","type":"u32","offset":12}]}]}"#;
        let threads = FrameThreads::from_schema(&Schema::from_json(text.as_bytes()).unwrap());
        let threads = threads.unwrap();
        let frame = |id: u16, number: u32| {
            let mut bytes = [0; 24];
            bytes[8..10].copy_from_slice(&id.to_le_bytes());
            bytes[12..16].copy_from_slice(&number.to_le_bytes());
            bytes
        };
        assert_eq!(threads.of(&frame(0, 7)), Some(7));
        assert_eq!(threads.of(&frame(0, i32::MAX as u32)), Some(i32::MAX));
        for (id, number) in [(0, 0), (0, 1 << 31), (0, u32::MAX), (1, 7), (2, 7), (u16::MAX, 7)] {
            assert_eq!(threads.of(&frame(id, number)), None, "{id} {number}");
        }
        assert_eq!(threads.of(&frame(0, 7)[..14]), None, "a frame that is cut off");
        // Another schema.
        for other in [
            text.replacen(r#""thread":true"#, r#""thread":1"#, 1),
            text.replacen(r#""type":"u32""#, r#""type":"f32""#, 1),
            text.replacen(
                r#""type":"u64","offset":16"#,
                r#""type":"u32","offset":16,"thread":true"#,
                1,
            ),
        ] {
            let schema = Schema::from_json(other.as_bytes()).unwrap();
            assert!(FrameThreads::from_schema(&schema).is_none(), "{other}");
        }
    }
}
