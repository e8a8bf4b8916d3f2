//! Tracepoints: their numbers and the layouts of their raw bytes, from tracefs.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::error::{KernelError, KernelFeature};

/// Folders where tracefs may be mounted.
const TRACEFS_FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The pid namespace of the whole machine.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The position of a field in the raw bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldPlace {
    offset: usize,
    size: usize,
}

impl FieldPlace {
    /// The number of the field, signed if it has 4 or 8 bytes.
    pub fn number(self, raw: &[u8]) -> Option<i64> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        Some(match self.size {
            1 => bytes[0].into(),
            2 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            4 => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => i64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The text of the field.
    pub fn text(self, raw: &[u8]) -> Option<[u8; 16]> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        let text = bytes.split(|&byte| byte == 0).next()?;
        let mut name = [0; 16];
        let len = text.len().min(15);
        name[..len].copy_from_slice(&text[..len]);
        Some(name)
    }
}

/// The tracepoint sched:sched_waking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waking {
    pub id: u64,
    pub flags: FieldPlace,
    pub pid: FieldPlace,
    pub target_cpu: FieldPlace,
}

/// The tracepoint sched:sched_switch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switch {
    pub id: u64,
    pub prev_pid: FieldPlace,
    pub prev_state: FieldPlace,
    pub next_pid: FieldPlace,
    pub next_comm: FieldPlace,
}

/// The tracepoints raw_syscalls:sys_enter and sys_exit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    pub enter: u64,
    pub exit: u64,
    pub enter_call: FieldPlace,
    pub exit_call: FieldPlace,
    pub result: FieldPlace,
}

impl Waking {
    /// Looks up the tracepoint.
    pub fn find() -> Result<Self, KernelError> {
        let part = KernelFeature::Wakeups;
        in_first_namespace()?;
        let (id, fields) = read(part, "sched/sched_waking")?;
        let field = |name| place(&fields, part, name);
        Ok(Self {
            id,
            flags: field("common_flags")?,
            pid: field("pid")?,
            target_cpu: field("target_cpu")?,
        })
    }
}

impl Switch {
    /// Looks up the tracepoint.
    pub fn find() -> Result<Self, KernelError> {
        let part = KernelFeature::Wakeups;
        in_first_namespace()?;
        let (id, fields) = read(part, "sched/sched_switch")?;
        let field = |name| place(&fields, part, name);
        Ok(Self {
            id,
            prev_pid: field("prev_pid")?,
            prev_state: field("prev_state")?,
            next_pid: field("next_pid")?,
            next_comm: field("next_comm")?,
        })
    }
}

impl Calls {
    /// Looks up the tracepoints.
    pub fn find() -> Result<Self, KernelError> {
        let part = KernelFeature::Syscalls;
        let (enter, entered) = read(part, "raw_syscalls/sys_enter")?;
        let (exit, exited) = read(part, "raw_syscalls/sys_exit")?;
        Ok(Self {
            enter,
            exit,
            enter_call: place(&entered, part, "id")?,
            exit_call: place(&exited, part, "id")?,
            result: place(&exited, part, "ret")?,
        })
    }
}

/// Checks that ppt runs in the first pid namespace, whose numbers tracepoints have.
fn in_first_namespace() -> Result<(), KernelError> {
    match fs::read_link("/proc/self/ns/pid") {
        Ok(link) if link.as_os_str() == FIRST_PID_NAMESPACE => Ok(()),
        _ => Err(KernelError::PidNamespace { part: KernelFeature::Wakeups }),
    }
}

/// The mounted tracefs. A folder that ppt may not read counts if there is no other.
fn root() -> Option<PathBuf> {
    let denied = |path: &Path| {
        fs::metadata(path.join("events"))
            .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let folders = || TRACEFS_FOLDERS.iter().map(PathBuf::from);
    folders()
        .find(|folder| folder.join("events").is_dir())
        .or_else(|| folders().find(|folder| denied(folder)))
}

type TracepointFields = HashMap<String, FieldPlace>;

/// A tracefs of this process alone, where none is mounted. This needs CAP_SYS_ADMIN (fsmount(2)), and mounts
/// nothing: the file system has no place, and is gone with its descriptor.
fn detached() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// The text that describes a tracepoint, and its path.
fn format(part: KernelFeature, name: &str) -> Result<(PathBuf, io::Result<String>), KernelError> {
    let place = Path::new("events").join(name).join("format");
    if let Some(root) = root() {
        let path = root.join(place);
        let text = fs::read_to_string(&path);
        return Ok((path, text));
    }
    let root = detached().map_err(|_| KernelError::NoTracefs { part })?;
    let file = openat(&root, &place, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let text = file.map_err(io::Error::from).and_then(|file| io::read_to_string(File::from(file)));
    Ok((place, text))
}

fn read(part: KernelFeature, name: &str) -> Result<(u64, TracepointFields), KernelError> {
    let (path, text) = format(part, name)?;
    let text = text.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => KernelError::TracefsDenied { part, path, source },
        _ => KernelError::Unsupported { part, source },
    })?;
    parse(&text).ok_or_else(|| unknown(part, name))
}

fn place(
    fields: &TracepointFields,
    part: KernelFeature,
    name: &str,
) -> Result<FieldPlace, KernelError> {
    fields.get(name).copied().ok_or_else(|| unknown(part, name))
}

fn unknown(part: KernelFeature, name: &str) -> KernelError {
    let source = io::Error::other(format!("its tracefs does not describe {name}"));
    KernelError::Unsupported { part, source }
}

/// The number of a tracepoint and its fields, from its `format`.
fn parse(text: &str) -> Option<(u64, TracepointFields)> {
    let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
    let fields = text.lines().filter_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let declared = parts.next()?;
        let name = declared.split('[').next()?.split_whitespace().last()?;
        let mut number = |key: &str| -> Option<usize> {
            parts.find_map(|part| part.strip_prefix(key)?.parse().ok())
        };
        Some((name.to_owned(), FieldPlace { offset: number("offset:")?, size: number("size:")? }))
    });
    Some((id, fields.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch
ID: 315
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;

print fmt: \"prev_comm=%s\", REC->prev_comm
";

    #[test]
    fn a_format_says_where_fields_lie() {
        let (id, fields) = parse(SWITCH).unwrap();
        assert_eq!((id, fields.len()), (315, 5));
        assert_eq!(fields["prev_pid"], FieldPlace { offset: 24, size: 4 });
        assert_eq!(fields["prev_comm"], FieldPlace { offset: 8, size: 16 });
        let mut raw = vec![0; 40];
        raw[8..12].copy_from_slice(b"name");
        raw[24..28].copy_from_slice(&(-1i32).to_ne_bytes());
        assert_eq!(fields["prev_pid"].number(&raw), Some(-1));
        assert_eq!(fields["prev_comm"].text(&raw), Some(*b"name\0\0\0\0\0\0\0\0\0\0\0\0"));
        assert_eq!(fields["prev_state"].number(&raw[..39]), None, "too short");
        assert!(parse("name: x\n").is_none());
    }
}
