//! The built-in buffer of stacks: its frames and their writer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ppt_frame_dsl::schema::FRAME_ID_OFFSET;
use ppt_segment::{RingWriter, Segment};

use crate::perf::MAX_ADDRESSES;
use crate::records::u64_at;
use crate::schema::Builtin;
use crate::stack_events::Stacks;

/// The name of the buffer of stacks.
pub const STACKS_BUFFER: &str = "stacks";

/// The frame file.
const SOURCE: &str = include_str!("stacks.frame");

/// The largest size of a frame in words.
const WORDS: usize = 34;
/// The numbers of the frames.
const SAMPLING: u16 = 0;
const STACK: u16 = 1;
/// The depth up to which a stack counts as shallow: the innermost function and one more address.
const SHALLOW_DEPTH: u8 = 2;
/// The smallest marker: values from here on are not addresses (PERF_CONTEXT_MAX).
const FIRST_MARKER: u64 = -4095i64 as u64;

impl Builtin {
    /// The schema of stacks.
    pub fn stacks() -> &'static Self {
        static BUILTIN: OnceLock<Builtin> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let new = Self::compiled(STACKS_BUFFER, SOURCE);
            assert!(new.schema.stride as usize <= WORDS * 8);
            new
        })
    }
}

/// A stack: the address of a thread, and those of its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallChain {
    depth: u8,
    addresses: [u64; MAX_ADDRESSES],
}

impl CallChain {
    /// The stack that the kernel found by frame pointers, from the bytes of its record. A return address may
    /// belong to the next function, so the address of a caller is the last byte of the call.
    pub fn of_record(bytes: &[u8]) -> Self {
        let words = (0..bytes.len() / 8).filter_map(|word| u64_at(bytes, 8 * word));
        let mut chain = Self { depth: 0, addresses: [0; MAX_ADDRESSES] };
        let addresses = words.filter(|&address| address < FIRST_MARKER);
        for (place, address) in chain.addresses.iter_mut().zip(addresses) {
            *place = if chain.depth == 0 { address } else { address.saturating_sub(1) };
            chain.depth += 1;
        }
        chain
    }

    /// The stack that the unwinder found: the number of addresses, and the addresses.
    pub fn unwound((depth, addresses): (u8, [u64; MAX_ADDRESSES])) -> Self {
        Self { depth, addresses }
    }

    /// Whether it has more than the innermost function.
    pub fn has_callers(&self) -> bool {
        self.depth > 1
    }

    /// Whether it has no address.
    pub fn is_empty(&self) -> bool {
        self.depth == 0
    }
}

/// The reason why a stack was taken: the values of `Why`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackWhy {
    Running = 0,
    Kernel = 1,
    Waiting = 2,
}

/// The stack of a thread.
#[derive(Debug, Clone)]
pub(crate) struct StackFrame<'a> {
    pub thread: i32,
    pub cpu: u32,
    pub why: StackWhy,
    pub chain: &'a CallChain,
}

/// The numbers of stacks and of shallow ones.
#[derive(Debug, Default)]
pub struct StackCounts {
    taken: AtomicU64,
    shallow: AtomicU64,
}

impl StackCounts {
    /// The number of stacks of threads that ran.
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// The number of those with at most two addresses.
    pub fn shallow(&self) -> u64 {
        self.shallow.load(Relaxed)
    }

    fn count(&self, chain: &CallChain) {
        self.taken.fetch_add(1, Relaxed);
        self.shallow.fetch_add(u64::from(chain.depth <= SHALLOW_DEPTH), Relaxed);
    }
}

/// Writes frames, and states losses.
pub(crate) struct StackWriter<'a> {
    builtin: &'static Builtin,
    writer: RingWriter<'a, AtomicU64>,
    words: usize,
    counts: &'a StackCounts,
    /// The number of records that the kernel lost so far.
    pub lost: u64,
}

impl<'a> StackWriter<'a> {
    pub fn new(segment: &'a Segment, counts: &'a StackCounts) -> Self {
        let ring = segment.ring(0);
        let words = ring.stride() - 1;
        let builtin = Builtin::stacks();
        Self { builtin, words, writer: RingWriter::new(ring), counts, lost: 0 }
    }

