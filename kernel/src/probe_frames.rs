//! The built-in buffer of probes, with a kind of frame for each probe.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ppt_frame_dsl::schema::FRAME_ID_OFFSET;
use ppt_segment::{RingWriter, Segment};

use crate::probes::{Probe, ProbeArgument};
use crate::schema::Builtin;

/// Name of the buffer of probes.
pub const PROBES_BUFFER: &str = "probes";

/// The beginning of every frame file of probes.
const HEAD: &str = "buffer probes 65536;\noption time ns monotonic;\n";
/// The number of rings. Ring 0 belongs to no thread, each other one to one thread at a time.
pub(crate) const RINGS: u32 = 128;
/// The maximum bytes of a generated name, which leaves some for a number.
const NAME_BYTES: usize = 48;
/// The maximum size of a frame in words: the sequence number and the kind, times, a call's place, and arguments.
const WORDS: usize = 24;

/// The schema of the frames of probes, in their order.
pub(crate) fn schema(probes: &[Probe]) -> Result<Builtin, String> {
    let mut names: Vec<String> = Vec::new();
    for probe in probes {
        names.push(frame_name(&probe.name, &names));
    }
    let mut source = HEAD.to_owned();
    for (probe, name) in probes.iter().zip(&names) {
        source += &frame(probe, name);
    }
    let builtin = Builtin::try_compiled(PROBES_BUFFER, &source)?;
    if builtin.schema.stride as usize <= WORDS * 8 {
        Ok(builtin)
    } else {
        Err("a probe has too many arguments".into())
    }
}

/// The text of a frame.
fn frame(probe: &Probe, name: &str) -> String {
    let mut text = format!("frame {name} {{ ");
    text += if probe.returns {
        "interval time call @at; int thread; u32 cpu; addr from; "
    } else {
        "time at @at; int thread; u32 cpu; "
    };
    for ProbeArgument { name, size, is_signed } in &probe.arguments {
        let sign = if *is_signed { 'i' } else { 'u' };
        let _ = write!(text, "{sign}{} {name}; ", u32::from(*size) * 8);
    }
    if probe.returns {
        text += "u64 returned; ";
    }
    text + "}\n"
}

/// A name that frame files allow and that no other frame has.
fn frame_name(name: &str, taken: &[String]) -> String {
    let mut plain = String::new();
    for letter in name.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => plain.push(letter),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    let plain = plain.trim_matches('_');
    let plain = match plain[..plain.len().min(NAME_BYTES)].trim_end_matches('_') {
        "" => "probe",
        plain => plain,
    };
    let is_free = |name: &String| !taken.iter().any(|other| other.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number| format!("f_{plain}_{number}"));
    let all = [plain.to_owned(), format!("f_{plain}")].into_iter().chain(numbered);
    // One of the numbers is free.
    all.filter(is_free).find(|name| is_allowed(name)).unwrap_or_default()
}

/// Whether a frame may have this name: words of programming languages, for example, are taken.
fn is_allowed(name: &str) -> bool {
    let source = format!("{HEAD}frame {name} {{ time at @at; }}\n");
    Builtin::try_compiled(PROBES_BUFFER, &source).is_ok()
}

/// The content of a frame of a probe, in the order of its fields.
#[derive(Debug)]
pub(crate) struct ProbeFrame {
    pub probe: usize,
    /// The begin of a call.
    pub start: Option<u64>,
    pub at: u64,
    pub thread: i32,
    pub cpu: u32,
    /// The caller's address, for a call.
    pub from: Option<u64>,
    pub arguments: Vec<u64>,
    /// The result of a call.
    pub returned: Option<u64>,
}

/// Writes frames of probes, each into a ring of the thread that hit the probe, so that readers know the thread.
/// Ring 0 belongs to no thread: it has losses, and the frames of threads that found no free ring.
pub(crate) struct ProbeWriter<'a> {
    builtin: Arc<Builtin>,
    segment: &'a Segment,
    words: usize,
    shared: RingWriter<'a, AtomicU64>,
    /// The rings by thread id in ppt's pid namespace.
    by_thread: HashMap<i32, ThreadRing<'a>>,
    /// Rings that threads have left. The oldest is taken first: a ring knows its last four owners.
    free: VecDeque<u32>,
    /// The first ring that was never claimed.
    unclaimed: u32,
    /// Records that the kernel lost, so far.
    pub lost: u64,
}

/// The ring of a thread.
struct ThreadRing<'a> {
    number: u32,
    epoch: u32,
    writer: RingWriter<'a, AtomicU64>,
}

impl<'a> ProbeWriter<'a> {
    pub fn new(segment: &'a Segment, builtin: Arc<Builtin>) -> Self {
        let shared = RingWriter::new(segment.ring(0));
        Self {
            builtin,
            segment,
            words: segment.ring(0).stride() - 1,
            shared,
            by_thread: HashMap::new(),
            free: VecDeque::new(),
            unclaimed: 1,
            lost: 0,
        }
    }

    /// Writes a frame of thread `tid`.
    pub fn write(&mut self, tid: i32, frame: &ProbeFrame) {
        let words = encoded(&self.builtin, frame);
        if frame.thread > 0 && !self.by_thread.contains_key(&tid) {
            self.claim(tid, frame.thread);
        }
        let ring = self.by_thread.get_mut(&tid).map(|ring| &mut ring.writer);
        ring.unwrap_or(&mut self.shared).write(words.into_iter().take(self.words));
    }

