//! A buffer of a target: what was found, checked, and how it is called.

use std::fmt;

use ppt_frame_dsl::Schema;
use ppt_segment::abi::Descriptor;

/// How a descriptor was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// A symbol of `.symtab`.
    Symtab,
    /// A symbol of `.dynsym`.
    Dynsym,
    /// Its magic in mapped data.
    Scan,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Path::Symtab => "symtab",
            Path::Dynsym => "dynsym",
            Path::Scan => "scan",
        })
    }
}

/// A buffer of a target, checked.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// Its unambiguous name in this target: `NAME[#hash8][@object]`.
    pub name: String,
    /// What its frames look like.
    pub schema: Schema,
    /// The schema's text as it stands in the target.
    pub schema_json: Vec<u8>,
    /// Hash of the schema's layout part.
    pub schema_hash: u64,
    /// Path of the object that holds it, escaped.
    pub object: String,
    /// Build id of that object in hex, where it could be read.
    pub build_id: String,
    /// How it was found.
    pub path: Path,
    /// Where its descriptor is.
    pub(crate) address: u64,
    /// Where its control page is.
    pub(crate) control: u64,
    /// The descriptor's bytes, to be compared with before every write.
    pub(crate) descriptor: [u8; DESCRIPTOR_BYTES],
}

pub(crate) const DESCRIPTOR_BYTES: usize = size_of::<Descriptor>();

/// Gives every buffer the shortest name that only it has.
pub(crate) fn name(buffers: &mut [Buffer]) {
    let mut names = Vec::with_capacity(buffers.len());
    for it in buffers.iter() {
        let namesakes = || buffers.iter().filter(|other| other.schema.buffer == it.schema.buffer);
        let twins = || namesakes().filter(|other| other.schema_hash == it.schema_hash);
        let mut name = it.schema.buffer.clone();
        if namesakes().count() > twins().count() {
            name += &format!("#{}", it.hash8());
        }
        if twins().count() > 1 {
            let alike = twins().filter(|other| other.file_name() == it.file_name()).count();
            name += &format!("@{}", if alike > 1 { &it.object } else { it.file_name() });
        }
        names.push(name);
    }
    for (buffer, name) in buffers.iter_mut().zip(names) {
        buffer.name = name;
    }
    buffers.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
}

impl Buffer {
    /// Whether `wanted` names this buffer: its name, or any of `NAME`, `NAME#hash8`,
    /// `NAME@object`, `NAME#hash8@object`; the object by its file name or its path.
    pub fn answers_to(&self, wanted: &str) -> bool {
        let Some(rest) = wanted.strip_prefix(&self.schema.buffer) else { return false };
        let rest = rest.strip_prefix(&format!("#{}", self.hash8())).unwrap_or(rest);
        let Some(object) = rest.strip_prefix('@') else { return rest.is_empty() };
        object == self.object || object == self.file_name()
    }

    /// File name of its object.
    fn file_name(&self) -> &str {
        self.object.rsplit('/').next().unwrap_or(&self.object)
    }

    fn hash8(&self) -> String {
        format!("{:08x}", self.schema_hash >> 32)
    }
}
