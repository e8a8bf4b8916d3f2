//! The file systems that are mounted where ppt sees them, and which of them always answer.

use rustix::fs::{MemfdFlags, major, memfd_create, minor};
use std::collections::BTreeSet;

use crate::subject::Device;

/// File systems that need no program and no other host. An overlay is local if its layers are.
const LOCAL: [&str; 26] = [
    "bcachefs",
    "bpf",
    "btrfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "devtmpfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "proc",
    "ramfs",
    "rootfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "vfat",
    "xfs",
    "zfs",
];

/// The mounts of ppt. Only root mounts there, and what root lets mount, such as fusermount.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    mounts: Vec<Mount>,
    local: BTreeSet<Device>,
}

#[derive(Debug)]
struct Mount {
    device: Device,
    /// Where it is mounted, escaped as in procfs.
    point: String,
    kind: String,
    options: String,
}

impl Mounts {
    /// The current mounts. Nothing is local if they cannot be read.
    pub(crate) fn read() -> Mounts {
        let bytes = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mut mounts = Mounts::parse(&String::from_utf8_lossy(&bytes));
        // Shared memory is on a file system that is mounted nowhere.
        let shared = memfd_create(c"ppt", MemfdFlags::CLOEXEC);
        if let Ok(found) = shared.and_then(rustix::fs::fstat) {
            mounts.local.insert((major(found.st_dev), minor(found.st_dev)));
        }
        mounts
    }

    fn parse(text: &str) -> Mounts {
        let mounts: Vec<Mount> = text.lines().filter_map(Mount::parse).collect();
        let mut all = Mounts { mounts, local: BTreeSet::new() };
        // ppt itself needs its root.
        let is_local = |mount: &&Mount| {
            LOCAL.contains(&&*mount.kind) || mount.point == "/" || all.is_local_overlay(mount)
        };
        let local = all.mounts.iter().filter(is_local).map(|mount| mount.device).collect();
        all.local = local;
        all
    }

    pub(crate) fn is_local(&self, device: Device) -> bool {
        self.local.contains(&device)
    }

    /// The device on which an absolute path is, unless links lead elsewhere.
    pub(crate) fn device_of(&self, path: &str) -> Option<Device> {
        let mut escaped = String::with_capacity(path.len());
        for c in path.chars() {
            match c {
                ' ' | '\t' | '\n' | '\\' => escaped += &format!("\\{:03o}", c as u32),
                _ => escaped.push(c),
            }
        }
        let is_above = |mount: &&Mount| {
            let rest = escaped.strip_prefix(mount.point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // The later mount hides the earlier one.
        Some(self.mounts.iter().filter(is_above).max_by_key(|mount| mount.point.len())?.device)
    }

    /// The kind of a file system, and where it is mounted.
    pub(crate) fn named(&self, device: Device) -> Option<(String, String)> {
        let mount = self.mounts.iter().find(|mount| mount.device == device)?;
        Some((mount.kind.clone(), mount.point.clone()))
    }

    fn is_local_overlay(&self, mount: &Mount) -> bool {
        let layers = mount.options.split(',').filter_map(|option| option.split_once('='));
        let layers = layers.filter(|(name, _)| ["lowerdir", "upperdir"].contains(name));
        let mut layers = layers.flat_map(|(_, paths)| paths.split(':')).peekable();
        let is_local = |path: &str| {
            let of_path = path.starts_with('/').then(|| self.device_of(path)).flatten();
            let mut kinds = self.mounts.iter().filter(|mount| Some(mount.device) == of_path);
            kinds.next().is_some_and(|mount| LOCAL.contains(&&*mount.kind))
        };
        mount.kind == "overlay" && layers.peek().is_some() && layers.all(is_local)
    }
}

impl Mount {
    /// A line of `/proc/PID/mountinfo`: proc_pid_mountinfo(5).
    fn parse(line: &str) -> Option<Mount> {
        let (first, second) = line.split_once(" - ")?;
        let mut first = first.split(' ').skip(2);
        let (major, minor) = first.next()?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let point = first.nth(1)?.to_owned();
        let mut second = second.split(' ');
        let kind = second.next()?.to_owned();
        Some(Mount { device, point, kind, options: second.nth(1).unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw
50 27 0:50 / /mnt/far\\040away rw - fuse.sshfs host:/ rw,user_id=0
51 27 0:51 / /mnt rw - nfs4 host:/ rw
52 27 0:52 / /srv/one rw - overlay overlay rw,lowerdir=/var/a:/var/b,upperdir=/var/c,workdir=/var/d
53 27 0:53 / /srv/two rw - overlay overlay rw,lowerdir=/var/a:/mnt/b
54 27 0:54 / /srv/three rw - overlay overlay rw,lowerdir=1/fs
55 27 0:55 / /run/late rw - tmpfs tmpfs rw
garbage
- - -
56 27 x:y / /a rw - ext4 b c
";

    #[test]
    fn file_systems_are_local_if_their_kind_or_their_layers_are() {
        let mounts = Mounts::parse(MOUNTS);
        for (device, expected) in [
            ((254, 0), true),
            ((0, 21), true),
            ((0, 50), false),
            ((0, 51), false),
            ((0, 52), true),
            ((0, 53), false),
            ((0, 54), false),
            ((0, 55), true),
            ((0, 99), false),
        ] {
            assert_eq!(mounts.is_local(device), expected, "{device:?}");
        }
        let root = "27 1 0:60 / / rw - overlay overlay rw,lowerdir=/of/the/host\n";
        assert!(Mounts::parse(root).is_local((0, 60)));
        let named = mounts.named((0, 50)).unwrap();
        assert_eq!(named, ("fuse.sshfs".into(), "/mnt/far\\040away".into()));
    }

    #[test]
    fn a_path_is_where_the_longest_mount_point_leads() {
        let mounts = Mounts::parse(MOUNTS);
        for (path, device) in [
            ("/", (254, 0)),
            ("/bin/sh", (254, 0)),
            ("/mnt", (0, 51)),
            ("/mnts", (254, 0)),
            ("/mnt/x", (0, 51)),
            ("/mnt/far away/lib.so", (0, 50)),
            ("/srv/one", (0, 52)),
        ] {
            assert_eq!(mounts.device_of(path), Some(device), "{path}");
        }
        assert_eq!(Mounts::default().device_of("/"), None);
    }

    #[test]
    fn ours_are_read() {
        let mounts = Mounts::read();
        let proc = std::fs::metadata("/proc").unwrap().dev();
        assert!(mounts.is_local((major(proc), minor(proc))));
    }
}
