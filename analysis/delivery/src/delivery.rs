//! The steps of a delivery.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::DeliveryError;
use crate::growing::{Cut, GrowingCapture};
use crate::manifest::{
    CaptureProgress, CaptureState, DeliveredFile, DeliveryState, Manifest, MissingFrames, OpenFile,
    OpenWholes, PlannedRange, Settings,
};
use crate::target::Target;

/// A delivery on its way.
pub struct Delivery {
    target: Target,
    manifest: Manifest,
    /// The files of the planned range that are there.
    put: Vec<DeliveredFile>,
    /// What is open behind the planned range, if its file is there.
    open: Option<OpenWholes>,
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery").field("target", &self.target).finish_non_exhaustive()
    }
}

/// How often an exporter begins again because another one wrote at the same time.
const ATTEMPTS: usize = 5;

/// A number that no other exporter has.
fn some_number() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The name of the file that has the frames of one kind of a range: it follows from what is in it.
pub fn file_name(folder: &str, range: &PlannedRange, extension: &str) -> String {
    let short = range.capture.get(..16).unwrap_or(&range.capture);
    let (from, until) = (range.from_chunk, range.until_chunk);
    format!("{folder}/{short}-{from:08}-{until:08}.{extension}")
}

/// The name of the file that has the frames that are open behind a range.
fn open_file_name(range: &PlannedRange) -> String {
    let short = range.capture.get(..16).unwrap_or(&range.capture);
    format!("_ppt-open-{short}-{:08}-{:08}.arrow", range.from_chunk, range.until_chunk)
}

