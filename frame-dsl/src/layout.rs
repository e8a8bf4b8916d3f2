//! The layout of frames: the offsets of their fields.
//!
//! The size of every type is a multiple of its alignment, so fields in descending order of
//! alignment follow each other without gaps. That suffices in a buffer of one frame, where fields
//! start at byte 8. With several frames they start at byte 10, after the frame id, and the fields
//! before the first 8-aligned one, a set of `s` bytes together, must be padded to a multiple of 8:
//! by at least `-(2 + s) mod 8` bytes, in any order. `before_aligned` picks the set with the least padding,
//! which depends only on the residues of the sizes. The order 2, 1, then (padded) 4, then (padded)
//! 8 never needs more than that minimum, and nothing after it needs any.

use crate::schema::{Frame, Schema};

/// The layout of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the frame.
    pub size: u32,
    /// The fields by offset.
    pub placed: Vec<PlacedField>,
    /// The padding, by offset.
    pub padding: Vec<Padding>,
    /// Bytes that the layout saves, compared with the declared order.
    pub saved: u32,
}

/// One placed field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedField {
    /// Index in [`Frame::fields`].
    pub index: usize,
    /// Bytes from the start of the frame.
    pub offset: u32,
    /// Bytes of the field, all elements of an array.
    pub bytes: u32,
}

/// A run of padding bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// Bytes from the start of the frame.
    pub offset: u32,
    /// Bytes of the run.
    pub bytes: u32,
}

impl Layout {
    /// The layout of a placed frame of `schema`.
    pub fn for_frame(schema: &Schema, frame: &Frame) -> Layout {
        let mut placed: Vec<PlacedField> = frame
            .fields
            .iter()
            .enumerate()
            .map(|(index, field)| PlacedField {
                index,
                offset: field.offset,
                bytes: field.bytes(schema),
            })
            .collect();
        placed.sort_by_key(|field| field.offset);
        let mut padding = Vec::new();
        let mut end = schema.header_bytes();
        for field in &placed {
            pad(&mut padding, end, field.offset);
            end = end.max(field.offset.saturating_add(field.bytes));
        }
        pad(&mut padding, end, frame.size);
        let declared = declared_size(&extents(schema, frame), schema.header_bytes());
        let saved = declared.saturating_sub(frame.size);
        Layout { size: frame.size, placed, padding, saved }
    }
}

fn pad(padding: &mut Vec<Padding>, from: u32, to: u32) {
    if from < to {
        padding.push(Padding { offset: from, bytes: to - from });
    }
}

/// Sets the offsets and the size of each frame, and the stride.
#[cfg_attr(not(feature = "parser"), expect(dead_code, reason = "only the checker places"))]
pub(crate) fn place(schema: &mut Schema) {
    let header = schema.header_bytes();
    for number in 0..schema.frames.len() {
        let extents = extents(schema, &schema.frames[number]);
        let (offsets, size) = arrange(&extents, header);
        let frame = &mut schema.frames[number];
        frame.size = size;
        for (field, offset) in frame.fields.iter_mut().zip(offsets) {
            field.offset = offset;
        }
    }
    schema.stride = schema.frames.iter().map(|frame| frame.size).max().unwrap_or(0);
}

/// The size and the alignment of a field, for its placement.
#[derive(Debug, Clone, Copy)]
struct Extent {
    bytes: u32,
    align: u32,
    is_at_field: bool,
}

fn extents(schema: &Schema, frame: &Frame) -> Vec<Extent> {
    frame
        .fields
        .iter()
        .map(|field| Extent {
            bytes: field.bytes(schema),
            align: field.ty.align(schema),
            is_at_field: field.at,
        })
        .collect()
}

/// Offsets in declared order, and the size of the frame.
fn arrange(fields: &[Extent], header: u32) -> (Vec<u32>, u32) {
    let mut offsets = vec![0; fields.len()];
    let mut end = header;
    for index in order(fields, header) {
        let Extent { bytes, align, .. } = fields[index];
        let offset = end.next_multiple_of(align);
        offsets[index] = offset;
        end = offset + bytes;
    }
    (offsets, end.next_multiple_of(8))
}

/// The fields in the order of their offsets.
fn order(fields: &[Extent], header: u32) -> Vec<usize> {
    let before_aligned = before_aligned(fields, header);
    // Sorting is stable: declared order breaks every tie.
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by_key(|&index| {
        let Extent { align, is_at_field, .. } = fields[index];
        match (before_aligned[index], align) {
            (true, 2) => 0,
            (true, 1) => 1,
            (true, _) => 2,
            (false, 8) if is_at_field => 3,
            (false, 8) => 4,
            (false, 4) => 5,
            (false, 2) => 6,
            (false, _) => 7,
        }
    });
    order
}

