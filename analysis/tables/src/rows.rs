//! The frames of a chunk that become rows.

use ppt_capture::columns::frame_id;

/// Frames of one chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsInChunk<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
    /// Row numbers of the selected frames, ascending; None for all frames.
    pub selected: Option<&'a [u32]>,
}

impl<'a> RowsInChunk<'a> {
    /// The number of selected frames.
    pub fn len(&self) -> usize {
        self.selected.map_or(self.bytes.len() / self.stride, <[u32]>::len)
    }

    /// Passes each selected frame to `take`, in order.
    #[inline(always)]
    pub fn each(&self, mut take: impl FnMut(&'a [u8])) {
        match self.selected {
            None => self.bytes.chunks_exact(self.stride).for_each(take),
            Some(selected) => {
                for &row in selected {
                    take(&self.bytes[row as usize * self.stride..][..self.stride]);
                }
            }
        }
    }

    /// Passes the row number and the bytes of each selected frame to `take`, in order.
    #[inline(always)]
    pub fn each_row(&self, mut take: impl FnMut(u32, &'a [u8])) {
        let selected = self.selected;
        let mut place = 0;
        self.each(|frame| {
            take(selected.map_or(place, |selected| selected[place as usize]), frame);
            place += 1;
        });
    }

    /// The frames of the kind `id`; `scratch` takes their row numbers. [`KindRows`] groups the frames of
    /// all kinds in one pass.
    pub fn of_kind(self, id: u16, scratch: &'a mut Vec<u32>) -> RowsInChunk<'a> {
        scratch.clear();
        self.each_row(|row, frame| {
            if frame_id(frame) == id {
                scratch.push(row);
            }
        });
        RowsInChunk { selected: Some(scratch), ..self }
    }
}

/// The row numbers of a chunk's frames, by kind.
#[derive(Debug, Default)]
pub(crate) struct KindRows {
    kinds: Vec<Vec<u32>>,
    /// Number of frames whose kind is not in their schema.
    pub unknown: u64,
}

impl KindRows {
    /// Replaces the content by the rows of a chunk with `kinds` kinds.
    pub fn group(&mut self, rows: RowsInChunk<'_>, kinds: usize) {
        self.kinds.iter_mut().for_each(Vec::clear);
        self.kinds.resize_with(self.kinds.len().max(kinds), Vec::new);
        self.unknown = 0;
        rows.each_row(|row, frame| {
            match self.kinds[..kinds].get_mut(usize::from(frame_id(frame))) {
                Some(of_kind) => of_kind.push(row),
                None => self.unknown += 1,
            }
        });
    }

    /// The rows of the kind `id`.
    pub fn get(&self, id: u16) -> &[u32] {
        self.kinds.get(usize::from(id)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_at_once() {
        let frame = |id: u16| [[0; 8], u64::from(id).to_le_bytes()].concat();
        let bytes: Vec<u8> = [2, 0, 9, 2, 1].into_iter().flat_map(frame).collect();
        let mut found = KindRows::default();
        for selected in [None, Some(&[0, 2, 4][..])] {
            let rows = RowsInChunk { bytes: &bytes, stride: 16, selected };
            found.group(rows, 3);
            for id in 0..4 {
                let mut scratch = Vec::new();
                let expected = rows.of_kind(id, &mut scratch).selected.unwrap();
                assert_eq!(found.get(id), expected, "{id}, {selected:?}");
            }
            assert_eq!(found.unknown, 1, "{selected:?}");
        }
    }
}
