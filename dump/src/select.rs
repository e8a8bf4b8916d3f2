//! Names of buffers, and which of them are wanted.
//!
//! A buffer is called by its name. Where the name alone says too little, `#` and the first eight
//! digits of its schema's hash follow; where that says too little, `@` and the path of its object;
//! and where even that does, `.` and the number of its source.

use ppt_capture::SourceInfo;

use crate::error::DumpError;
use crate::escape::escape;

/// The name of each source among `sources`, in their order, not escaped.
pub(crate) fn labels(sources: &[&SourceInfo]) -> Vec<String> {
    let several = |one: &SourceInfo, same: &dyn Fn(&SourceInfo) -> bool| {
        let mine = sources.iter().filter(|it| it.source.buffer == one.source.buffer);
        let alike = mine.clone().filter(|it| same(it)).count();
        (mine.count() > alike, alike > 1)
    };
    let label = |info: &&SourceInfo| {
        let source = &info.source;
        let hash = source.schema_hash;
        let mut label = source.buffer.clone();
        let (other_hash, same_hash) = several(info, &|it| it.source.schema_hash == hash);
        if other_hash {
            label += &hash8(hash);
        }
        if same_hash {
            let (other_object, same_object) = several(info, &|it| {
                it.source.schema_hash == hash && it.source.object == source.object
            });
            if other_object {
                label += &format!("@{}", source.object);
            }
            if same_object {
                label += &format!(".{}", info.id);
            }
        }
        label
    };
    sources.iter().map(label).collect()
}

fn hash8(hash: u64) -> String {
    format!("#{:08x}", hash >> 32)
}

/// Which sources `wanted` names, by index; all of them where it is empty. A source goes by its
/// label, and by its name with or without its hash and its object.
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
        let object = format!("@{}", source.object);
        *name == labels[index]
            || *name == escape(&labels[index])
            || ["", &hash].into_iter().any(|hash| {
                ["", &object].into_iter().any(|object| *name == format!("{buffer}{hash}{object}"))
            })
    };
    let all = 0..sources.len();
    if let Some(name) = wanted.iter().find(|&name| !all.clone().any(|index| is_called(index, name)))
    {
        let name = escape(name);
        return Err(DumpError::NoSuchBuffer {
            name,
            there: labels.iter().map(|label| escape(label)).collect(),
        });
    }
    Ok(all.filter(|&index| wanted.iter().any(|name| is_called(index, name))).collect())
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
        SourceInfo { id, source, schema }
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
        ];
        let sources: Vec<_> = sources.iter().collect();
        let labels = labels(&sources);
        let expected = [
            "one",
            "two#11111111",
            "two#11111111",
            "six@/bin/x",
            "six@/bin/\x1b",
            "ten.5",
            "ten.6",
        ];
        assert_eq!(labels, expected);

        let select = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            select(&sources, &labels, &names)
        };
        assert_eq!(select(&["six"]).unwrap(), [3, 4]);
        assert_eq!(select(&["six@/bin/x", "ten.6"]).unwrap(), [3, 6]);
        assert_eq!(select(&[r"six@/bin/\x1b"]).unwrap(), [4], "as it was shown");
        assert_eq!(select(&["one#11111111@/bin/x"]).unwrap(), [0]);
        let error = select(&["nine"]).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains("`nine`; the capture has: one, two")
        );
    }
}