/// The fields before the 8-aligned ones: the set with the least padding. If several have it, the one with
/// the fewest bytes, and then the one declared first.
fn before_aligned(fields: &[Extent], header: u32) -> Vec<bool> {
    // least[i][r]: fewest bytes of a set of the fields from i on with `bytes mod 8 == r`.
    let mut least = vec![[Some(0), None, None, None, None, None, None, None]];
    for field in fields.iter().rev() {
        let rest: [Option<u32>; 8] = least[least.len() - 1];
        let mut with = rest;
        if field.align < 8 {
            for (residue, best) in with.iter_mut().enumerate() {
                let taken = rest[before(residue, field.bytes)].map(|bytes| bytes + field.bytes);
                *best = [taken, *best].into_iter().flatten().min();
            }
        }
        least.push(with);
    }
    least.reverse();
    let gap = |residue: usize| (16 - header % 8 - residue as u32) % 8;
    let mut residue = (0..8)
        .filter(|&residue| least[0][residue].is_some())
        .min_by_key(|&residue| gap(residue))
        .unwrap_or(0);
    let mut chosen = vec![false; fields.len()];
    for (index, field) in fields.iter().enumerate() {
        let rest = least[index + 1];
        let without = before(residue, field.bytes);
        let taken = rest[without].map(|bytes| bytes + field.bytes);
        if field.align < 8 && taken.is_some() && taken == least[index][residue] {
            chosen[index] = true;
            residue = without;
        }
    }
    chosen
}

/// The residue mod 8 to which `bytes` must be added to get `residue`.
fn before(residue: usize, bytes: u32) -> usize {
    (residue + 8 - (bytes % 8) as usize) % 8
}

/// The size of the frame in declared order.
fn declared_size(fields: &[Extent], header: u32) -> u32 {
    fields
        .iter()
        .fold(header, |end, field| {
            end.next_multiple_of(field.align.max(1)).saturating_add(field.bytes)
        })
        .next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SINGLE: u32 = 8;
    const MULTI: u32 = 10;

    fn extent(bytes: u32, align: u32) -> Extent {
        Extent { bytes, align, is_at_field: false }
    }

    /// The smallest size over every order, by trying them all.
    fn smallest(fields: &mut [Extent], from: usize, header: u32) -> u32 {
        if from == fields.len() {
            return declared_size(fields, header);
        }
        let mut best = u32::MAX;
        for with in from..fields.len() {
            fields.swap(from, with);
            best = best.min(smallest(fields, from + 1, header));
            fields.swap(from, with);
        }
        best
    }

    fn any_field() -> impl Strategy<Value = Extent> {
        (prop::sample::select(vec![1u32, 2, 4, 8]), 1u32..14)
            .prop_map(|(align, count)| extent(align * count, align))
    }

    /// Fields small enough for the gap to matter, with at most one `@at`.
    fn any_fields() -> impl Strategy<Value = Vec<Extent>> {
        let small = (prop::sample::select(vec![1u32, 2, 4, 8]), 1u32..4)
            .prop_map(|(align, count)| extent(align * count, align));
        (prop::collection::vec(prop_oneof![small, any_field()], 1..7), any::<prop::sample::Index>())
            .prop_map(|(mut fields, at)| {
                let at = at.index(fields.len());
                fields[at].is_at_field = fields[at].align == 8;
                fields
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_order_is_smaller(mut fields in any_fields(), multi: bool) {
            let header = if multi { MULTI } else { SINGLE };
            let (offsets, size) = arrange(&fields, header);
            prop_assert_eq!(size, smallest(&mut fields.clone(), 0, header));
            // Nothing overlaps, everything is aligned, the `@at` field comes first in its class.
            let mut runs: Vec<(u32, u32)> =
                offsets.iter().zip(&fields).map(|(&at, field)| (at, at + field.bytes)).collect();
            runs.sort_unstable();
            prop_assert!(runs.first().is_some_and(|run| run.0 >= header));
            prop_assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            prop_assert!(offsets.iter().zip(&fields).all(|(at, field)| at % field.align == 0));
            if let Some(at) = fields.iter().position(|field| field.is_at_field) {
                let mine = offsets[at];
                let others = offsets.iter().zip(&mut fields).filter(|(_, f)| f.align == 8);
                prop_assert_eq!(others.map(|(&at, _)| at).min(), Some(mine));
            }
        }

        /// Each permutation of the declaration has the same size; equal fields keep their order.
        #[test]
        fn stable(fields in any_fields(), multi: bool) {
            let header = if multi { MULTI } else { SINGLE };
            let (offsets, _) = arrange(&fields, header);
            for (a, one) in fields.iter().enumerate() {
                for (b, two) in fields.iter().enumerate().skip(a + 1) {
                    if (one.bytes, one.align, one.is_at_field) == (two.bytes, two.align, two.is_at_field) {
                        prop_assert!(offsets[a] < offsets[b]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_hole_after_the_frame_id() {
        // u64, u32, u16: the small ones fill 10..16.
        assert_eq!(
            arrange(&[extent(8, 8), extent(4, 4), extent(2, 2)], MULTI),
            (vec![16, 12, 10], 24)
        );
        // Text may cross the gap: 10..24 leaves no padding at all.
        assert_eq!(arrange(&[extent(8, 8), extent(14, 1)], MULTI), (vec![24, 10], 32));
        assert_eq!(arrange(&[extent(8, 8)], MULTI), (vec![16], 24));
    }

    #[test]
    fn a_thousand_fields_are_instant() {
        let fields: Vec<Extent> = (0..1024)
            .map(|i| extent([1, 2, 4, 8, 3, 6][i % 6], [1, 2, 4, 8, 1, 2][i % 6]))
            .collect();
        let total: u32 = fields.iter().map(|field| field.bytes).sum();
        assert_eq!(arrange(&fields, MULTI).1, (MULTI + total).next_multiple_of(8));
        assert_eq!(arrange(&fields, SINGLE).1, (SINGLE + total).next_multiple_of(8));
    }
}
