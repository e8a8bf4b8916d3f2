//! Captures that are made by hand: files of a series, cut anywhere.

use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, FramesHead, SeriesPart};

use crate::support::{Bench, head, schema, source};

/// Frames of a chunk.
pub const EACH: u64 = 500;

const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it",
    "kind":"plain","size":16,"fields":[{"name":"n","type":"u64","offset":8}]}]}"#;

/// A file of a series: its number, how many chunks it has, and whether it has its end.
pub struct SeriesFile {
    pub number: u32,
    pub chunks: u64,
    pub end: Option<EndReason>,
}

impl SeriesFile {
    /// Its bytes. The first chunk of file N is the chunk `before` of the series.
    pub fn bytes(&self, before: u64) -> Vec<u8> {
        let id = |number: u32| [[3; 15].as_slice(), &[number as u8]].concat().try_into().unwrap();
        let header = FileHeader { capture_id: short(id(self.number)), ..FileHeader::default() };
        let mut bytes = Vec::new();
        let mut writer = CaptureWriter::create(&mut bytes, &header).unwrap();
        if self.number > 1 {
            let part = SeriesPart {
                series: short(id(1)),
                previous: short(id(self.number - 1)),
                number: self.number,
                keep: 0,
                captured_before: before * EACH,
            };
            writer.series(&part).unwrap();
        }
        let schema = schema(SCHEMA);
        writer.source(0, &source(&schema)).unwrap();
        for chunk in before..before + self.chunks {
            let first = chunk * EACH + 1;
            let frames: Vec<u8> = (first..first + EACH)
                .flat_map(|n| [n, mixed(n)].map(u64::to_le_bytes))
                .flatten()
                .collect();
            let head = FramesHead {
                nonce: 7,
                tid: 77,
                stride: 16,
                count: EACH as u32,
                ..head(first, chunk + 1)
            };
            writer.frames(&head, &frames).unwrap();
        }
        let Some(reason) = self.end else { return bytes };
        let end = End {
            reason,
            message: String::new(),
            rings: Vec::new(),
            drops: Vec::new(),
            realtime_ns: 9,
            mono_ns: 9,
        };
        writer.end(&end).unwrap();
        bytes
    }
}

/// The number of a file at the front: readers name captures by the first half of their ids.
fn short(mut id: [u8; 16]) -> [u8; 16] {
    id.rotate_right(1);
    id
}

/// Numbers that do not compress.
fn mixed(n: u64) -> u64 {
    let mixed = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// A folder with a whole capture of `chunks` chunks.
pub fn whole(chunks: u64) -> Bench {
    let bench = Bench::empty();
    let file = SeriesFile { number: 1, chunks, end: Some(EndReason::Stopped) };
    bench.write("out.bin", file.bytes(0));
    bench
}

/// The command, without options of its own.
pub const EXPORT: [&str; 7] = ["export", "out.bin", "--follow", "--format", "parquet", "-o", "ex"];

/// The same for another format.
pub fn export_as(format: &str) -> [&str; 7] {
    EXPORT.map(|word| if word == "parquet" { format } else { word })
}
