//! Fields as parts of the 64-bit words that a frame is stored in.

/// Types whose arrays are plain bytes, with every bit initialised.
///
/// # Safety
/// The type has no padding and no pointers.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($ty:ty)*) => {
        // SAFETY: numbers and bool are bytes without padding (reference, "Type layout").
        $(unsafe impl Plain for $ty {})*
    };
}
plain!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool);

/// Bytes `[FROM, FROM + COUNT)` of an array, at most 8, in the low end of a word.
#[inline(always)]
pub fn array_bytes<T: Plain, const N: usize, const FROM: usize, const COUNT: usize>(
    array: &[T; N],
) -> u64 {
    const { assert!(COUNT <= 8 && FROM + COUNT <= N * size_of::<T>()) };
    let mut word = [0u8; 8];
    // SAFETY: both ranges lie inside (asserted above), they are different objects, and `Plain`
    // promises that the bytes are initialised.
    unsafe {
        let from = array.as_ptr().cast::<u8>().add(FROM);
        from.copy_to_nonoverlapping(word.as_mut_ptr(), COUNT);
    }
    u64::from_le_bytes(word)
}

/// The bits of a float.
#[inline(always)]
pub fn f32_word(value: f32) -> u64 {
    value.to_bits() as u64
}

/// The bits of a double.
#[inline(always)]
pub fn f64_word(value: f64) -> u64 {
    value.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_arrays() {
        let array = [0x0201u16, 0x0403, 0x0605, 0x0807, 0x0a09];
        assert_eq!(array_bytes::<u16, 5, 0, 8>(&array), 0x0807_0605_0403_0201);
        assert_eq!(array_bytes::<u16, 5, 3, 4>(&array), 0x0706_0504);
        assert_eq!(array_bytes::<u16, 5, 9, 1>(&array), 0x0a);
    }
}
