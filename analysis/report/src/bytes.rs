//! Little-endian numbers as base64, which scripts read as typed arrays.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes as base64.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Numbers of 32 bits.
pub fn encode_words(numbers: &[u32]) -> String {
    base64(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}

/// Floating-point numbers of 32 bits.
pub fn floats(numbers: &[f32]) -> String {
    base64(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
}