    /// Claims a free ring for a thread, if there is one. `thread` is its id in its own pid namespace.
    fn claim(&mut self, tid: i32, thread: i32) {
        // Readers expect that rings are claimed from the first on.
        let unclaimed = (self.unclaimed < RINGS).then_some(self.unclaimed);
        let Some(number) = unclaimed.or_else(|| self.free.pop_front()) else { return };
        let ring = self.segment.ring(number);
        if ring.claim(thread as u32) {
            let epoch = ring.owner().epoch;
            self.by_thread.insert(tid, ThreadRing { number, epoch, writer: RingWriter::new(ring) });
        }
        self.unclaimed = self.unclaimed.max(number + 1);
    }

    /// Frees the ring of a thread that has ended.
    pub fn leave(&mut self, tid: i32) {
        if let Some(ThreadRing { number, epoch, .. }) = self.by_thread.remove(&tid)
            && self.segment.ring(number).release(epoch)
        {
            self.free.push_back(number);
        }
    }

    /// States that the kernel lost `count` records, by skipping as many sequence numbers.
    pub fn lose(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        (0..count).for_each(|_| _ = self.shared.lose());
    }
}

/// All words of a frame except the first.
fn encoded(builtin: &Builtin, frame: &ProbeFrame) -> [u64; WORDS - 1] {
    let mut bytes = [0; WORDS * 8];
    let id = frame.probe as u16;
    bytes[FRAME_ID_OFFSET as usize..][..2].copy_from_slice(&id.to_le_bytes());
    let place = [i64::from(frame.thread) as u64, frame.cpu.into()];
    let times = frame.start.into_iter().chain([frame.at]);
    let values = times.chain(place).chain(frame.from);
    let values = values.chain(frame.arguments.iter().copied()).chain(frame.returned);
    let places = builtin.places.get(frame.probe).map(Vec::as_slice).unwrap_or_default();
    for (&(offset, len), value) in places.iter().zip(values) {
        bytes[offset..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
    }
    let mut words = [0; WORDS - 1];
    for (word, bytes) in words.iter_mut().zip(bytes[8..].chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mark(name: &str, arguments: &[(&str, u8, bool)]) -> Probe {
        let argument = |&(name, size, is_signed): &(&str, u8, bool)| ProbeArgument {
            name: name.into(),
            size,
            is_signed,
        };
        let arguments = arguments.iter().map(argument).collect();
        Probe { name: name.into(), returns: false, arguments, sites: Vec::new() }
    }

    #[test]
    fn frames_have_the_values_of_their_fields() {
        let probes = [
            Probe::of_function("processCommand", Vec::new(), true),
            mark("db:query__start", &[("arg1", 4, true), ("arg2", 1, false)]),
        ];
        let builtin = schema(&probes).unwrap();
        let names: Vec<_> = builtin.schema.frames.iter().map(|frame| &frame.name).collect();
        assert_eq!(names, ["processCommand", "db_query_start"]);
        let fields = |number: usize| {
            let frame = &builtin.schema.frames[number];
            frame.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>()
        };
        let expected = ["call_start", "call_end", "thread", "cpu", "from"];
        assert_eq!(fields(0)[..5], expected);
        assert_eq!(fields(0)[5..], ["a", "b", "c", "d", "e", "f", "returned"]);
        assert_eq!(fields(1), ["at", "thread", "cpu", "arg1", "arg2"]);
        let values = |frame: ProbeFrame| {
            let mut bytes = vec![0; 8];
            bytes.extend(encoded(&builtin, &frame).iter().flat_map(|word| word.to_le_bytes()));
            let places = builtin.places[frame.probe].iter();
            let value = |&(offset, len): &(usize, usize)| {
                let mut value = [0; 8];
                value[..len].copy_from_slice(&bytes[offset..][..len]);
                u64::from_le_bytes(value)
            };
            (bytes[8], places.map(value).collect::<Vec<_>>())
        };
        let call = ProbeFrame {
            probe: 0,
            start: Some(11),
            at: 22,
            thread: -1,
            cpu: 3,
            from: Some(44),
            arguments: vec![5, 6, 7, 8, 9, 10],
            returned: Some(u64::MAX),
        };
        let thread = 0xffff_ffff;
        let expected = vec![11, 22, thread, 3, 44, 5, 6, 7, 8, 9, 10, u64::MAX];
        assert_eq!(values(call), (0, expected));
        let (start, from, returned) = (None, None, None);
        let arguments = vec![-2i64 as u64, 0x1ff];
        let (at, thread, cpu) = (1, 2, 3);
        let mark = ProbeFrame { probe: 1, start, at, thread, cpu, from, arguments, returned };
        assert_eq!(values(mark), (1, vec![1, 2, 3, 0xffff_fffe, 0xff]));
    }

    #[test]
    fn names_become_names_of_frames() {
        let name = |name: &str| frame_name(name, &[]);
        assert_eq!(name("postgresql:query__start"), "postgresql_query_start");
        assert_eq!(name("_Z3fooi"), "Z3fooi");
        assert_eq!(name("main"), "main");
        assert_eq!(name("point"), "f_point", "a word of frame files");
        assert_eq!(name("_"), "probe");
        assert_eq!(name("7zip"), "f_7zip");
        let taken = ["call".to_owned(), "f_call".to_owned()];
        assert_eq!(frame_name("call", &taken), "f_call_2");
    }

    proptest! {
        #[test]
        fn every_name_becomes_one(name in "\\PC{0,80}", again in any::<bool>()) {
            let probes = if again { vec![mark(&name, &[]); 2] } else { vec![mark(&name, &[])] };
            let builtin = schema(&probes).unwrap();
            prop_assert_eq!(builtin.schema.frames.len(), probes.len());
        }
    }
}
