//! A replacement for the writer of `ppt-probe`, which writes into one slot in memory that the checks read.

use std::sync::Mutex;
use std::thread::LocalKey;

use crate::bytes::Plain;
use crate::time::Timespec;

/// The words of the largest slot, and further ones that detect writes beyond it.
const WORDS: usize = (4096 + 64) / 8;
const UNTOUCHED: u8 = 0x5a;

/// Frames begun, the last one's number, frames ended, and the slot.
struct Slot {
    begun: u32,
    frame: u32,
    ended: u32,
    words: [u64; WORDS],
}

const EMPTY: Slot =
    Slot { begun: 0, frame: 0, ended: 0, words: [0x5a5a_5a5a_5a5a_5a5a; WORDS] };
static SLOT: Mutex<Slot> = Mutex::new(EMPTY);

/// Does nothing when the program is loaded.
#[doc(hidden)]
#[macro_export]
macro_rules! at_load {
    ($buffer:ident) => {};
}

pub fn loaded(_: &'static Buffer) {}

pub struct Control;
impl Control {
    pub const fn new() -> Self {
        Self
    }
    pub fn on(&self) -> bool {
        true
    }
    pub fn session(&self) -> u64 {
        1
    }
    pub fn wants<const BIT: u32>(&self) -> bool {
        self.on()
    }
}
pub struct Layout {
    pub hash: u64,
    pub stride: u32,
    pub log2_slots: u32,
    pub frames: u32,
    pub cells: u32,
}
pub struct Descriptor;
impl Descriptor {
    pub const fn new(_: &'static Self, _: &'static Control, _: &'static str, _: Layout) -> Self {
        Self
    }
}
pub struct Buffer;
impl Buffer {
    pub const fn new(_: &'static Descriptor, _: &'static Control) -> Self {
        Self
    }
}
pub struct Thread<const STRIDE: usize>;
impl<const STRIDE: usize> Thread<STRIDE> {
    pub const fn new() -> Self {
        Self
    }
}

pub struct Write<const STRIDE: usize>;
impl<const STRIDE: usize> Write<STRIDE> {
    pub fn put<const INDEX: usize>(&self, value: u64) {
        SLOT.lock().unwrap().words[INDEX] = value;
    }
    pub fn put_array<
        T: Plain,
        const N: usize,
        const FIRST: usize,
        const FROM: usize,
        const COUNT: usize,
    >(
        &self,
        array: &[T; N],
    ) {
        assert!(FROM + COUNT * 8 <= size_of_val(array));
        for index in 0..COUNT {
            let from = array.as_ptr().cast::<u8>().wrapping_add(FROM + index * 8);
            // SAFETY: inside the array, and `Plain` has no padding.
            let word = unsafe { from.cast::<u64>().read_unaligned() };
            SLOT.lock().unwrap().words[FIRST + index] = word;
        }
    }
    pub fn end(self) {
        SLOT.lock().unwrap().ended += 1;
    }
}
pub fn begin<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    frame: u32,
) -> Option<Write<STRIDE>> {
    let mut slot = SLOT.lock().unwrap();
    slot.begun += 1;
    slot.frame = frame;
    Some(Write)
}
pub fn prepare<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
) {
}
pub fn busy<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
) {
}
/// The last add: its cell, the cell that counts it, and the value.
static LAST: Mutex<(u32, Option<u32>, u64)> = Mutex::new((0, None, 0));

pub fn add<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    cell: u32,
    value: u64,
) {
    *LAST.lock().unwrap() = (cell, None, value);
}
pub fn observe<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    (sum, bucket): (u32, u32),
    value: u64,
) {
    *LAST.lock().unwrap() = (sum, Some(bucket), value);
}

/// Checks that this was the last add.
pub fn added(number: u32, name: &str, right: (u32, Option<u32>, u64)) {
    let last = std::mem::take(&mut *LAST.lock().unwrap());
    if last != right {
        println!("wrong {number} {name}: {last:?}, not {right:?}");
    }
}

/// The stamp that ppt takes itself.
pub const STAMP: u64 = 0x8877_6655_4433_2211;
pub fn stamp(_: &Control) -> u64 {
    STAMP
}
pub fn ns_between(_: &Control, _: u64, _: u64) -> i64 {
    -1
}
pub fn clock(number: i32) -> Timespec {
    Timespec { tv_sec: number.into(), tv_nsec: 0 }
}

/// A frame that must be written.
pub struct Expected {
    number: u32,
    id: u32,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
pub enum Kind {
    Any,
    Bool,
    Text,
}

/// Random bytes at the offsets of the fields. The rest is 0, except for the frame's number, and word 0, which the
/// frame does not write.
pub fn expect(number: u32, id: u32, size: usize, several: bool, fields: &[(Kind, usize, usize)]) -> Expected {
    let mut bytes = vec![0; size];
    bytes[..8].fill(UNTOUCHED);
    if several {
        bytes[8..10].copy_from_slice(&(id as u16).to_le_bytes());
    }
    let mut state = 88_172_645_463_325_252 ^ u64::from(number) << 32 ^ u64::from(id);
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    for &(kind, offset, length) in fields {
        let count = match kind {
            Kind::Text => random() as usize % (length + 1),
            _ => length,
        };
        for byte in &mut bytes[offset..offset + count] {
            *byte = match kind {
                Kind::Any => random(),
                Kind::Bool => random() & 1,
                Kind::Text => random() & 0x7f | 1,
            };
        }
    }
    Expected { number, id, bytes }
}

impl Expected {
    /// The value that ppt sets itself.
    pub fn place(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// The value at an offset. `T` is a type of fields; any bytes are a value of it, except for bools.
    pub fn value<T: Copy>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= self.bytes.len());
        // SAFETY: inside; bools are 0 or 1 (see `expect`).
        unsafe { self.bytes.as_ptr().add(offset).cast::<T>().read_unaligned() }
    }

    pub fn compare(&self, form: &str) {
        let slot = std::mem::replace(&mut *SLOT.lock().unwrap(), EMPTY);
        let Self { number, id, .. } = self;
        if (slot.begun, slot.ended, slot.frame) != (1, 1, *id) {
            println!("wrong {number} frame {id}, {form}: begun {}, ended {}", slot.begun, slot.ended);
        }
        let wrote = slot.words.iter().flat_map(|word| word.to_le_bytes());
        let right = self.bytes.iter().copied().chain(std::iter::repeat(UNTOUCHED));
        if let Some((at, (wrote, right))) =
            wrote.zip(right).enumerate().find(|(_, (wrote, right))| wrote != right)
        {
            println!("wrong {number} frame {id}, {form}: byte {at} is {wrote:#x}, not {right:#x}");
        }
    }
}
