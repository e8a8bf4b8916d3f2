//! `char[N]`: text of at most N bytes.

use std::fmt;

/// UTF-8 text of at most `N` bytes, padded with zeros.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// The empty text.
    pub const EMPTY: Self = Self([0; N]);

    /// Stores `text`, cut to whole characters if it is too long.
    // Not inline: a compiler would keep the bytes of a short text in a register each.
    #[inline(never)]
    pub fn set(&mut self, text: &str) {
        let mut count = text.len().min(N);
        while !text.is_char_boundary(count) {
            count -= 1; // 0 is a boundary
        }
        let (bytes, padding) = self.0.split_at_mut(count);
        bytes.copy_from_slice(&text.as_bytes()[..count]);
        padding.fill(0);
    }

    /// The bytes, including zeros.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Self {
        let mut new = Self::EMPTY;
        new.set(text);
        new
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0[..end]), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        for (text, kept) in [
            ("", [0, 0, 0, 0]),
            ("ab", *b"ab\0\0"),
            ("abcd", *b"abcd"),
            ("abcde", *b"abcd"),
            ("abcä", *b"abc\0"),
            ("aöü", *b"a\xc3\xb6\0"),
            ("🦀", *b"\xf0\x9f\xa6\x80"),
            ("a🦀", *b"a\0\0\0"),
        ] {
            assert_eq!(Text::<4>::from(text).as_bytes(), &kept, "{text}");
        }
    }

    #[test]
    fn a_shorter_text_leaves_nothing_of_the_longer_one() {
        let mut text = Text::<6>::from("longer");
        text.set("now");
        assert_eq!(text.as_bytes(), b"now\0\0\0");
        assert_eq!(format!("{text:?}"), "\"now\"");
    }
}
