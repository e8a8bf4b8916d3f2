//! The built-in buffer of the kernel's actions: its frame file, and the encoding of its frames.

use std::sync::OnceLock;

use ppt_frame_dsl::schema::{FRAME_ID_OFFSET, Schema};
use syscalls::{Sysno, SysnoSet};

/// The name of the buffer of the kernel's actions.
pub const BUFFER: &str = "kernel";

/// The frame file without the names of system calls, which differ among architectures.
const SOURCE: &str = include_str!("kernel.frame");

/// The largest size of a frame in words.
pub(crate) const WORDS: usize = 8;

/// The schema of a built-in buffer.
#[derive(Debug)]
pub struct Builtin {
    /// The name of the buffer.
    pub buffer: &'static str,
    /// The schema.
    pub schema: Schema,
    /// The schema as JSON, as captures hold it.
    pub json: Vec<u8>,
    /// The hash of the schema.
    pub hash: u64,
    /// For each frame, offset and size of each field.
    pub(crate) places: Vec<Vec<(usize, usize)>>,
}

impl Builtin {
    /// The schema of the kernel's actions.
    pub fn get() -> &'static Self {
        static BUILTIN: OnceLock<Builtin> = OnceLock::new();
        BUILTIN.get_or_init(Self::new)
    }

    fn new() -> Self {
        let all = SysnoSet::all();
        // Frame files allow no underscore at the start of a name: `_sysctl`.
        let name = |call: Sysno| call.name().trim_start_matches('_');
        let calls: Vec<_> =
            all.iter().map(|call| format!("{} = {}", name(call), call.id())).collect();
        let source = format!("{SOURCE}\nenum Call : u16 {{ {} }}\n", calls.join(", "));
        let new = Self::compiled(BUFFER, &source);
        assert!(new.schema.stride as usize <= WORDS * 8);
        new
    }

    /// Compiles a built-in frame file.
    pub(crate) fn compiled(buffer: &'static str, source: &str) -> Self {
        Self::try_compiled(buffer, source)
            .unwrap_or_else(|error| panic!("the built-in frame file: {error}"))
    }

    /// Compiles a frame file that contains names of others.
    pub(crate) fn try_compiled(buffer: &'static str, source: &str) -> Result<Self, String> {
        let compiled =
            ppt_frame_dsl::compile(source.as_bytes(), buffer).map_err(|error| error.to_string())?;
        let schema = compiled.schema;
        let places = schema.frames.iter().map(|frame| {
            frame
                .fields
                .iter()
                .map(|field| (field.offset as usize, field.bytes(&schema) as usize))
                .collect()
        });
        let places = places.collect();
        let json = schema.to_json();
        Ok(Self { buffer, hash: schema.hash(), json: json.into(), places, schema })
    }

    /// All words, except the first, of a frame with these values of its fields. Longer values are cut.
    pub(crate) fn words(&self, frame: u16, values: &[&[u8]]) -> Vec<u64> {
        let mut bytes = vec![0; self.schema.stride as usize];
        if self.schema.multi() {
            bytes[FRAME_ID_OFFSET as usize..][..2].copy_from_slice(&frame.to_le_bytes());
        }
        for (&(offset, length), value) in self.places[usize::from(frame)].iter().zip(values) {
            let length = length.min(value.len());
            bytes[offset..][..length].copy_from_slice(&value[..length]);
        }
        let words = bytes[8..].chunks_exact(8);
        words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect()
    }

    /// All words of `event` except the first, which holds the sequence number.
    pub(crate) fn encode(&self, at: u64, event: &KernelEvent) -> [u64; WORDS - 1] {
        let mut bytes = [0; WORDS * 8];
        let (kind, values, text) = event.fields();
        bytes[FRAME_ID_OFFSET as usize..][..2].copy_from_slice(&(kind as u16).to_le_bytes());
        let mut put = |place: &(usize, usize), from: &[u8]| {
            let len = place.1.min(from.len());
            bytes[place.0..][..len].copy_from_slice(&from[..len]);
        };
        let places = &self.places[kind];
        let values = [at].into_iter().chain(values.into_iter().map(|value| value as u64));
        let numbers = places.len() - usize::from(text.is_some());
        for (place, value) in places[..numbers].iter().zip(values) {
            put(place, &value.to_le_bytes());
        }
        if let (Some(text), Some(place)) = (text, places.last()) {
            put(place, &text);
        }
        let mut words = [0; WORDS - 1];
        for (word, bytes) in words.iter_mut().zip(bytes[8..].chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        words
    }
}

/// A name as the kernel keeps it.
pub(crate) type Comm = [u8; 16];

/// The waker of a thread: the values of `Waker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waker {
    Thread = 0,
    Process = 1,
    Interrupt = 2,
}

/// An event, with threads by their numbers in the target's pid namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KernelEvent {
    Watched {
        thread: i32,
    },
    ThreadStart {
        thread: i32,
        parent: i32,
    },
    ThreadEnd {
        thread: i32,
    },
    SwitchIn {
        thread: i32,
        cpu: u32,
    },
    SwitchOut {
        thread: i32,
        cpu: u32,
        preempted: bool,
    },
    Successor {
        thread: i32,
        cpu: u32,
        state: u8,
        next: i32,
        name: Comm,
    },
    Wakeup {
        thread: i32,
        cpu: u32,
        by: Waker,
        waker: i32,
    },
    SyscallEnter {
        thread: i32,
        cpu: u32,
        call: u16,
    },
    SyscallExit {
        thread: i32,
        cpu: u32,
        call: u16,
        result: i64,
    },
    PageFault {
        thread: i32,
        cpu: u32,
        major: bool,
        address: u64,
    },
    /// Missing records, of all threads if `thread` is 0.
    Lost {
        since: u64,
        thread: i32,
        cpu: u32,
        count: u64,
    },
    WatchEnd,
}

