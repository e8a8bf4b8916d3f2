//! The control page: the mailbox between this program and `ppt attach`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::abi::{self, PAGE};
use ppt_segment::masks::{Masks, is_wanted};

const WORDS: usize = PAGE as usize / 8;

/// [`abi::Control`] as the target sees it: words that the agent may change at any time. Alone in
/// its page, so that a forked child can be given an empty one.
#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
#[derive(Debug)]
pub struct Control([AtomicU64; WORDS]);

const _: () = assert!(size_of::<Control>() as u64 == PAGE && align_of::<Control>() as u64 == PAGE);
const _: () = assert!(size_of::<abi::Control>() as u64 <= PAGE);

/// The word of a field of [`abi::Control`], checked when compiled.
macro_rules! word {
    ($control:expr, $($field:tt).+) => {
        $control.word::<{ std::mem::offset_of!(ppt_segment::abi::Control, $($field).+) }>()
    };
}
pub(super) use word;

impl Control {
    /// A control page while ppt is not attached.
    #[expect(clippy::new_without_default, reason = "only statics are control pages")]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Whether ppt is attached: one load.
    #[inline(always)]
    pub fn on(&self) -> bool {
        self.gate() != 0
    }

    /// The number of the current session; 0 if there is none.
    #[inline]
    pub fn session(&self) -> u64 {
        if self.on() { word!(self, claim.nonce).load(Relaxed) } else { 0 }
    }

    /// Whether ppt is attached and wants the frame, counter or histogram with this bit. While it is not
    /// attached, this costs one load.
    #[inline(always)]
    pub fn wants<const BIT: u32>(&self) -> bool {
        if self.on() {
            attended();
            return self.is_wanted::<BIT>();
        }
        false
    }

    /// Whether the current session wants the frame, counter or histogram with this bit.
    #[inline(always)]
    fn is_wanted<const BIT: u32>(&self) -> bool {
        const BITS: usize = std::mem::offset_of!(abi::Control, disabled.bits) / 8;
        const { assert!(BIT < Masks::BITS) };
        let word = &self.0[BITS + BIT as usize / 64];
        is_wanted(word, BIT, word!(self, disabled.nonce), word!(self, claim.nonce))
    }

    /// Whether the current agent writes masks.
    pub(super) fn will_be_masked(&self) -> bool {
        word!(self, disabled.nonce).load(Relaxed) == word!(self, claim.nonce).load(Relaxed)
    }

    #[inline(always)]
    pub(super) fn gate(&self) -> u64 {
        word!(self, gate).load(Relaxed)
    }

    /// The word at a byte offset.
    #[inline(always)]
    pub(super) fn word<const OFFSET: usize>(&self) -> &AtomicU64 {
        const { assert!(OFFSET % 8 == 0 && OFFSET / 8 < WORDS) };
        &self.0[OFFSET / 8]
    }

    /// The words of a row of the table of mapped segments.
    pub(super) fn segment(&self, row: usize) -> Option<&[AtomicU64; 4]> {
        const FIRST: usize = std::mem::offset_of!(abi::Control, segments) / 8;
        const ROW: usize = size_of::<abi::MappedSegment>() / 8;
        let words = self.0.get(FIRST..FIRST + ROW * abi::MAX_SEGMENTS)?;
        words.chunks_exact(ROW).nth(row)?.try_into().ok()
    }

    /// The descriptor of a segment in that table which this process made, plus 1.
    pub(super) fn memfd(&self, row: usize) -> Option<&AtomicU64> {
        const FIRST: usize = std::mem::offset_of!(abi::Control, memfd) / 8;
        self.0.get(FIRST..FIRST + abi::MAX_SEGMENTS)?.get(row)
    }

    /// Empties the page. The gate is first, so that no frame begins after it.
    pub(super) fn empty(&self) {
        let [gate, rest @ ..] = &self.0;
        gate.store(0, Relaxed);
        rest[..size_of::<abi::Control>() / 8 - 1].iter().for_each(|word| word.store(0, Relaxed));
    }

    /// The page as an argument of madvise(2).
    pub(super) fn address(&self) -> *mut libc::c_void {
        (&raw const *self).cast_mut().cast()
    }
}
/// Marks the path while ppt is attached as unlikely, so that the other one is straight.
#[inline(always)]
#[cold]
fn attended() {}
