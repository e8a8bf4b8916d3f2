//! What was delivered, up to where, and what is on its way.

use serde::{Deserialize, Serialize};

/// What a manifest calls itself.
const FORMAT: &str = "ppt-export-manifest";
/// The newest version that is read. Manifests without lists are of version 1.
const VERSION: u32 = 2;
/// Files of a list. A manifest has fewer than twice as many.
pub(crate) const LISTED: usize = 250;

/// What was delivered, up to where, and what is on its way.
///
/// As JSON it has a checksum over all else, so that one that was cut or edited is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    version: u32,
    /// Whether there is more to come.
    pub state: DeliveryState,
    /// What does not change while it goes on.
    pub settings: Settings,
    /// The captures, in the order in which they were found.
    pub captures: Vec<CaptureProgress>,
    /// What no file will have.
    pub missing: Vec<MissingFrames>,
    /// The range that is being written: its files may be there, some of them or all.
    pub planned: Option<PlannedRange>,
    /// The files that are complete, without those that lists have.
    pub files: Vec<DeliveredFile>,
    /// Lists of the files before these, which change no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<FileList>,
    /// By series: spans and chains that are not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenWholes>,
    /// Who wrote it, where several exporters can: some number. So two of them never write equal manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exporter: Option<String>,
    crc32c: String,
}

/// Whether there is more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It goes on, or can go on.
    Running,
    /// All captures have ended, and all that they hold is in the files.
    Complete,
}

/// What the files of a delivery have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The format, in the word of the command line.
    pub format: String,
    /// How times are written, in the word of the command line.
    pub time: String,
    /// The one kind of frames that is delivered; None: all.
    pub frame: Option<String>,
    /// The buffers that are delivered; empty: all.
    pub buffers: Vec<String>,
    /// Spans and chains are delivered, too. Earlier versions did not.
    #[serde(default, skip_serializing_if = "is_no")]
    pub wholes: bool,
}

fn is_no(value: &bool) -> bool {
    !value
}

/// Spans and chains of a series that are not done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenWholes {
    /// The id of the series.
    pub series: String,
    /// Up to when all are settled, ns since the epoch.
    pub until: Option<i64>,
    /// Frames that came after that although they are earlier.
    pub late: u64,
    /// Frames that went out alone because too many waited.
    pub let_go: u64,
    /// Where the frames are that wait for others; None: none waits.
    pub file: Option<OpenFile>,
    /// The name of the file before this one, which may still be there.
    pub before: Option<String>,
}

/// A file of frames that wait for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFile {
    /// Its name, from the folder of the manifest on.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its checksum.
    pub crc32c: String,
}

/// How far a capture is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureProgress {
    /// Its id, 32 hex digits.
    pub id: String,
    /// The id of the series that it belongs to: that of the first file.
    pub series: String,
    /// Its number in the series, from 1.
    pub number: u32,
    /// Frames in all files of the series before it.
    pub frames_before: u64,
    /// The name of its file.
    pub file: String,
    /// Chunks with smaller numbers are delivered.
    pub next_chunk: u64,
    /// Bytes of the capture up to there.
    pub bytes: u64,
    /// Frames of it that are delivered, of all kinds.
    pub frames: u64,
    /// Whether there is more to come.
    pub state: CaptureState,
}

/// Whether there is more to come of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureState {
    /// It may grow.
    Growing,
    /// It has ended, and all of it is delivered.
    Complete,
    /// It has ended, all of it is delivered, and it continues in another file.
    Continued,
    /// Its writer ended without an end, and all that is whole is delivered.
    Cut,
    /// Its file was removed, replaced or truncated: what was not delivered is lost.
    Gone,
}

impl CaptureState {
    /// Whether nothing more is expected of it.
    pub fn is_over(self) -> bool {
        self != CaptureState::Growing
    }
}

/// Frames that no file has, because their capture was gone before it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingFrames {
    /// The series, or the capture where that is of none.
    pub series: String,
    /// What is missing.
    pub what: String,
    /// How many frames of all kinds; None: nobody knows.
    pub frames: Option<u64>,
}

/// A range of chunks of one capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRange {
    /// The id of the capture.
    pub capture: String,
    /// The first chunk.
    pub from_chunk: u64,
    /// The chunk behind the last one.
    pub until_chunk: u64,
    /// Where its first chunk may begin, in bytes of the capture.
    pub from_byte: u64,
    /// Nothing of the capture from this byte on is looked at.
    pub until_byte: u64,
    /// Frames of it, of all kinds.
    pub frames: u64,
    /// Nothing of the series follows: what is open goes out.
    #[serde(default, skip_serializing_if = "is_no")]
    pub ends: bool,
}

/// A file that is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveredFile {
    /// Its name, from the folder of the manifest on.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A file that lists files which are complete, as the manifest does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    /// Its name, from the folder of the manifest on.
    pub name: String,
    /// How many files it lists.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Its checksum.
    pub crc32c: String,
}

impl Manifest {
    /// One of nothing.
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

    /// As JSON.
    ///
    /// # Errors
    /// None that is known: texts and numbers can be written.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let sealed = Manifest { crc32c: self.checksum()?, ..self.clone() };
        let mut bytes = serde_json::to_vec_pretty(&sealed)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, in words.
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

    /// Of all but the checksum.
    fn checksum(&self) -> Result<String, serde_json::Error> {
        let open = Manifest { crc32c: String::new(), ..self.clone() };
        Ok(format!("{:08x}", crc32c::crc32c(&serde_json::to_vec(&open)?)))
    }

    /// How far a capture is.
    pub fn progress(&self, id: &str) -> Option<&CaptureProgress> {
        self.captures.iter().find(|capture| capture.id == id)
    }

    pub(crate) fn progress_mut(&mut self, id: &str) -> Option<&mut CaptureProgress> {
        self.captures.iter_mut().find(|capture| capture.id == id)
    }

    /// What is open of a series.
    pub fn open_of(&self, series: &str) -> Option<&OpenWholes> {
        self.open.iter().find(|open| open.series == series)
    }

    /// Rows of all files.
    pub fn rows(&self) -> u64 {
        let listed: u64 = self.lists.iter().map(|list| list.rows).sum();
        listed + self.files.iter().map(|file| file.rows).sum::<u64>()
    }

    /// How many files there are.
    pub fn file_count(&self) -> u64 {
        self.lists.iter().map(|list| list.files).sum::<u64>() + self.files.len() as u64
    }

    /// Moves the earliest files into a list once there are many: a manifest is written for each range, and
    /// must not grow with all that was delivered. The list is the name and the content of a file that has to be
    /// there before this manifest is written.
    ///
    /// # Errors
    /// None that is known: texts and numbers can be written.
    pub(crate) fn list_files(&mut self) -> Result<Option<(String, Vec<u8>)>, serde_json::Error> {
        if self.files.len() < 2 * LISTED {
            return Ok(None);
        }
        let listed: Vec<DeliveredFile> = self.files.drain(..LISTED).collect();
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
        Ok(Some((name, bytes)))
    }

    /// Frames that are known to be missing.
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
        // Without the last line feed nothing is missing.
        for cut in 0..bytes.len() - 1 {
            assert!(Manifest::from_json(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    /// Each range has a file, and its manifest is written twice.
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
        // All files are somewhere, each once, in their order.
        let listed = lists.iter().zip(&manifest.lists).flat_map(|((name, bytes), list)| {
            assert_eq!(
                (name, format!("{:08x}", crc32c::crc32c(bytes))),
                (&list.name, list.crc32c.clone())
            );
            let files: Vec<DeliveredFile> = serde_json::from_slice(bytes).unwrap();
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