impl KernelEvent {
    /// The index of its frame, its numbers after `at` in the order of the fields, padded with 0, and the text
    /// of the last field.
    fn fields(&self) -> (usize, [i64; 4], Option<Comm>) {
        let wide = i64::from;
        match *self {
            KernelEvent::Watched { thread } => (0, [wide(thread), 0, 0, 0], None),
            KernelEvent::ThreadStart { thread, parent } => {
                (1, [wide(thread), wide(parent), 0, 0], None)
            }
            KernelEvent::ThreadEnd { thread } => (2, [wide(thread), 0, 0, 0], None),
            KernelEvent::SwitchIn { thread, cpu } => (3, [wide(thread), cpu.into(), 0, 0], None),
            KernelEvent::SwitchOut { thread, cpu, preempted } => {
                (4, [wide(thread), cpu.into(), preempted.into(), 0], None)
            }
            KernelEvent::Successor { thread, cpu, state, next, name } => {
                (5, [wide(thread), cpu.into(), state.into(), wide(next)], Some(name))
            }
            KernelEvent::Wakeup { thread, cpu, by, waker } => {
                (6, [wide(thread), cpu.into(), by as i64, wide(waker)], None)
            }
            KernelEvent::SyscallEnter { thread, cpu, call } => {
                (7, [wide(thread), cpu.into(), call.into(), 0], None)
            }
            KernelEvent::SyscallExit { thread, cpu, call, result } => {
                (8, [wide(thread), cpu.into(), call.into(), result], None)
            }
            KernelEvent::PageFault { thread, cpu, major, address } => {
                (9, [wide(thread), cpu.into(), major.into(), address as i64], None)
            }
            KernelEvent::Lost { since, thread, cpu, count } => {
                (10, [since as i64, wide(thread), cpu.into(), count as i64], None)
            }
            KernelEvent::WatchEnd => (11, [0; 4], None),
        }
    }
}

/// The value of `State` for the state in sched_switch.
pub(crate) fn state(prev_state: u64) -> u8 {
    // Higher bits mark a preempted thread.
    match prev_state & 0xff {
        0 => 0,
        0x01 => 1,
        0x02 => 2,
        0x04 => 3,
        0x08 => 4,
        0x10 | 0x20 => 5,
        0x80 => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_the_fields_of_its_frame() {
        let builtin = Builtin::get();
        let events = [
            ("watched", KernelEvent::Watched { thread: 1 }),
            ("thread_start", KernelEvent::ThreadStart { thread: 1, parent: 2 }),
            ("thread_end", KernelEvent::ThreadEnd { thread: 1 }),
            ("switch_in", KernelEvent::SwitchIn { thread: 1, cpu: 2 }),
            ("switch_out", KernelEvent::SwitchOut { thread: 1, cpu: 2, preempted: true }),
            (
                "successor",
                KernelEvent::Successor {
                    thread: 1,
                    cpu: 2,
                    state: 3,
                    next: 4,
                    name: *b"sixteen letters.",
                },
            ),
            ("wakeup", KernelEvent::Wakeup { thread: 1, cpu: 2, by: Waker::Interrupt, waker: -4 }),
            ("syscall_enter", KernelEvent::SyscallEnter { thread: 1, cpu: 2, call: 3 }),
            ("syscall_exit", KernelEvent::SyscallExit { thread: 1, cpu: 2, call: 3, result: -11 }),
            (
                "page_fault",
                KernelEvent::PageFault { thread: 1, cpu: 2, major: true, address: u64::MAX },
            ),
            ("lost", KernelEvent::Lost { since: 1, thread: 2, cpu: 3, count: 4 }),
            ("watch_end", KernelEvent::WatchEnd),
        ];
        assert_eq!(builtin.schema.frames.len(), events.len());
        assert_eq!(builtin.schema.buffer, BUFFER);
        for (frame, (name, event)) in builtin.schema.frames.iter().zip(events) {
            let (kind, values, text) = event.fields();
            assert_eq!(
                (&builtin.schema.frames[kind].name, frame.name.as_str()),
                (&frame.name, name)
            );
            let numbers = frame.fields.len() - 1 - usize::from(text.is_some());
            assert!(values[numbers..].iter().all(|&value| value == 0), "{name}");
            assert!(values[..numbers].iter().all(|&value| value != 0), "{name}");
            let words = builtin.encode(0x0123_4567_89ab_cdef, &event);
            let mut bytes = vec![0; 8];
            bytes.extend(words.iter().flat_map(|number| number.to_le_bytes()));
            assert_eq!(bytes[8..10], (kind as u16).to_le_bytes(), "{name}");
            let expected = [0x0123_4567_89ab_cdef].into_iter().chain(values);
            for (field, value) in frame.fields[..=numbers].iter().zip(expected) {
                let len = field.bytes(&builtin.schema) as usize;
                let found = &bytes[field.offset as usize..][..len];
                assert_eq!(found, &value.to_le_bytes()[..len], "{name}.{}", field.name);
            }
            if let (Some(text), Some(field)) = (text, frame.fields.last()) {
                assert_eq!(bytes[field.offset as usize..][..16], text, "{name}");
            }
        }
    }

    #[test]
    fn calls_have_the_names_of_this_machine() {
        let calls = Builtin::get().schema.enum_named("Call").unwrap();
        assert!(calls.values.len() > 300, "{}", calls.values.len());
        for call in [Sysno::futex, Sysno::read, Sysno::clone3] {
            assert!(calls.values.contains(&(call.name().into(), call.id().into())), "{call}");
        }
    }
}
