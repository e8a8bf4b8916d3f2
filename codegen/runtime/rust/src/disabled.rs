//! The writer on systems without ppt, and with `--cfg ppt_disable`. Nobody is ever attached.

use std::thread::LocalKey;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bytes::Plain;
use crate::time::Timespec;

/// On systems with ppt, it allows processes of this user to attach. Here it does nothing.
pub fn allow_attach() {}

/// Never on.
#[derive(Debug, Default)]
pub struct Control;

impl Control {
    /// Off.
    pub const fn new() -> Self {
        Self
    }
    /// Off.
    #[inline(always)]
    pub fn on(&self) -> bool {
        false
    }
    /// None.
    #[inline]
    pub fn session(&self) -> u64 {
        0
    }
    /// Off.
    #[inline(always)]
    pub fn wants<const BIT: u32>(&self) -> bool {
        false
    }
}

/// Nothing to be found.
#[derive(Debug)]
pub struct Descriptor;

/// The content of a descriptor, if there were one.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "see `enabled.rs`")]
pub struct Layout {
    pub hash: u64,
    pub stride: u32,
    pub log2_slots: u32,
    pub frames: u32,
    pub cells: u32,
}

impl Descriptor {
    /// Nothing.
    pub const fn new(_: &'static Self, _: &'static Control, _: &'static str, _: Layout) -> Self {
        Self
    }
}

/// Nothing.
#[derive(Debug)]
pub struct Buffer;

impl Buffer {
    /// Nothing.
    pub const fn new(_: &'static Descriptor, _: &'static Control) -> Self {
        Self
    }
}

/// Nothing.
#[derive(Debug, Default)]
pub struct Thread<const STRIDE: usize>;

impl<const STRIDE: usize> Thread<STRIDE> {
    /// Nothing.
    pub const fn new() -> Self {
        Self
    }
}

/// Never there.
#[derive(Debug)]
pub enum Write<const STRIDE: usize> {}

impl<const STRIDE: usize> Write<STRIDE> {
    /// Never called.
    #[inline(always)]
    pub fn put<const INDEX: usize>(&self, _: u64) {}
    /// Never called.
    #[inline(always)]
    pub fn put_array<
        T: Plain,
        const N: usize,
        const FIRST: usize,
        const FROM: usize,
        const COUNT: usize,
    >(
        &self,
        _: &[T; N],
    ) {
    }
    /// Never called.
    #[inline(always)]
    pub fn end(self) {}
}

/// Nothing is done at load.
#[doc(hidden)]
#[macro_export]
macro_rules! at_load {
    ($buffer:ident) => {};
}

/// Never called.
pub fn loaded(_: &'static Buffer) {}

/// Off.
#[inline(always)]
pub fn begin<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    _: u32,
) -> Option<Write<STRIDE>> {
    None
}

/// Nothing.
#[inline(always)]
pub fn prepare<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
) {
}

/// Nothing.
#[inline(always)]
pub fn busy<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
) {
}

/// Nothing.
#[inline(always)]
pub fn add<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    _: u32,
    _: u64,
) {
}

/// Nothing.
#[inline(always)]
pub fn observe<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    _: (u32, u32),
    _: u64,
) {
}

/// The wall clock, which is clock 0; other clocks have no reader here.
pub fn clock(number: i32) -> Timespec {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(now) if number == 0 => {
            Timespec { tv_sec: now.as_secs() as i64, tv_nsec: now.subsec_nanos() as i64 }
        }
        _ => Timespec::ZERO,
    }
}

/// No stamps are taken, so no length is known.
#[inline(always)]
pub fn ns_between(_: &Control, _: u64, _: u64) -> i64 {
    -1
}

/// No ticks.
#[inline(always)]
pub fn stamp(_: &Control) -> u64 {
    0
}
