//! The frames of a chunk that become rows.

use ppt_capture::columns::frame_id;

/// Frames of one chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub bytes: &'a [u8],
    pub stride: usize,
    /// Which of them, ascending; None: all.
    pub which: Option<&'a [u32]>,
}

impl<'a> Rows<'a> {
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

    /// Those of the kind `id`, whose places are kept in `own`.
    pub fn of_kind(self, id: u16, own: &'a mut Vec<u32>) -> Rows<'a> {
        own.clear();
        let mut place = 0;
        let which = self.which;
        self.each(|frame| {
            if frame_id(frame) == id {
                own.push(which.map_or(place, |which| which[place as usize]));
            }
            place += 1;
        });
        Rows { which: Some(own), ..self }
    }
}
