//! Typed access to the values in the bytes of a frame.

use std::marker::PhantomData;

/// Reads a value from a frame.
pub trait Access: Copy {
    /// The type of the value.
    type Value;

    /// The value in `frame`, or None if there is none.
    fn get(self, frame: &[u8]) -> Option<Self::Value>;
}

/// A plain number, stored as its bytes.
pub trait PlainNumber: Copy + Default + 'static {
    /// Reads the number at offset `at`.
    fn read(frame: &[u8], at: usize) -> Option<Self>;

    /// This minus `other`, or None if the type cannot hold the result.
    fn minus(self, other: Self) -> Option<Self>;
}

/// An integer of at most 64 bits.
pub trait Integer: PlainNumber + Into<i128> + TryFrom<i128> + Ord {
    /// Whether it can be negative.
    const SIGNED: bool;

    /// The number as 64 bits, sign-extended.
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($minus:expr; $($ty:ty),*) => {$(
        impl PlainNumber for $ty {
            #[inline(always)]
            fn read(frame: &[u8], at: usize) -> Option<Self> {
                let bytes = frame.get(at..at.checked_add(size_of::<Self>())?)?;
                Some(Self::from_le_bytes(*bytes.first_chunk()?))
            }

            #[inline]
            fn minus(self, other: Self) -> Option<Self> {
                let minus: fn(Self, Self) -> Option<Self> = $minus;
                minus(self, other)
            }
        }
    )*};
}

macro_rules! integers {
    ($signed:literal, $wide:ty; $($ty:ty),*) => {$(
        impl Integer for $ty {
            const SIGNED: bool = $signed;

            #[inline(always)]
            fn bits(self) -> u64 {
                <$wide>::from(self) as u64
            }
        }
    )*};
}

numbers!(|a, b| a.checked_sub(b); i8, i16, i32, i64, u8, u16, u32, u64);
numbers!(|a, b| Some(a - b); f32, f64);
integers!(true, i64; i8, i16, i32, i64);
integers!(false, u64; u8, u16, u32, u64);

/// A number at an offset.
#[derive(Debug, Clone, Copy)]
pub struct NumberAt<T> {
    at: usize,
    of: PhantomData<T>,
}

impl<T: PlainNumber> NumberAt<T> {
    /// The number `at` bytes from the start of the frame.
    #[inline(always)]
    pub fn new(at: usize) -> Self {
        NumberAt { at, of: PhantomData }
    }
}

impl<T: PlainNumber> Access for NumberAt<T> {
    type Value = T;

    #[inline(always)]
    fn get(self, frame: &[u8]) -> Option<T> {
        T::read(frame, self.at)
    }
}

/// The number at one offset minus the number at another.
#[derive(Debug, Clone, Copy)]
pub struct Difference<T> {
    start: NumberAt<T>,
    end: NumberAt<T>,
}

impl<T: PlainNumber> Difference<T> {
    /// The number at `end` minus the number at `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Difference { start: NumberAt::new(start), end: NumberAt::new(end) }
    }
}

impl<T: PlainNumber> Access for Difference<T> {
    type Value = T;

    #[inline]
    fn get(self, frame: &[u8]) -> Option<T> {
        self.end.get(frame)?.minus(self.start.get(frame)?)
    }
}

/// Opaque bytes of a fixed length.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    at: usize,
    len: usize,
}

impl Fixed {
    pub(crate) fn new(at: usize, len: u32) -> Self {
        Fixed { at, len: len as usize }
    }

    /// The number of bytes.
    pub fn width(self) -> usize {
        self.len
    }

    /// The bytes in `frame`.
    #[inline]
    pub fn get(self, frame: &[u8]) -> Option<&[u8]> {
        frame.get(self.at..self.at.checked_add(self.len)?)
    }
}

/// Text that ends at its first NUL.
#[derive(Debug, Clone, Copy)]
pub struct FixedText(Fixed);

impl FixedText {
    pub(crate) fn new(at: usize, len: u32) -> Self {
        FixedText(Fixed::new(at, len))
    }

    /// The text in `frame`, which need not be UTF-8.
    #[inline]
    pub fn get(self, frame: &[u8]) -> Option<&[u8]> {
        let text = self.0.get(frame)?;
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Some(&text[..end])
    }
}
