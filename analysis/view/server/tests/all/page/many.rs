//! Captures of many sources and hosts.

use ppt_capture::{
    CaptureWriter, End, EndReason, FileHeader, FramesHead, Process, Segment, Source,
};
use ppt_frame_dsl::schema::Schema;

const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":32,"frames":[{"name":"job",
    "kind":"plain","size":32,"fields":[{"name":"number","type":"u64","offset":16},
    {"name":"at","type":"ns","clock":"realtime","offset":24,"at":true}]}]}"#;
const MONO: u64 = 1_000_000_000;
const REAL: u64 = 1_700_000_000_000_000_000;

/// A capture of a host. Each process has a source, and all threads wrote the same number of frames.
pub fn capture(host: u32, sources: u16, threads: u32, frames: u32) -> Vec<u8> {
    let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
    let header = FileHeader {
        capture_id: [host as u8 + 1; 16],
        host: format!("node-{host:02}"),
        boot_id: format!("boot-{host}"),
        created_mono_ns: MONO,
        created_realtime_ns: REAL + u64::from(host) * 1_000,
        ..FileHeader::default()
    };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    for number in 0..sources {
        let nonce = u64::from(number) + 7;
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: schema.buffer.clone(),
            process: Process {
                pid: 1000 + u32::from(number),
                start_time: 5,
                exe: "/opt/work/worker".into(),
                ..Process::default()
            },
            segments: vec![Segment { nonce, rings: threads, slots: 16, stride: 32 }],
            clock: "realtime".to_owned(),
            ..Source::default()
        };
        writer.source(number, &source).unwrap();
        for ring in 0..threads {
            let after =
                |frame: u32| u64::from((u32::from(number) + ring) * 7 + frame * 997) * 1_000;
            let head = FramesHead {
                source: number,
                nonce,
                ring,
                tid: 1000 + u32::from(number) + ring,
                stride: 32,
                count: frames,
                first_seq: 1,
                drained_mono_ns: MONO + after(frames),
                t_min: REAL + after(0),
                t_max: REAL + after(frames - 1),
                ..FramesHead::default()
            };
            let words =
                |frame: u32| [u64::from(frame) + 1, 0, u64::from(frame), REAL + after(frame)];
            let payload: Vec<u8> = (0..frames).flat_map(words).flat_map(u64::to_le_bytes).collect();
            writer.frames(&head, &payload).unwrap();
        }
    }
    let end = End::new(EndReason::Stopped, REAL + MONO, 2 * MONO);
    writer.end(&end).unwrap()
}
