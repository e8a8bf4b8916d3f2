//! Imports in memory, and what `ppt dump` reads from them.

use std::path::PathBuf;

use ppt_capture::{Capture, CaptureItem};
use ppt_dump::{DumpRequest, Info, TableFormat, dump};
use ppt_import::frame_dsl::{Schema, compile};
use ppt_import::{ImportError, ImportHost, Origin, Recording};
use serde_json::Value;

pub fn schema(file: &str) -> Schema {
    compile(file.as_bytes(), "test.frame").unwrap().schema
}

/// The capture that an import writes.
pub fn captured(
    schema: &Schema,
    import: impl FnOnce(&mut Recording<Vec<u8>>) -> Result<(), ImportError>,
) -> Result<Vec<u8>, ImportError> {
    captured_at(schema, 0, import)
}

/// The same, of an input whose clock began at `epoch_ns`.
pub fn captured_at(
    schema: &Schema,
    epoch_ns: u64,
    import: impl FnOnce(&mut Recording<Vec<u8>>) -> Result<(), ImportError>,
) -> Result<Vec<u8>, ImportError> {
    captured_of(
        schema,
        ImportHost { name: "device".to_owned(), epoch_ns, ..ImportHost::default() },
        0,
        import,
    )
}

/// The same, of an input with the clocks of a host, to within `error_ns`.
pub fn captured_of(
    schema: &Schema,
    host: ImportHost,
    error_ns: u64,
    import: impl FnOnce(&mut Recording<Vec<u8>>) -> Result<(), ImportError>,
) -> Result<Vec<u8>, ImportError> {
    let origin = Origin { host, error_ns, now_ns: 1_700_000_000, ..Origin::default() };
    let mut recording = Recording::new(schema, origin, Vec::new()).unwrap();
    import(&mut recording)?;
    Ok(recording.finish("imported").unwrap())
}

/// A file of its own.
pub struct File {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl File {
    pub fn new(bytes: &[u8]) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        std::fs::write(&path, bytes).unwrap();
        File { _folder: folder, path }
    }

    /// A complete, undamaged capture: every frame is accounted for.
    pub fn info(&self) -> Info {
        let info = Info::read(&self.path).unwrap();
        assert_eq!((info.damages, info.cut, info.mismatches), (0, None, 0));
        let mut capture = Capture::open(&self.path).unwrap();
        while let Some(item) = capture.read().unwrap() {
            assert!(!matches!(item, CaptureItem::Damage(_)), "{item:?}");
        }
        info
    }

    pub fn table(&self, format: TableFormat) -> String {
        self.info();
        let mut out = Vec::new();
        dump(&self.path, &DumpRequest { format, ..DumpRequest::default() }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    pub fn rows(&self) -> Vec<Value> {
        let lines = self.table(TableFormat::JsonLines);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