    /// Writes the settings that hold from `at` on.
    pub fn begin(&mut self, at: u64, wanted: Stacks, kernel: bool) {
        let Stacks { hertz, waits, unwind } = wanted;
        let numbers = [at, hertz.into(), kernel.into(), waits.into(), unwind.into()];
        self.write(encoded(self.builtin, SAMPLING, &numbers, &[]));
    }

    pub fn write_stack(&mut self, at: u64, frame: &StackFrame<'_>) {
        if frame.why != StackWhy::Waiting {
            self.counts.count(frame.chain);
        }
        let numbers = [
            at,
            i64::from(frame.thread) as u64,
            frame.cpu.into(),
            frame.why as u64,
            frame.chain.depth.into(),
        ];
        self.write(encoded(self.builtin, STACK, &numbers, &frame.chain.addresses));
    }

    fn write(&mut self, words: [u64; WORDS - 1]) {
        self.writer.write(words.into_iter().take(self.words));
    }

    /// States that the kernel lost `count` records, by skipping as many sequence numbers.
    pub fn lose(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        (0..count).for_each(|_| _ = self.writer.lose());
    }
}

/// All words of a frame except the first: its numbers in the order of their fields, and the addresses of the
/// last field.
fn encoded(builtin: &Builtin, frame: u16, numbers: &[u64], addresses: &[u64]) -> [u64; WORDS - 1] {
    let mut bytes = [0; WORDS * 8];
    bytes[FRAME_ID_OFFSET as usize..][..2].copy_from_slice(&frame.to_le_bytes());
    let places = &builtin.places[usize::from(frame)];
    for (&(offset, len), number) in places.iter().zip(numbers) {
        bytes[offset..][..len].copy_from_slice(&number.to_le_bytes()[..len]);
    }
    if let Some(&(offset, len)) = places.get(numbers.len()) {
        for (place, address) in bytes[offset..][..len].chunks_exact_mut(8).zip(addresses) {
            place.copy_from_slice(&address.to_le_bytes());
        }
    }
    let mut words = [0; WORDS - 1];
    for (word, bytes) in words.iter_mut().zip(bytes[8..].chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn callers_are_where_their_calls_end() {
        let user = -512i64 as u64;
        let chain = CallChain::of_record(&record(&[user, 0x1000, 0x2005, 0x3005]));
        assert_eq!((chain.depth, &chain.addresses[..4]), (3, &[0x1000, 0x2004, 0x3004, 0][..]));
        assert!(CallChain::of_record(&record(&[user])).is_empty());
        let many: Vec<u64> = (1..100).collect();
        let chain = CallChain::of_record(&record(&many));
        assert_eq!((chain.depth, chain.addresses[29]), (30, 29));
    }

    #[test]
    fn frames_have_the_values_of_their_fields() {
        let builtin = Builtin::stacks();
        let names: Vec<_> = builtin.schema.frames.iter().map(|frame| &frame.name).collect();
        assert_eq!(names, ["sampling", "stack"]);
        let addresses: Vec<u64> = (1..=30).map(|number| number * 0x0101_0101_0101).collect();
        let words = encoded(builtin, STACK, &[77, -5i64 as u64, 3, 2, 30], &addresses);
        let mut bytes = vec![0; 8];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let stack = &builtin.schema.frames[1];
        let found: Vec<_> = stack.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(found, ["at", "thread", "cpu", "why", "depth", "frames"]);
        let of_field = |number: usize| {
            let field = &stack.fields[number];
            &bytes[field.offset as usize..][..field.bytes(&builtin.schema) as usize]
        };
        assert_eq!(of_field(0), 77u64.to_le_bytes());
        assert_eq!(of_field(1), (-5i32).to_le_bytes());
        assert_eq!(of_field(2), 3u32.to_le_bytes());
        assert_eq!((of_field(3), of_field(4)), (&[2u8][..], &[30u8][..]));
        assert_eq!(of_field(5), record(&addresses));
        let words = builtin.schema.stride as usize / 8;
        assert!(words <= WORDS && words > 30, "{words}");
    }

    #[test]
    fn shallow_stacks_are_counted() {
        let counts = StackCounts::default();
        for depth in 0..5 {
            counts.count(&CallChain { depth, addresses: [0; MAX_ADDRESSES] });
        }
        assert_eq!((counts.taken(), counts.shallow()), (5, 3));
    }
}
