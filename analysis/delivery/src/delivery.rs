//! Delivers ranges of captures to a target: plans a range in the manifest, puts its files, and commits them.
//! [The protocol](crate) says why a killed exporter can continue after any of these steps.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::DeliveryError;
use crate::growing_capture::{GrowingCapture, RangeEnd};
use crate::manifest::{
    CaptureProgress, CaptureState, DeliveredFile, DeliveryState, Manifest, OpenFile, OpenWholes,
    PlannedRange, Settings, UndeliveredFrames,
};
use crate::target::Target;

/// A delivery to a target, with the manifest that was written last.
pub struct Delivery {
    target: Target,
    manifest: Manifest,
    /// The files of the planned range that were put.
    put_files: Vec<DeliveredFile>,
    /// The open spans and chains after the planned range. None before their file was put.
    open: Option<OpenWholes>,
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery").field("target", &self.target).finish_non_exhaustive()
    }
}

/// The most attempts to begin while another exporter writes.
const MAX_ATTEMPTS: usize = 5;

/// A random number that identifies an exporter, 16 hex digits.
fn random_number() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The name of a file of a range. It depends only on the folder of the file and the range.
pub fn file_name(folder: &str, range: &PlannedRange, extension: &str) -> String {
    let short = range.capture.get(..16).unwrap_or(&range.capture);
    let (from, until) = (range.from_chunk, range.until_chunk);
    format!("{folder}/{short}-{from:08}-{until:08}.{extension}")
}

/// The name of the file of the frames that wait for others after a range.
fn open_file_name(range: &PlannedRange) -> String {
    let short = range.capture.get(..16).unwrap_or(&range.capture);
    format!("_ppt-open-{short}-{:08}-{:08}.arrow", range.from_chunk, range.until_chunk)
}

