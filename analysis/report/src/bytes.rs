//! Little-endian numbers as base64, which scripts read as typed arrays.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Encodes 32-bit integers.
pub fn encode_words(numbers: &[u32]) -> String {
    base64(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}

/// Encodes 32-bit floating-point numbers.
pub fn floats(numbers: &[f32]) -> String {
    base64(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}
