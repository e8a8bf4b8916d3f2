//! The manifest of a delivery: the delivered files, the position in each capture, the planned range.

use serde::{Deserialize, Serialize};

/// The value of `format` in each manifest.
const FORMAT: &str = "ppt-export-manifest";
/// The newest version that is read. Manifests without lists are of version 1.
const VERSION: u32 = 2;
/// The number of files in a list. A manifest has fewer than twice as many.
pub(crate) const FILES_PER_LIST: usize = 250;

/// The delivered files, the position in each capture, and the range that is being written.
///
/// The JSON text has a checksum over all other fields, which shows that a text was cut or edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    version: u32,
    /// Whether more may be delivered.
    pub state: DeliveryState,
    /// The settings, which do not change during a delivery.
    pub settings: Settings,
    /// The captures, in the order in which they were found.
    pub captures: Vec<CaptureProgress>,
    /// Frames that no file will have.
    pub missing: Vec<UndeliveredFrames>,
    /// The range that is being written. Some or all of its files may exist.
    pub planned: Option<PlannedRange>,
    /// The complete files that are in no list.
    pub files: Vec<DeliveredFile>,
    /// Lists of the earlier files. They do not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<FileList>,
    /// The open spans and chains of each series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenWholes>,
    /// A random number of the exporter, if several can write. It makes their manifests differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exporter: Option<String>,
    crc32c: String,
}

/// Whether more may be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// An exporter is running, or can continue.
    Running,
    /// All captures have ended, and the files have all of their content.
    Complete,
}

/// The settings that all files of a delivery have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The value of `--format`.
    pub format: String,
    /// The value of `--time`.
    pub time: String,
    /// The kind of frames that is delivered. None if all are.
    pub frame: Option<String>,
    /// The buffers that are delivered. Empty if all are.
    pub buffers: Vec<String>,
    /// Whether spans and chains are delivered, too. Earlier versions did not deliver them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wholes: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The open spans and chains of a series.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenWholes {
    /// The id of the series.
    pub series: String,
    /// The time up to which no span or chain is open, in ns since the epoch.
    pub until: Option<i64>,
    /// The number of frames that arrived late, with a time before `until`.
    pub late: u64,
    /// The number of frames that were delivered alone because too many waited.
    pub let_go: u64,
    /// The file of the frames that wait for others. None if none waits.
    pub file: Option<OpenFile>,
    /// The name of the previous such file, which may still exist.
    pub before: Option<String>,
}

/// A file of frames that wait for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFile {
    /// The name of the file, relative to the folder of the manifest.
    pub name: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The checksum of the file, 8 hex digits.
    pub crc32c: String,
}

/// A capture, and the position up to which it is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureProgress {
    /// The id of the capture, 32 hex digits.
    pub id: String,
    /// The id of its series, which is the id of the first file.
    pub series: String,
    /// The number of the capture in the series, from 1.
    pub number: u32,
    /// The number of frames in all earlier files of the series.
    pub frames_before: u64,
    /// The name of its file, without the folder.
    pub file: String,
    /// The number of the first chunk that is not delivered.
    pub next_chunk: u64,
    /// Bytes of the capture up to that chunk.
    pub bytes: u64,
    /// The number of delivered frames of all kinds.
    pub frames: u64,
    /// Whether the capture may grow.
    pub state: CaptureState,
}

/// Whether a capture may grow, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureState {
    /// The capture may grow.
    Growing,
    /// The capture has ended, and all of it is delivered.
    Complete,
    /// The capture continues in another file, and all of this file is delivered.
    Continued,
    /// The writer ended without an end chunk, and all whole chunks are delivered.
    Cut,
    /// The file was removed, replaced or truncated before all of it was delivered.
    Gone,
}

impl CaptureState {
    /// Whether the capture does not grow any more.
    pub fn is_over(self) -> bool {
        self != CaptureState::Growing
    }
}