impl Delivery {
    /// Continues the delivery of which `target` has a manifest, or begins one. `captures` are the captures
    /// found so far.
    ///
    /// # Errors
    /// The manifest belongs to other captures or settings, or the target cannot be read or written.
    pub async fn open(
        target: Target,
        settings: Settings,
        captures: &[GrowingCapture],
    ) -> Result<Delivery, DeliveryError> {
        let manifest = Manifest::new(settings.clone());
        let mut delivery = Delivery { target, manifest, put_files: Vec::new(), open: None };
        let exporter = delivery.target.is_shared().then(random_number);
        // This write fails before any capture is read if the target cannot be written.
        for attempt in 1.. {
            delivery.read(&settings, captures).await?;
            delivery.manifest.exporter.clone_from(&exporter);
            match delivery.write().await {
                // A request of an exporter that was killed may arrive late.
                Err(DeliveryError::OtherExporter { .. }) if attempt < MAX_ATTEMPTS => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        delivery.target.check(&delivery.manifest).await?;
        delivery.remove_previous().await?;
        Ok(delivery)
    }

    /// Reads the manifest, and compares it with the settings and the captures.
    async fn read(
        &mut self,
        settings: &Settings,
        captures: &[GrowingCapture],
    ) -> Result<(), DeliveryError> {
        let found = self.target.read().await?;
        self.manifest = found.unwrap_or_else(|| Manifest::new(settings.clone()));
        if self.manifest.captures.is_empty() {
            self.manifest.settings.wholes = settings.wholes;
        }
        // A manifest of an earlier version does not record open spans, so its setting is kept.
        let wholes = self.manifest.settings.wholes;
        if self.manifest.settings != (Settings { wholes, ..settings.clone() }) {
            let name = self.target.manifest_name();
            return Err(DeliveryError::OtherSettings {
                name,
                theirs: options_of(&self.manifest.settings),
            });
        }
        self.check(captures)
    }

    /// The manifest, as it is after the last step.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The target of all files.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether all of a capture is delivered, so that nothing more of it is read.
    pub fn is_over(&self, id: &str) -> bool {
        self.manifest.progress(id).is_some_and(|progress| progress.state.is_over())
    }

    /// Fails if none of the captures belongs to a series of the manifest.
    fn check(&self, captures: &[GrowingCapture]) -> Result<(), DeliveryError> {
        let delivered = &self.manifest.captures;
        let is_delivered = |capture: &GrowingCapture| {
            let (id, series) = (capture.id(), capture.series());
            delivered.iter().any(|progress| progress.id == id || progress.series == series)
        };
        if delivered.is_empty() || captures.is_empty() || captures.iter().any(is_delivered) {
            return Ok(());
        }
        let name = |progress: &CaptureProgress| format!("{} {}", progress.file, progress.id);
        let theirs: Vec<String> = delivered.iter().take(3).map(name).collect();
        let ours = captures.iter().take(3);
        let ours: Vec<String> =
            ours.map(|capture| format!("{} {}", file_name_of(capture), capture.id())).collect();
        Err(DeliveryError::OtherManifest {
            name: self.target.manifest_name(),
            theirs: theirs.join(", "),
            ours: ours.join(", "),
        })
    }

    /// Adds a capture to the manifest, or updates the series of one that it has.
    pub fn take_up(&mut self, capture: &GrowingCapture) {
        if let Some(progress) = self.manifest.progress_mut(capture.id()) {
            progress.series = capture.series().to_owned();
            progress.number = capture.number();
            progress.frames_before = capture.frames_before();
            return;
        }
        self.manifest.state = DeliveryState::Running;
        self.manifest.captures.push(CaptureProgress {
            id: capture.id().to_owned(),
            series: capture.series().to_owned(),
            number: capture.number(),
            frames_before: capture.frames_before(),
            file: file_name_of(capture),
            next_chunk: 0,
            bytes: 0,
            frames: 0,
            state: CaptureState::Growing,
        });
    }

    /// Marks a capture that was cut as growing, because it may have grown since.
    pub fn reopen(&mut self, id: &str) {
        if let Some(progress) = self.manifest.progress_mut(id)
            && progress.state == CaptureState::Cut
        {
            progress.state = CaptureState::Growing;
        }
    }

    /// Writes the next range of a capture into the manifest. `ends`: it is the last one of its series.
    ///
    /// # Errors
    /// The target cannot be written.
    pub async fn plan(
        &mut self,
        capture: &str,
        range_end: &RangeEnd,
        ends: bool,
    ) -> Result<PlannedRange, DeliveryError> {
        let (from_chunk, from_byte) = self
            .manifest
            .progress(capture)
            .map_or((0, 0), |progress| (progress.next_chunk, progress.bytes));
        let range = PlannedRange {
            capture: capture.to_owned(),
            from_chunk,
            until_chunk: range_end.until_chunk,
            from_byte,
            until_byte: range_end.until_byte,
            frames: range_end.frames,
            ends,
        };
        // The manifest before this one has the listed files. After a kill here, the next exporter writes
        // the same list again.
        if let Some(list) = self.target.list_files(&mut self.manifest)? {
            self.target.put(&list.name, list.bytes).await?;
        }
        self.manifest.planned = Some(range.clone());
        self.put_files.clear();
        self.open = None;
        self.write().await?;
        Ok(range)
    }

    /// Puts a file of the planned range.
    ///
    /// # Errors
    /// The target cannot be written.
    pub async fn put(
        &mut self,
        name: String,
        rows: u64,
        bytes: Vec<u8>,
    ) -> Result<(), DeliveryError> {
        let size = bytes.len() as u64;
        self.target.put(&name, bytes).await?;
        self.put_files.push(DeliveredFile { name, rows, bytes: size });
        Ok(())
    }

    /// The frames of a series that wait for others, in the bytes of [`Delivery::keep_open`]. None if none
    /// waits.
    ///
    /// # Errors
    /// The file is gone, damaged, or cannot be read.
    pub async fn open_frames(&self, series: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        let open = self.manifest.open_of(series).and_then(|open| open.file.as_ref());
        let Some(OpenFile { name, crc32c, .. }) = open else { return Ok(None) };
        let bad_file = |why: &str| DeliveryError::BadOpenFile {
            name: format!("{}/{name}", self.target.name().trim_end_matches('/')),
            why: why.to_owned(),
        };
        let found = self.target.content(name).await?.ok_or_else(|| bad_file("the file is gone"))?;
        if *crc32c != format!("{:08x}", crc32c::crc32c(&found)) {
            return Err(bad_file("its checksum is another one"));
        }
        Ok(Some(found))
    }

    /// Puts the file of the `frames` that wait for others after the planned range. None if none waits. The
    /// next commit writes `open` into the manifest.
    ///
    /// # Errors
    /// The target cannot be written.
    pub async fn keep_open(
        &mut self,
        open: OpenWholes,
        frames: Option<Vec<u8>>,
    ) -> Result<(), DeliveryError> {
        let previous = self.manifest.open_of(&open.series).and_then(|open| open.file.as_ref());
        let before = previous.map(|file| file.name.clone());
        let range = self.manifest.planned.as_ref();
        let file = match frames.zip(range.map(open_file_name)) {
            None => None,
            Some((frames, name)) => {
                let (bytes, crc) = (frames.len() as u64, crc32c::crc32c(&frames));
                self.target.put(&name, frames).await?;
                Some(OpenFile { name, bytes, crc32c: format!("{crc:08x}") })
            }
        };
        self.open = Some(OpenWholes { file, before, ..open });
        Ok(())
    }

    /// Removes the previous files of frames that wait for others.
    async fn remove_previous(&self) -> Result<(), DeliveryError> {
        for name in self.manifest.open.iter().filter_map(|open| open.before.as_ref()) {
            self.target.remove(name).await?;
        }
        Ok(())
    }

    /// Writes the manifest in which the planned range is delivered, and its capture is in `state`.
    ///
    /// # Errors
    /// The target cannot be written.
    pub async fn commit(&mut self, state: CaptureState) -> Result<(), DeliveryError> {
        if let Some(range) = self.manifest.planned.take() {
            self.manifest.files.append(&mut self.put_files);
            if let Some(progress) = self.manifest.progress_mut(&range.capture) {
                (progress.next_chunk, progress.bytes) = (range.until_chunk, range.until_byte);
                progress.frames += range.frames;
                progress.state = state;
            }
            if let Some(open) = self.open.take() {
                self.manifest.open.retain(|previous| previous.series != open.series);
                self.manifest.open.push(open);
            }
        }
        self.count_missing();
        self.write().await?;
        self.remove_previous().await
    }

    /// Writes the final `state` of a capture into the manifest.
    ///
    /// # Errors
    /// The target cannot be written.
    pub async fn close(&mut self, id: &str, state: CaptureState) -> Result<(), DeliveryError> {
        self.manifest.planned.take_if(|range| range.capture == id);
        if let Some(progress) = self.manifest.progress_mut(id) {
            progress.state = state;
        }
        self.count_missing();
        self.write().await
    }

    /// Writes the manifest of a complete delivery.
    ///
    /// # Errors
    /// The target cannot be written.
    pub async fn complete(&mut self) -> Result<(), DeliveryError> {
        self.manifest.state = DeliveryState::Complete;
        self.count_missing();
        self.write().await
    }

    /// Whether each capture has ended, and the next file of each continued capture was found.
    pub fn is_complete(&self) -> bool {
        let captures = &self.manifest.captures;
        let has_next = |progress: &CaptureProgress| {
            let is_later = |next: &CaptureProgress| next.number > progress.number;
            captures.iter().any(|next| next.series == progress.series && is_later(next))
        };
        let is_done = |progress: &CaptureProgress| {
            progress.state.is_over()
                && (progress.state != CaptureState::Continued || has_next(progress))
        };
        !captures.is_empty() && captures.iter().all(is_done)
    }

    /// Records the missing frames. Each capture has the number of frames in the earlier files of its
    /// series.
    fn count_missing(&mut self) {
        let mut series: BTreeMap<&str, Vec<&CaptureProgress>> = BTreeMap::new();
        for capture in &self.manifest.captures {
            series.entry(&capture.series).or_default().push(capture);
        }
        let mut missing = Vec::new();
        for (series, mut files) in series {
            files.sort_by_key(|file| file.number);
            let mut add = |what: String, frames: Option<u64>| {
                missing.push(UndeliveredFrames { series: series.to_owned(), what, frames });
            };
            let mut before: Option<&CaptureProgress> = None;
            for file in files {
                let (end, number) = before
                    .map_or((0, 0), |before| (before.frames_before + before.frames, before.number));
                let is_final = before.is_none_or(|before| before.state.is_over());
                let gap = file.frames_before.saturating_sub(end);
                if gap > 0 && is_final {
                    add(absent_files(before, number, file.number), Some(gap));
                }
                before = Some(file);
            }
            if let Some(last) = before.filter(|before| before.state == CaptureState::Gone) {
                add(format!("the end of {}", last.file), None);
            }
        }
        self.manifest.missing = missing;
    }

    async fn write(&mut self) -> Result<(), DeliveryError> {
        self.target.write(&self.manifest).await
    }
}

/// The files that are missing between two files of a series, in words.
fn absent_files(before: Option<&CaptureProgress>, number: u32, next: u32) -> String {
    let end = before.filter(|before| before.state == CaptureState::Gone);
    let end = end.map(|end| format!("the end of {}", end.file));
    let files = match (number + 1, next - 1) {
        (first, last) if first > last => None,
        (first, last) if first == last => Some(format!("file {first} of the series")),
        (first, last) => Some(format!("files {first} to {last} of the series")),
    };
    let parts: Vec<String> = end.into_iter().chain(files).collect();
    if parts.is_empty() {
        "frames between two files of the series".to_owned()
    } else {
        parts.join(", and ")
    }
}

/// The name of the file of a capture, without its folder.
fn file_name_of(capture: &GrowingCapture) -> String {
    let name = capture.path().file_name().unwrap_or(capture.path().as_os_str());
    name.to_string_lossy().into_owned()
}

/// Settings as options of the command line.
fn options_of(settings: &Settings) -> String {
    let mut text = format!("--format {} --time {}", settings.format, settings.time);
    for buffer in &settings.buffers {
        text += &format!(" --buffer {buffer}");
    }
    if let Some(frame) = &settings.frame {
        text += &format!(" --frame {frame}");
    }
    text
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::manifest::FILES_PER_LIST;

    fn settings() -> Settings {
        Settings {
            format: "parquet".to_owned(),
            time: "both".to_owned(),
            frame: None,
            buffers: Vec::new(),
            wholes: true,
        }
    }

    #[test]
    fn a_delivery_of_many_files_goes_on_behind_its_lists() {
        let folder = tempfile::tempdir().unwrap();
        let open =
            || block_on(Delivery::open(Target::folder(folder.path()).unwrap(), settings(), &[]));
        let mut delivery = open().unwrap();
        for rows in 0..2 * FILES_PER_LIST as u64 {
            delivery.manifest.files.push(DeliveredFile {
                name: format!("a/{rows}"),
                rows,
                bytes: 1,
            });
        }
        let range_end = RangeEnd { until_chunk: 1, until_byte: 9, frames: 3, is_all: true };
        // The exporter is killed once after the list was put, and once within the range.
        block_on(delivery.target.write(&delivery.manifest)).unwrap();
        let list = delivery.manifest.list_files().unwrap().unwrap();
        block_on(delivery.target.put(&list.name, list.bytes.clone())).unwrap();
        drop(delivery);
        let mut delivery = open().unwrap();
        let range = block_on(delivery.plan("c", &range_end, false)).unwrap();
        assert_eq!(std::fs::read(folder.path().join(&list.name)).unwrap(), list.bytes);
        drop(delivery);
        let mut delivery = open().unwrap();
        assert_eq!(delivery.manifest.planned.as_ref(), Some(&range));
        block_on(delivery.put("a/last".to_owned(), 7, vec![1])).unwrap();
        block_on(delivery.commit(CaptureState::Growing)).unwrap();
        drop(delivery);
        let delivery = open().unwrap();
        let manifest = delivery.manifest();
        assert_eq!((manifest.lists.len(), manifest.files.len()), (1, FILES_PER_LIST + 1));
        assert_eq!(manifest.file_count(), 2 * FILES_PER_LIST as u64 + 1);
        assert_eq!(manifest.rows(), (0..2 * FILES_PER_LIST as u64).sum::<u64>() + 7);
        let listed: Vec<DeliveredFile> = serde_json::from_slice(&list.bytes).unwrap();
        let all = listed.iter().chain(&manifest.files).map(|file| file.name.clone());
        let expected = (0..2 * FILES_PER_LIST).map(|rows| format!("a/{rows}"));
        assert!(all.eq(expected.chain(["a/last".to_owned()])));
    }
}