impl Delivery {
    /// Goes on with what is in `target`, or begins there; `captures` are those that are there.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn open(
        target: Target,
        settings: Settings,
        captures: &[GrowingCapture],
    ) -> Result<Delivery, DeliveryError> {
        let manifest = Manifest::new(settings.clone());
        let mut delivery = Delivery { target, manifest, put: Vec::new(), open: None };
        let exporter = delivery.target.is_shared().then(some_number);
        // Whoever cannot write says so before anything is read.
        for attempt in 1.. {
            delivery.read(&settings, captures).await?;
            delivery.manifest.exporter.clone_from(&exporter);
            match delivery.write().await {
                // The one that was killed may have had a manifest on its way.
                Err(DeliveryError::OtherExporter { .. }) if attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        delivery.target.check(&delivery.manifest).await?;
        delivery.remove_old().await?;
        Ok(delivery)
    }

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
                theirs: told(&self.manifest.settings),
            });
        }
        self.check(captures)
    }

    /// What was delivered, up to where.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where files go.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether nothing more of a capture is wanted.
    pub fn is_over(&self, id: &str) -> bool {
        self.manifest.progress(id).is_some_and(|progress| progress.state.is_over())
    }

    /// Refuses captures that have nothing to do with those of the manifest.
    fn check(&self, captures: &[GrowingCapture]) -> Result<(), DeliveryError> {
        let known = &self.manifest.captures;
        let is_one = |capture: &GrowingCapture| {
            let (id, series) = (capture.id(), capture.series());
            known.iter().any(|progress| progress.id == id || progress.series == series)
        };
        if known.is_empty() || captures.is_empty() || captures.iter().any(is_one) {
            return Ok(());
        }
        let name = |progress: &CaptureProgress| format!("{} {}", progress.file, progress.id);
        let theirs: Vec<String> = known.iter().take(3).map(name).collect();
        let ours = captures.iter().take(3);
        let ours: Vec<String> =
            ours.map(|capture| format!("{} {}", file_of(capture), capture.id())).collect();
        Err(DeliveryError::OtherManifest {
            name: self.target.manifest_name(),
            theirs: theirs.join(", "),
            ours: ours.join(", "),
        })
    }

    /// Takes up a capture; notes what became known of it since.
    pub fn take_up(&mut self, capture: &GrowingCapture) {
        let place = (capture.series(), capture.number(), capture.frames_before());
        if let Some(known) = self.manifest.progress_mut(capture.id()) {
            (known.series, known.number, known.frames_before) =
                (place.0.to_owned(), place.1, place.2);
            return;
        }
        self.manifest.state = DeliveryState::Running;
        self.manifest.captures.push(CaptureProgress {
            id: capture.id().to_owned(),
            series: place.0.to_owned(),
            number: place.1,
            frames_before: place.2,
            file: file_of(capture),
            next_chunk: 0,
            bytes: 0,
            frames: 0,
            state: CaptureState::Growing,
        });
    }

    /// A capture that was cut may have grown since: it is looked at again.
    pub fn reopen(&mut self, id: &str) {
        if let Some(known) = self.manifest.progress_mut(id)
            && known.state == CaptureState::Cut
        {
            known.state = CaptureState::Growing;
        }
    }

    /// Writes down which range is delivered next.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn plan(
        &mut self,
        capture: &str,
        cut: &Cut,
        ends: bool,
    ) -> Result<PlannedRange, DeliveryError> {
        let (from_chunk, from_byte) = self
            .manifest
            .progress(capture)
            .map_or((0, 0), |progress| (progress.next_chunk, progress.bytes));
        let range = PlannedRange {
            capture: capture.to_owned(),
            from_chunk,
            until_chunk: cut.until_chunk,
            from_byte,
            until_byte: cut.until_byte,
            frames: cut.frames,
            ends,
        };
        // What it lists was in the manifest before, so whoever is killed here writes the same list again.
        if let Some((name, bytes)) = self.target.list_files(&mut self.manifest)? {
            self.target.put(&name, bytes).await?;
        }
        self.manifest.planned = Some(range.clone());
        self.put.clear();
        self.open = None;
        self.write().await?;
        Ok(range)
    }

    /// Puts a file of the planned range.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn put(
        &mut self,
        name: String,
        rows: u64,
        bytes: Vec<u8>,
    ) -> Result<(), DeliveryError> {
        let size = bytes.len() as u64;
        self.target.put(&name, bytes).await?;
        self.put.push(DeliveredFile { name, rows, bytes: size });
        Ok(())
    }

    /// The frames of a series that wait for others, as [`Delivery::keep_open`] got them; None: there are none.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn open_frames(&self, series: &str) -> Result<Option<Vec<u8>>, DeliveryError> {
        let open = self.manifest.open_of(series).and_then(|open| open.file.as_ref());
        let Some(OpenFile { name, crc32c, .. }) = open else { return Ok(None) };
        let bad = |why: &str| DeliveryError::BadOpenFile {
            name: format!("{}/{name}", self.target.name().trim_end_matches('/')),
            why: why.to_owned(),
        };
        let found = self.target.content(name).await?.ok_or_else(|| bad("the file is gone"))?;
        if *crc32c != format!("{:08x}", crc32c::crc32c(&found)) {
            return Err(bad("its checksum is another one"));
        }
        Ok(Some(found))
    }

    /// Puts the frames that wait for others behind the planned range; None: none waits. What else `open`
    /// says of them is in the manifest from the next commit on.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn keep_open(
        &mut self,
        open: OpenWholes,
        frames: Option<Vec<u8>>,
    ) -> Result<(), DeliveryError> {
        let known = self.manifest.open_of(&open.series).and_then(|open| open.file.as_ref());
        let before = known.map(|file| file.name.clone());
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

    /// Removes files of what was open before, which no manifest needs any more.
    async fn remove_old(&self) -> Result<(), DeliveryError> {
        for name in self.manifest.open.iter().filter_map(|open| open.before.as_ref()) {
            self.target.remove(name).await?;
        }
        Ok(())
    }

    /// Writes down that the planned range is delivered, and in which state its capture is.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn commit(&mut self, state: CaptureState) -> Result<(), DeliveryError> {
        if let Some(range) = self.manifest.planned.take() {
            self.manifest.files.append(&mut self.put);
            if let Some(known) = self.manifest.progress_mut(&range.capture) {
                (known.next_chunk, known.bytes) = (range.until_chunk, range.until_byte);
                known.frames += range.frames;
                known.state = state;
            }
            if let Some(open) = self.open.take() {
                self.manifest.open.retain(|known| known.series != open.series);
                self.manifest.open.push(open);
            }
        }
        self.count_missing();
        self.write().await?;
        self.remove_old().await
    }

    /// Writes down that nothing more comes of a capture.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn close(&mut self, id: &str, state: CaptureState) -> Result<(), DeliveryError> {
        self.manifest.planned.take_if(|range| range.capture == id);
        if let Some(known) = self.manifest.progress_mut(id) {
            known.state = state;
        }
        self.count_missing();
        self.write().await
    }

    /// Writes down that all is delivered.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    pub async fn complete(&mut self) -> Result<(), DeliveryError> {
        self.manifest.state = DeliveryState::Complete;
        self.count_missing();
        self.write().await
    }

    /// Whether each capture is over, and what continues in another file has that file.
    pub fn is_complete(&self) -> bool {
        let all = &self.manifest.captures;
        let has_next = |progress: &CaptureProgress| {
            all.iter().any(|next| next.series == progress.series && next.number > progress.number)
        };
        let is_done = |progress: &CaptureProgress| {
            progress.state.is_over()
                && (progress.state != CaptureState::Continued || has_next(progress))
        };
        !all.is_empty() && all.iter().all(is_done)
    }

    /// What is missing follows from the captures: each says how many frames were in the files before it.
    fn count_missing(&mut self) {
        let mut series: BTreeMap<&str, Vec<&CaptureProgress>> = BTreeMap::new();
        for capture in &self.manifest.captures {
            series.entry(&capture.series).or_default().push(capture);
        }
        let mut missing = Vec::new();
        for (series, mut files) in series {
            files.sort_by_key(|file| file.number);
            let mut add = |what: String, frames: Option<u64>| {
                missing.push(MissingFrames { series: series.to_owned(), what, frames });
            };
            let mut before: Option<&CaptureProgress> = None;
            for file in files {
                let (end, number) = before
                    .map_or((0, 0), |before| (before.frames_before + before.frames, before.number));
                let is_known = before.is_none_or(|before| before.state.is_over());
                let gap = file.frames_before.saturating_sub(end);
                if gap > 0 && is_known {
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

/// Which files are missing between two of a series.
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

fn file_of(capture: &GrowingCapture) -> String {
    let name = capture.path().file_name().unwrap_or(capture.path().as_os_str());
    name.to_string_lossy().into_owned()
}

/// Settings as options of the command line.
fn told(settings: &Settings) -> String {
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
    use crate::manifest::LISTED;

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
        for rows in 0..2 * LISTED as u64 {
            delivery.manifest.files.push(DeliveredFile {
                name: format!("a/{rows}"),
                rows,
                bytes: 1,
            });
        }
        let cut = Cut { until_chunk: 1, until_byte: 9, frames: 3, is_all: true };
        // The exporter is killed behind the list, and in the range.
        block_on(delivery.target.write(&delivery.manifest)).unwrap();
        let (name, list) = delivery.manifest.list_files().unwrap().unwrap();
        block_on(delivery.target.put(&name, list.clone())).unwrap();
        drop(delivery);
        let mut delivery = open().unwrap();
        let range = block_on(delivery.plan("c", &cut, false)).unwrap();
        assert_eq!(std::fs::read(folder.path().join(&name)).unwrap(), list);
        drop(delivery);
        let mut delivery = open().unwrap();
        assert_eq!(delivery.manifest.planned.as_ref(), Some(&range));
        block_on(delivery.put("a/last".to_owned(), 7, vec![1])).unwrap();
        block_on(delivery.commit(CaptureState::Growing)).unwrap();
        drop(delivery);
        let delivery = open().unwrap();
        let manifest = delivery.manifest();
        assert_eq!((manifest.lists.len(), manifest.files.len()), (1, LISTED + 1));
        assert_eq!(manifest.file_count(), 2 * LISTED as u64 + 1);
        assert_eq!(manifest.rows(), (0..2 * LISTED as u64).sum::<u64>() + 7);
        let listed: Vec<DeliveredFile> = serde_json::from_slice(&list).unwrap();
        let all = listed.iter().chain(&manifest.files).map(|file| file.name.clone());
        let expected = (0..2 * LISTED).map(|rows| format!("a/{rows}"));
        assert!(all.eq(expected.chain(["a/last".to_owned()])));
    }
}
