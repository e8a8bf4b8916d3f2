//! A checked buffer of a target, and its name.

use std::fmt;

use ppt_frame_dsl::Schema;
use ppt_segment::abi::Descriptor;

/// The way in which a descriptor was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// A symbol of `.symtab`.
    Symtab,
    /// A symbol of `.dynsym`.
    Dynsym,
    /// The magic, found in mapped data.
    Scan,
    /// A copy of the parent's descriptor, in a forked process.
    Copy,
}

impl fmt::Display for FoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoundBy::Symtab => "symtab",
            FoundBy::Dynsym => "dynsym",
            FoundBy::Scan => "scan",
            FoundBy::Copy => "fork",
        })
    }
}

/// A buffer of a target, checked.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The unambiguous name in this target: `NAME[#hash8][@object][:address]`.
    pub name: String,
    /// The schema of its frames.
    pub schema: Schema,
    /// The schema's text as the target holds buffer.
    pub schema_json: Vec<u8>,
    /// Hash of the schema's layout part.
    pub schema_hash: u64,
    /// Path of the object that holds it, escaped.
    pub object: String,
    /// Build id of that object in hex. Empty if it could not be read.
    pub build_id: String,
    /// The way in which the descriptor was found.
    pub found_by: FoundBy,
    /// The address of its descriptor.
    pub(crate) address: u64,
    /// The address of its control page.
    pub(crate) control: u64,
    /// The descriptor's bytes, compared before every write.
    pub(crate) descriptor: [u8; DESCRIPTOR_BYTES],
}

pub(crate) const DESCRIPTOR_BYTES: usize = size_of::<Descriptor>();

/// Gives every buffer its shortest unambiguous name. Copies of one object, such as a plugin that
/// was replaced on disk and loaded again, differ only in their addresses.
pub(crate) fn assign_names(buffers: &mut [Buffer]) {
    let mut names = Vec::with_capacity(buffers.len());
    for buffer in buffers.iter() {
        let namesakes =
            || buffers.iter().filter(|other| other.schema.buffer == buffer.schema.buffer);
        let twins = || namesakes().filter(|other| other.schema_hash == buffer.schema_hash);
        let mut name = buffer.schema.buffer.clone();
        if namesakes().count() > twins().count() {
            name += &format!("#{}", buffer.hash8());
        }
        if twins().count() > 1 {
            let mut alike = twins().filter(|other| other.file_name() == buffer.file_name());
            let is_elsewhere = alike.any(|other| other.object != buffer.object);
            name += &format!("@{}", if is_elsewhere { &buffer.object } else { buffer.file_name() });
        }
        names.push(name);
    }
    for (buffer, name) in buffers.iter_mut().zip(&names) {
        let is_alone = names.iter().filter(|text| *text == name).count() == 1;
        buffer.name =
            if is_alone { name.clone() } else { format!("{name}{}", buffer.address_suffix()) };
    }
    buffers.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
}

impl Buffer {
    /// Whether `wanted` names this buffer. `wanted` is the full name, or `NAME` with any part of
    /// the rest; the object may be a file name or a path.
    pub fn answers_to(&self, wanted: &str) -> bool {
        let Some(rest) = wanted.strip_prefix(&self.schema.buffer) else { return false };
        let rest = rest.strip_prefix(&format!("#{}", self.hash8())).unwrap_or(rest);
        let rest = rest.strip_suffix(&self.address_suffix()).unwrap_or(rest);
        let Some(object) = rest.strip_prefix('@') else { return rest.is_empty() };
        object == self.object || object == self.file_name()
    }

    /// Whether both are the same buffer in two processes, one of which is a fork of the other.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        self.address == other.address && self.descriptor == other.descriptor
    }

    /// File name of its object.
    fn file_name(&self) -> &str {
        self.object.rsplit('/').next().unwrap_or(&self.object)
    }

    fn hash8(&self) -> String {
        format!("{:08x}", self.schema_hash >> 32)
    }

    /// The suffix of a buffer's name that has its address: `:7f12…`.
    fn address_suffix(&self) -> String {
        format!(":{:x}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(name: &str, hash: u64, object: &str, address: u64) -> Buffer {
        let schema = Schema {
            v: 1,
            buffer: name.to_owned(),
            slots: 2,
            stride: 8,
            frames: Vec::new(),
            enums: Vec::new(),
            tags: Vec::new(),
            extra: Default::default(),
        };
        Buffer {
            name: String::new(),
            schema,
            schema_json: Vec::new(),
            schema_hash: hash,
            object: object.to_owned(),
            build_id: String::new(),
            found_by: FoundBy::Scan,
            address,
            control: 0,
            descriptor: [0; DESCRIPTOR_BYTES],
        }
    }

    #[test]
    fn each_has_a_name_that_only_it_answers_to() {
        let (a, b) = (0x1111_1111_0000_0000, 0x2222_2222_0000_0000);
        let mut buffers = [
            buffer("one", a, "/bin/x", 0x10),
            buffer("two", a, "/bin/x", 0x20),
            buffer("two", b, "/bin/x", 0x30),
            buffer("six", a, "/lib/x", 0x40),
            buffer("six", a, "/lib/y", 0x50),
            buffer("ten", a, "/a/x", 0x60),
            buffer("ten", a, "/b/x", 0x70),
            buffer("ten", a, "/b/x", 0x80),
            buffer("hot", a, "/lib/x", 0x90),
            buffer("hot", a, "/lib/x", 0xa0),
            buffer("hot", a, "/lib/x", 0xb0),
            buffer("sum", a, "/lib/x", 0xc0),
            buffer("sum", a + 1, "/lib/x", 0xd0),
        ];
        assign_names(&mut buffers);
        let names: Vec<_> =
            buffers.iter().map(|buffer| (buffer.address, buffer.name.as_str())).collect();
        let expected = [
            (0x90, "hot@x:90"),
            (0xa0, "hot@x:a0"),
            (0xb0, "hot@x:b0"),
            (0x10, "one"),
            (0x40, "six@x"),
            (0x50, "six@y"),
            (0xc0, "sum#11111111:c0"),
            (0xd0, "sum#11111111:d0"),
            (0x60, "ten@/a/x"),
            (0x70, "ten@/b/x:70"),
            (0x80, "ten@/b/x:80"),
            (0x20, "two#11111111"),
            (0x30, "two#22222222"),
        ];
        assert_eq!(names, expected);
        for buffer in &buffers {
            let called = buffers.iter().filter(|other| other.answers_to(&buffer.name));
            assert_eq!(called.count(), 1, "{}", buffer.name);
        }
        let count = |name: &str| buffers.iter().filter(|buffer| buffer.answers_to(name)).count();
        assert_eq!([count("hot"), count("hot@x"), count("ten@x"), count("ten@/b/x")], [3, 3, 3, 2]);
        assert_eq!(
            [count("hot:a0"), count("hot@/lib/x:a0"), count("hot:a"), count("hot@a0")],
            [1, 1, 0, 0]
        );
    }
}
