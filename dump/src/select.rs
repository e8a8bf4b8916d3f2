//! Names of buffers, and their selection.
//!
//! A buffer is identified by its name. If that is ambiguous, `#` and the first eight digits of its
//! schema's hash follow. If that is ambiguous, `@` and the file name of its object follow, or its
//! path if file names are equal. If that is still ambiguous, `.` and the number of its source
//! follow. `ppt list` shows the same names, but with an address instead of that number. Buffers of
//! different processes may have the same name, because the process distinguishes them.

use ppt_capture::{ProcessKey, SourceInfo};
use ppt_text::escaped;

use crate::error::DumpError;

/// The identity of a process: its pid may be reused.
pub(crate) fn process(info: &SourceInfo) -> ProcessKey {
    info.source.process.key()
}

/// Whether there are sources of more than one process.
pub(crate) fn several_processes<'a>(sources: impl IntoIterator<Item = &'a SourceInfo>) -> bool {
    let mut sources = sources.into_iter().map(process);
    sources.next().is_some_and(|first| sources.any(|other| other != first))
}

/// The name of each source among `sources`, in their order, not escaped.
pub(crate) fn labels(sources: &[&SourceInfo]) -> Vec<String> {
    let label = |info: &&SourceInfo| {
        let source = &info.source;
        let file = file_name(&source.object);
        let namesakes = || sources.iter().filter(|info| info.source.buffer == source.buffer);
        let equals =
            || namesakes().filter(|namesake| namesake.source.schema_hash == source.schema_hash);
        let twins =
            || equals().filter(|equal| process(equal) == process(info)).map(|equal| &equal.source);
        let here = || twins().filter(|twin| twin.object == source.object);
        let mut label = source.buffer.clone();
        if namesakes().count() > equals().count() {
            label += &hash8(source.schema_hash);
        }
        if twins().count() > here().count() {
            let alike = twins().filter(|twin| file_name(&twin.object) == file).count();
            label += &format!("@{}", if alike > here().count() { &source.object } else { file });
        }
        if here().count() > 1 {
            label += &format!(".{}", info.id);
        }
        label
    };
    sources.iter().map(label).collect()
}

fn file_name(object: &str) -> &str {
    object.rsplit('/').next().unwrap_or(object)
}

fn hash8(hash: u64) -> String {
    format!("#{:08x}", hash >> 32)
}

/// The indices of the sources that `wanted` selects; all of them if it is empty. A source is
/// selected by its label, or by its name with or without its hash and its object's path or file
/// name.
pub(crate) fn select(
    sources: &[&SourceInfo],
    labels: &[String],
    wanted: &[String],
) -> Result<Vec<usize>, DumpError> {
    if wanted.is_empty() {
        return Ok((0..sources.len()).collect());
    }
    let is_called = |index: usize, name: &String| {
        let source = &sources[index].source;
        let (buffer, hash) = (&source.buffer, hash8(source.schema_hash));
        let path = format!("@{}", source.object);
        let file = format!("@{}", file_name(&source.object));
        *name == labels[index]
            || *name == escaped(&labels[index])
            || ["", &hash].into_iter().any(|hash| {
                ["", &path, &file]
                    .into_iter()
                    .any(|object| *name == format!("{buffer}{hash}{object}"))
            })
    };
    let indices = 0..sources.len();
    if let Some(name) =
        wanted.iter().find(|&name| !indices.clone().any(|index| is_called(index, name)))
    {
        let name = escaped(name);
        return Err(DumpError::NoSuchBuffer {
            name,
            available: labels.iter().map(|label| escaped(label)).collect(),
        });
    }
    Ok(indices.filter(|&index| wanted.iter().any(|name| is_called(index, name))).collect())
}

#[cfg(test)]
mod tests {
    use ppt_capture::Source;
    use ppt_capture::frame_dsl::schema::Schema;

    use super::*;

    fn info(id: u16, buffer: &str, schema_hash: u64, object: &str) -> SourceInfo {
        let (buffer, object) = (buffer.to_owned(), object.to_owned());
        let source = Source { buffer, schema_hash, object, ..Source::default() };
        let schema = Schema {
            v: 1,
            buffer: "x".to_owned(),
            slots: 2,
            stride: 8,
            frames: Vec::new(),
            enums: Vec::new(),
            tags: Vec::new(),
            extra: Default::default(),
        };
        SourceInfo { id, source, schema, metrics: Vec::new() }
    }

    #[test]
    fn a_label_says_as_much_as_it_takes() {
        let a = 0x1111_1111_0000_0000;
        let sources = [
            info(0, "one", a, "/bin/x"),
            info(1, "two", a, "/bin/x"),
            info(2, "two", a + 1, "/bin/x"),
            info(3, "six", a, "/bin/x"),
            info(4, "six", a, "/bin/\x1b"),
            info(5, "ten", a, "/bin/x"),
            info(6, "ten", a, "/bin/x"),
            info(7, "two", a + 2, "/lib/a/y"),
            info(8, "six", a, "/lib/x"),
        ];
        let sources: Vec<_> = sources.iter().collect();
        let labels = labels(&sources);
        let expected = [
            "one",
            "two#11111111",
            "two#11111111",
            "six@/bin/x",
            "six@\x1b",
            "ten.5",
            "ten.6",
            "two#11111111",
            "six@/lib/x",
        ];
        assert_eq!(labels, expected);

        let select = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            select(&sources, &labels, &names)
        };
        assert_eq!(select(&["six"]).unwrap(), [3, 4, 8]);
        assert_eq!(select(&["six@x"]).unwrap(), [3, 8]);
        assert_eq!(select(&["six@/bin/x", "ten.6"]).unwrap(), [3, 6]);
        assert_eq!(select(&[r"six@\x1b", "six@/bin/\x1b"]).unwrap(), [4], "as it was shown");
        assert_eq!(select(&["one#11111111@/bin/x"]).unwrap(), [0]);
        let error = select(&["nine"]).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains("`nine`; the capture has: one, two")
        );
    }
}
