//! Hashes of a program's values, for fields of types `hash` and `hash128`: XXH3 with seed 0, as of xxHash 0.8.
//! All output languages of pptc compute the same hashes.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The hash of `bytes`, for fields of type `hash`.
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The hash of the 8 bytes of a number, the least significant one first.
pub fn hash_u64(number: u64) -> u64 {
    xxh3_64(&number.to_le_bytes())
}

/// The hash of `bytes`, for fields of type `hash128`, the most significant byte first.
pub fn hash128(bytes: &[u8]) -> [u8; 16] {
    xxh3_128(bytes).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that xxHash publishes, of bytes that it generates.
    #[test]
    fn published_hashes() {
        let mut state = 2_654_435_761u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            let byte = (state >> 56) as u8;
            state = state.wrapping_mul(11_400_714_785_074_694_797);
            byte
        })
        .take(2367)
        .collect();
        for (len, low) in [
            (0, 0x2d06_8005_38d3_94c2),
            (1, 0xc44b_dff4_074e_ecdb),
            (12, 0xa713_daf0_dfbb_77e7),
            (195, 0xcd94_217e_e362_ec3a),
            (2367, 0xcb37_aeb9_e5d3_61ed),
        ] {
            assert_eq!(hash(&bytes[..len]), low, "{len}");
        }
        let wide = 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128;
        assert_eq!(hash128(&[]), wide.to_be_bytes());
        assert_eq!(hash_u64(0x0102_0304), hash(&[4, 3, 2, 1, 0, 0, 0, 0]));
    }
}
