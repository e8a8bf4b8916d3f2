//! What the page's script draws (`assets/page.js`): threads, their activity in each bucket of time, and single frames
//! if the page contains them.

use serde_json::{Value, json};

use crate::bytes;

/// A thread, or the spans of one kind that began in a process.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    pub host: String,
    pub pid: String,
    /// Empty for spans, which may end in another thread.
    pub tid: String,
    /// Last name of the thread, or empty.
    pub name: String,
    /// Kind of frames of the spans; None: the lane is a thread.
    pub spans: Option<String>,
    /// Number of frames that the thread wrote, or of spans.
    pub frames: u64,
    /// Total length of its outermost slices, in ns, as accurate as buckets are.
    pub busy: f64,
    pub buckets: Vec<Bucket>,
    pub ticks: Vec<u32>,
    /// For each bucket, the state of the kernel that takes most of it, from 1 on; 0: none.
    pub states: Vec<u8>,
}

/// Activity of a thread in one bucket of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bucket {
    /// Number of slices that began in it.
    pub count: u32,
    /// Length of the longest of them, in ns.
    pub longest: f32,
    /// The name that takes most of it, from 1 on; 0: none.
    pub name: u8,
    /// Covered fraction, in 255ths.
    pub fill: u8,
}

/// The timeline.
#[derive(Debug, Default)]
pub struct Timeline {
    pub lanes: Vec<Lane>,
    /// Number of threads that are not drawn.
    pub hidden_threads: usize,
    /// Names of intervals, in the order of their colours, then those of spans and chains.
    pub names: Vec<String>,
    /// Number of names that are intervals.
    pub intervals: usize,
    pub origin: i64,
    pub length: i64,
    pub width: i64,
    pub gaps: Vec<TimelineGap>,
    /// Marks: ns since the timeline begins, and text.
    pub marks: Vec<(i64, String)>,
    pub frames: Value,
    /// Whether every frame is on the page.
    pub has_all_frames: bool,
}

/// A run of missing frames.
#[derive(Debug)]
pub struct TimelineGap {
    /// The lane of its thread, if it is drawn.
    pub lane: Option<usize>,
    /// Beginning and end, ns since the timeline begins.
    pub from: i64,
    pub to: i64,
    /// Number of missing frames.
    pub count: u64,
    pub cause: String,
}

impl TimelineGap {
    fn json(&self) -> Value {
        json!([self.lane, self.from, self.to, self.count, self.cause])
    }
}

impl Lane {
    /// The number and name of the thread, or the kind of the spans.
    pub fn label(&self) -> String {
        match (&self.spans, &*self.name) {
            (Some(spans), _) => format!("spans of {spans}"),
            (None, "") => self.tid.clone(),
            (None, name) => format!("{} ({name})", self.tid),
        }
    }
}

impl Timeline {
    /// The lane of a thread.
    pub fn lane(&self, host: &str, pid: &str, tid: &str) -> Option<usize> {
        self.lanes.iter().position(|lane| {
            lane.spans.is_none() && (&*lane.host, &*lane.pid, &*lane.tid) == (host, pid, tid)
        })
    }

    /// Whether a name is on the timeline: chains are not, and spans only if they have lanes.
    pub fn is_drawn(&self, name: usize) -> bool {
        let is_its = |bucket: &Bucket| usize::from(bucket.name) == name + 1;
        name < self.intervals || self.lanes.iter().any(|lane| lane.buckets.iter().any(is_its))
    }

    /// ns since the timeline begins, clamped to its length.
    pub fn place(&self, ns: i64) -> i64 {
        ns.saturating_sub(self.origin).clamp(0, self.length)
    }

    /// Beginning, ns since the epoch, and length in ns.
    pub fn extent(&self) -> (i64, i64) {
        (self.origin, self.length)
    }

    /// Data for the script.
    pub fn json(&self) -> Value {
        let lanes: Vec<Value> = self
            .lanes
            .iter()
            .map(|lane| {
                let word = |bucket: &Bucket| u32::from(bucket.name) | u32::from(bucket.fill) << 8;
                let encoded = |get: fn(&Bucket) -> u32| {
                    bytes::encode_words(&lane.buckets.iter().map(get).collect::<Vec<_>>())
                };
                let look: Vec<u8> = lane
                    .buckets
                    .iter()
                    .flat_map(|bucket| (word(bucket) as u16).to_le_bytes())
                    .collect();
                let longest: Vec<f32> = lane.buckets.iter().map(|bucket| bucket.longest).collect();
                let busy = !lane.buckets.iter().all(|bucket| bucket.name == 0);
                let states = lane.states.iter().any(|&byte| byte > 0);
                let ticks = lane.ticks.iter().any(|&tick| tick > 0);
                json!({
                    "host": lane.host, "pid": lane.pid, "tid": lane.tid, "name": lane.name,
                    "spans": lane.spans,
                    "frames": lane.frames,
                    "look": if busy { bytes::base64(&look) } else { String::new() },
                    "count": if busy { encoded(|bucket| bucket.count) } else { String::new() },
                    "longest": if busy { bytes::floats(&longest) } else { String::new() },
                    "states": if states { bytes::base64(&lane.states) } else { String::new() },
                    "ticks": if ticks { bytes::encode_words(&lane.ticks) } else { String::new() },
                })
            })
            .collect();
        json!({
            "origin": self.origin.to_string(),
            "length": self.length,
            "width": self.width,
            "names": self.names,
            "lanes": lanes,
            "gaps": self.gaps.iter().map(TimelineGap::json).collect::<Vec<_>>(),
            "marks": self.marks,
            "all": self.has_all_frames,
            "frames": self.frames,
        })
    }
}