/// Frames that no file has, because their capture was gone before it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndeliveredFrames {
    /// The id of the series, or of a capture without a series.
    pub series: String,
    /// The missing files, in words.
    pub what: String,
    /// The number of frames of all kinds. None if it is unknown.
    pub frames: Option<u64>,
}

/// A range of chunks of one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRange {
    /// The id of the capture.
    pub capture: String,
    /// The number of the first chunk.
    pub from_chunk: u64,
    /// The number after that of the last chunk.
    pub until_chunk: u64,
    /// The first byte of the capture that belongs to the range.
    pub from_byte: u64,
    /// The first byte of the capture after the range.
    pub until_byte: u64,
    /// The number of frames of all kinds.
    pub frames: u64,
    /// Whether this is the last range of the series. All open spans and chains are then delivered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ends: bool,
}

/// A complete file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveredFile {
    /// The name of the file, relative to the folder of the manifest.
    pub name: String,
    /// The number of its rows.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// A list of complete files, in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    /// The name of the list, relative to the folder of the manifest.
    pub name: String,
    /// The number of files that it lists.
    pub files: u64,
    /// The sum of their rows.
    pub rows: u64,
    /// The checksum of the list, 8 hex digits.
    pub crc32c: String,
}

/// The name and the content of a new list of files.
pub(crate) struct ListContent {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Manifest {
    /// A manifest without captures and files.
    pub fn new(settings: Settings) -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            version: 1,
            state: DeliveryState::Running,
            settings,
            captures: Vec::new(),
            missing: Vec::new(),
            planned: None,
            files: Vec::new(),
            lists: Vec::new(),
            open: Vec::new(),
            exporter: None,
            crc32c: String::new(),
        }
    }

    /// The manifest as JSON, with its checksum.
    ///
    /// # Errors
    /// Errors of `serde_json`. Texts and numbers cause none.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let sealed = Manifest { crc32c: self.checksum()?, ..self.clone() };
        let mut bytes = serde_json::to_vec_pretty(&sealed)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Parses a manifest.
    ///
    /// # Errors
    /// The mistake in the text, in words.
    pub fn from_json(bytes: &[u8]) -> Result<Manifest, String> {
        let read: Manifest = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if read.format != FORMAT {
            return Err(format!("it calls itself `{}`", read.format));
        }
        if read.version > VERSION {
            return Err(format!("a later version of ppt wrote it ({})", read.version));
        }
        let expected = read.checksum().map_err(|error| error.to_string())?;
        if read.crc32c != expected {
            return Err(format!("its checksum is {expected}, and it says {}", read.crc32c));
        }
        Ok(Manifest { crc32c: String::new(), ..read })
    }

    /// The checksum of all other fields.
    fn checksum(&self) -> Result<String, serde_json::Error> {
        let unsealed = Manifest { crc32c: String::new(), ..self.clone() };
        Ok(format!("{:08x}", crc32c::crc32c(&serde_json::to_vec(&unsealed)?)))
    }

    /// The progress of the capture with this id.
    pub fn progress(&self, id: &str) -> Option<&CaptureProgress> {
        self.captures.iter().find(|capture| capture.id == id)
    }

    pub(crate) fn progress_mut(&mut self, id: &str) -> Option<&mut CaptureProgress> {
        self.captures.iter_mut().find(|capture| capture.id == id)
    }

    /// The open spans and chains of a series.
    pub fn open_of(&self, series: &str) -> Option<&OpenWholes> {
        self.open.iter().find(|open| open.series == series)
    }

    /// Rows of all files.
    pub fn rows(&self) -> u64 {
        let listed: u64 = self.lists.iter().map(|list| list.rows).sum();
        listed + self.files.iter().map(|file| file.rows).sum::<u64>()
    }

    /// The number of all files.
    pub fn file_count(&self) -> u64 {
        self.lists.iter().map(|list| list.files).sum::<u64>() + self.files.len() as u64
    }

    /// Moves the earliest files of a long manifest into a list, because the manifest is written for each
    /// range and must not grow with the number of files. The list must be written before the manifest.
    ///
    /// # Errors
    /// Errors of `serde_json`. Texts and numbers cause none.
    pub(crate) fn list_files(&mut self) -> Result<Option<ListContent>, serde_json::Error> {
        if self.files.len() < 2 * FILES_PER_LIST {
            return Ok(None);
        }
        let listed: Vec<DeliveredFile> = self.files.drain(..FILES_PER_LIST).collect();
        let mut bytes = serde_json::to_vec_pretty(&listed)?;
        bytes.push(b'\n');
        let name = format!("_ppt-files-{:06}.json", self.lists.len() + 1);
        self.lists.push(FileList {
            name: name.clone(),
            files: listed.len() as u64,
            rows: listed.iter().map(|file| file.rows).sum(),
            crc32c: format!("{:08x}", crc32c::crc32c(&bytes)),
        });
        self.version = VERSION;
        Ok(Some(ListContent { name, bytes }))
    }

    /// The number of frames that are known to be missing.
    pub fn frames_missing(&self) -> u64 {
        self.missing.iter().filter_map(|missing| missing.frames).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let settings = Settings {
            format: "parquet".to_owned(),
            time: "both".to_owned(),
            frame: None,
            buffers: vec!["a".to_owned()],
            wholes: true,
        };
        let mut manifest = Manifest::new(settings);
        for rows in 0..3 {
            manifest.files.push(DeliveredFile { name: format!("{rows}"), rows, bytes: 7 });
        }
        manifest
    }

    #[test]
    fn comes_back_as_it_was() {
        let manifest = manifest();
        assert_eq!(Manifest::from_json(&manifest.to_json().unwrap()).unwrap(), manifest);
    }

    #[test]
    fn a_cut_is_noticed_wherever_it_is() {
        let bytes = manifest().to_json().unwrap();
        // A text without the last line feed is complete.
        for cut in 0..bytes.len() - 1 {
            assert!(Manifest::from_json(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    /// Each range has a file, and the manifest is written twice for it.
    #[test]
    fn what_is_written_for_a_range_does_not_grow_with_the_files_before_it() {
        let mut manifest = manifest();
        manifest.files.clear();
        let (mut lists, mut most, mut rows) = (Vec::new(), 0, 0);
        for range in 0..10_000_u64 {
            lists.extend(manifest.list_files().unwrap());
            let name =
                format!("server.request/7bdfbc7278fad060-{range:08}-{:08}.parquet", range + 1);
            manifest.files.push(DeliveredFile { name, rows: range, bytes: 1 << 20 });
            rows += range;
            if range % 125 >= 123 {
                most = most.max(manifest.to_json().unwrap().len());
            }
        }
        assert!(most < 75_000, "{most} bytes");
        assert_eq!((manifest.rows(), manifest.file_count()), (rows, 10_000));
        let read = Manifest::from_json(&manifest.to_json().unwrap()).unwrap();
        assert_eq!((&read, read.version), (&manifest, 2));
        // The lists and the manifest have each file once, in order.
        let listed = lists.iter().zip(&manifest.lists).flat_map(|(content, list)| {
            assert_eq!(
                (&content.name, format!("{:08x}", crc32c::crc32c(&content.bytes))),
                (&list.name, list.crc32c.clone())
            );
            let files: Vec<DeliveredFile> = serde_json::from_slice(&content.bytes).unwrap();
            assert_eq!(list.rows, files.iter().map(|file| file.rows).sum::<u64>());
            files
        });
        let all: Vec<u64> = listed.chain(manifest.files.clone()).map(|file| file.rows).collect();
        assert_eq!(all, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn an_edit_is_noticed_wherever_it_changes_what_is_said() {
        let (manifest, bytes) = (manifest(), manifest().to_json().unwrap());
        for at in 0..bytes.len() {
            for with in [b'0', b'x', b' '] {
                let mut edited = bytes.clone();
                edited[at] = with;
                if let Ok(read) = Manifest::from_json(&edited) {
                    assert_eq!(read, manifest, "{at}");
                }
            }
        }
    }
}
