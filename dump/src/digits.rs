//! Decimal digits of integers, eight at a time, written where they belong: most cells of most tables
//! are integers, and a number costs less this way than its way through a buffer of its own.

/// 10⁸: as many numbers have up to eight digits.
const EIGHT: u64 = 100_000_000;

/// Appends `value`.
#[inline(always)]
pub(crate) fn unsigned(value: u64, out: &mut Vec<u8>) {
    if value < EIGHT {
        leading(value as u32, out);
    } else {
        long(value, out);
    }
}

/// Appends `value`.
#[inline(always)]
pub(crate) fn signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(value.unsigned_abs(), out);
}

#[inline]
fn long(value: u64, out: &mut Vec<u8>) {
    let (rest, last) = (value / EIGHT, value % EIGHT);
    if rest < EIGHT {
        leading(rest as u32, out);
    } else {
        leading((rest / EIGHT) as u32, out);
        out.extend_from_slice(&text(eight((rest % EIGHT) as u32)));
    }
    out.extend_from_slice(&text(eight(last as u32)));
}

/// Appends a number below 10⁸ without the zeros in front of it.
#[inline(always)]
fn leading(value: u32, out: &mut Vec<u8>) {
    let digits = eight(value);
    // The last digit stays, also where it is zero.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    let end = out.len() + 8 - zeros as usize;
    out.extend_from_slice(&text(digits >> (8 * zeros)));
    out.truncate(end);
}

/// Eight digits as text, the first one in the lowest byte.
#[inline(always)]
fn text(digits: u64) -> [u8; 8] {
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The eight digits of a number below 10⁸, a byte each, the first one in the lowest byte. Halves are
/// halved again, side by side: n / 100 = n × 10486 / 2²⁰ up to 9,999, n / 10 = n × 103 / 2¹⁰ up to 99.
#[inline(always)]
fn eight(value: u32) -> u64 {
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: u64) -> String {
        let mut out = Vec::new();
        unsigned(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        // Each half of eight digits on its own, then every length and its neighbours.
        for value in (0..10_000).chain((0..10_000).map(|it| it * 10_000)) {
            assert_eq!(shown(value), value.to_string());
        }
        for power in (0..20).map(|it| 10u64.pow(it)) {
            for factor in 1..=9 {
                let value = power.saturating_mul(factor);
                for value in [value - 1, value, value.saturating_add(1)] {
                    assert_eq!(shown(value), value.to_string());
                }
            }
        }
        assert_eq!(shown(u64::MAX), u64::MAX.to_string());
        for value in [i64::MIN, -100_000_000, -1, 0, i64::MAX] {
            let mut out = Vec::new();
            signed(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
