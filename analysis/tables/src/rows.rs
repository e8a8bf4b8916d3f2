//! The frames of a chunk that become rows.

use ppt_capture::columns::frame_id;

/// Frames of one chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsInChunk<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
    /// Which of them, ascending; None: all.
    pub which: Option<&'a [u32]>,
}

impl<'a> RowsInChunk<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.which.map_or(self.bytes.len() / self.stride, <[u32]>::len)
    }

    /// Gives each of them to `take`, in order.
    #[inline(always)]
    pub fn each(&self, mut take: impl FnMut(&'a [u8])) {
        match self.which {
            None => self.bytes.chunks_exact(self.stride).for_each(take),
            Some(which) => {
                for &row in which {
                    take(&self.bytes[row as usize * self.stride..][..self.stride]);
                }
            }
        }
    }

    /// Those of the kind `id`, whose places are kept in `own`. Where many kinds are read, [`KindRows`]
    /// finds all of them at once.
    pub fn of_kind(self, id: u16, own: &'a mut Vec<u32>) -> RowsInChunk<'a> {
        own.clear();
        let mut place = 0;
        let which = self.which;
        self.each(|frame| {
            if frame_id(frame) == id {
                own.push(which.map_or(place, |which| which[place as usize]));
            }
            place += 1;
        });
        RowsInChunk { which: Some(own), ..self }
    }
}

/// The frames of a chunk by their kinds.
#[derive(Debug, Default)]
pub(crate) struct KindRows {
    kinds: Vec<Vec<u32>>,
    /// Frames whose kind their schema does not have.
    pub unknown: u64,
}

impl KindRows {
    /// Finds those of a chunk with `kinds` kinds, in place of the ones before.
    pub fn find(&mut self, rows: RowsInChunk<'_>, kinds: usize) {
        self.kinds.iter_mut().for_each(Vec::clear);
        self.kinds.resize_with(self.kinds.len().max(kinds), Vec::new);
        self.unknown = 0;
        let mut place = 0;
        rows.each(|frame| {
            let row = rows.which.map_or(place, |which| which[place as usize]);
            place += 1;
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
        for which in [None, Some(&[0, 2, 4][..])] {
            let rows = RowsInChunk { bytes: &bytes, stride: 16, which };
            found.find(rows, 3);
            for id in 0..4 {
                let mut own = Vec::new();
                let expected = rows.of_kind(id, &mut own).which.unwrap();
                assert_eq!(found.get(id), expected, "{id}, {which:?}");
            }
            assert_eq!(found.unknown, 1, "{which:?}");
        }
    }
}
