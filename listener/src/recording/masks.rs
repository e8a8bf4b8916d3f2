//! The statements of a file about masks.

use std::io::Write;
use std::sync::Arc;

use ppt_capture::Flip;

use super::Recording;
use crate::masks::bytes;

impl<W: Write> Recording<W> {
    /// States changes of masks. If there is no room, the capture continues in another file, or is
    /// full: its statements about later frames would be wrong.
    pub(super) fn flipped(&mut self, feed: usize, flip: &Arc<Flip>) {
        let rotates = self.rotation.as_ref().and_then(|rotation| rotation.size);
        if !self.file.has_room(rotates.or(self.max_size), [bytes(flip)].into_iter()) {
            match rotates {
                Some(_) if self.has_content() => self.rotate(),
                Some(_) => {}
                None => self.file.fill(),
            }
        }
        self.written(|file| match file.source_of(feed) {
            Some(source) => {
                let flip = Flip { source, ..(**flip).clone() };
                file.write(|writer| writer.masks(&flip))
            }
            None => true,
        });
        self.states_more = true;
        if let Some(origin) = self.origins.get_mut(feed) {
            origin.disabled.take(flip);
        }
    }

    /// States the masks at the start of a file.
    pub(super) fn begin_masks(&mut self) {
        let file = &mut self.file;
        for (feed, origin) in self.origins.iter() {
            let Some(source) = file.source_of(feed) else { continue };
            for flip in origin.disabled.base() {
                file.write(|writer| writer.masks(&Flip { source, ..flip }));
            }
        }
    }
}
