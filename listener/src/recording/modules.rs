//! The statements of a file about the modules of processes.

use std::io::Write;

use ppt_capture::Modules;

use super::Recording;

impl<W: Write> Recording<W> {
    /// States modules if the file has room: it is complete without them.
    pub(super) fn mapped(&mut self, feed: usize, modules: &Modules) {
        let (bound, most) = (self.bound(), self.base_bound());
        let stated = modules.clone().fitting(most);
        let has_room = self.file.has_room(bound, std::iter::once(stated.payload_len()));
        if !stated.mapped.is_empty() && has_room && self.file.is_open() {
            self.written(|file| match file.source_of(feed) {
                Some(source) => {
                    let stated = Modules { source, is_base: false, ..stated.clone() };
                    file.write(|writer| writer.modules(&stated))
                }
                None => true,
            });
        }
        if let Some(origin) = self.origins.get_mut(feed) {
            origin.modules = Some(modules.clone());
        }
    }

    /// States the current modules at the start of a file.
    pub(super) fn begin_modules(&mut self) {
        let (bound, most) = (self.bound(), self.base_bound());
        let file = &mut self.file;
        for (feed, origin) in self.origins.iter() {
            let Some(source) = file.source_of(feed) else { continue };
            let Some(modules) = origin.modules.clone() else { continue };
            let stated = Modules { source, is_base: true, ..modules.fitting(most) };
            if file.has_room(bound, std::iter::once(stated.payload_len())) {
                file.write(|writer| writer.modules(&stated));
            }
        }
    }
}
