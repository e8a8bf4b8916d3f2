//! What the memory limits of a process's control groups leave: cgroups(7), both versions.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit above this is none: version 1 writes the largest page-aligned number.
const NO_LIMIT: u64 = 1 << 60;

/// A control group with a limit of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroup {
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes that its processes may still take. Page cache that the kernel can drop counts as free.
    pub left: u64,
}

/// The groups of process `pid` that limit its memory, from its own up, as far as this process sees
/// them. `proc` is where procfs is mounted; `pid` may be `self`.
pub fn memory_groups(proc: &Path, pid: &str) -> Vec<MemoryGroup> {
    let read = |path: &str| {
        String::from_utf8_lossy(&fs::read(proc.join(path)).unwrap_or_default()).into_owned()
    };
    let (groups, mounts) = (read(&format!("{pid}/cgroup")), read("self/mountinfo"));
    let folders = mounts.lines().filter_map(|mount| folder(mount, &groups));
    folders.flat_map(|(root, folder)| limited(&root, &folder)).collect()
}

/// The mount point and the folder of the process's group in it, if the line of mountinfo is a
/// hierarchy that limits memory (proc_pid_mountinfo(5), proc_pid_cgroup(5)).
fn folder(mount: &str, groups: &str) -> Option<(PathBuf, PathBuf)> {
    let (before, after) = mount.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, point) = (fields.next()?, PathBuf::from(fields.next()?));
    let mut fields = after.split(' ');
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let limits = options.split(',').any(|option| option == "memory");
    let group = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match kind {
            "cgroup2" => controllers.is_empty(),
            "cgroup" => limits && controllers.split(',').any(|name| name == "memory"),
            _ => false,
        };
        is_it.then_some(path)
    })?;
    // A container may see only a part of the hierarchy.
    let below = Path::new(group).strip_prefix(root).ok()?;
    let is_inside = !below.components().any(|part| part == std::path::Component::ParentDir);
    is_inside.then(|| (point.clone(), point.join(below)))
}

/// The groups from `folder` up to `root` that have a limit.
fn limited(root: &Path, folder: &Path) -> Vec<MemoryGroup> {
    let groups = folder.ancestors().take_while(|folder| folder.starts_with(root));
    groups.filter_map(MemoryGroup::of_folder).collect()
}

impl MemoryGroup {
    fn of_folder(folder: &Path) -> Option<Self> {
        let number = |file: &str| -> Option<u64> {
            fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
        };
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let stated = |name: &str| -> Option<u64> {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.parse().ok()
        };
        // Beyond `high`, the kernel slows the group down. Groups above may be out of sight, but not the
        // `hierarchical` limit.
        let limits = [
            number("memory.max"),
            number("memory.high"),
            number("memory.limit_in_bytes"),
            stated("hierarchical_memory_limit"),
        ];
        let limit = limits.into_iter().flatten().min().filter(|&limit| limit < NO_LIMIT)?;
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
        let cached = stated("total_inactive_file").or_else(|| stated("inactive_file")).unwrap_or(0);
        let left = limit.saturating_sub(used.saturating_sub(cached));
        Some(Self { folder: folder.to_owned(), left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A procfs and a hierarchy of control groups.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new(group: &str, mount: &str) -> Self {
            let fake = Self(tempfile::tempdir().unwrap());
            fake.write("proc/7/cgroup", group);
            let mount = mount.replace("HERE", fake.0.path().join("groups").to_str().unwrap());
            fake.write("proc/self/mountinfo", &mount);
            fake
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn left(&self) -> Vec<(String, u64)> {
            let found = memory_groups(&self.0.path().join("proc"), "7").into_iter();
            let root = self.0.path().join("groups");
            let shown = |group: MemoryGroup| {
                let folder = group.folder.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                (folder, group.left)
            };
            found.map(shown).collect()
        }
    }

    #[test]
    fn every_limit_above_a_process_counts() {
        let mount = "30 23 0:26 / HERE rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let fake = Fake::new("0::/a/b\n", mount);
        assert_eq!(fake.left(), [], "no files");
        fake.write("groups/a/b/memory.max", "max\n");
        fake.write("groups/a/b/memory.current", "3000\n");
        assert_eq!(fake.left(), [], "no limit");
        fake.write("groups/a/memory.max", "10000\n");
        fake.write("groups/a/memory.current", "3000\n");
        fake.write("groups/a/memory.stat", "anon 2000\ninactive_file 1000\n");
        assert_eq!(fake.left(), [("a".to_owned(), 8000)], "dropped cache is free");
        fake.write("groups/a/b/memory.high", "4000\n");
        assert_eq!(fake.left(), [("a/b".to_owned(), 1000), ("a".to_owned(), 8000)]);
        fake.write("groups/a/memory.current", "30000\n");
        assert_eq!(fake.left()[1].1, 0, "above its limit");
    }

    #[test]
    fn the_first_version_counts_too() {
        let mount = "31 23 0:27 / /elsewhere rw - cgroup cgroup rw,cpu,cpuacct\n\
                     32 23 0:28 / HERE rw - cgroup cgroup rw,memory\n";
        let fake = Fake::new("9:cpu,cpuacct:/x\n4:memory:/a\n0::/z\n", mount);
        fake.write("groups/memory.limit_in_bytes", "9223372036854771712\n");
        fake.write("groups/memory.usage_in_bytes", "5\n");
        fake.write("groups/a/memory.limit_in_bytes", "9000\n");
        fake.write("groups/a/memory.usage_in_bytes", "1000\n");
        assert_eq!(fake.left(), [("a".to_owned(), 8000)]);
        fake.write(
            "groups/a/memory.stat",
            "hierarchical_memory_limit 4000\ntotal_inactive_file 1\n",
        );
        assert_eq!(fake.left(), [("a".to_owned(), 3001)], "a limit above that is out of sight");
    }

    #[test]
    fn a_container_sees_its_part() {
        let mount = "40 23 0:26 /pod/c1 HERE ro - cgroup cgroup rw,memory\n";
        let fake = Fake::new("4:memory:/pod/c1/sub\n", mount);
        fake.write("groups/sub/memory.limit_in_bytes", "50\n");
        fake.write("groups/sub/memory.usage_in_bytes", "20\n");
        assert_eq!(fake.left(), [("sub".to_owned(), 30)]);
        fake.write("proc/7/cgroup", "4:memory:/other\n");
        assert_eq!(fake.left(), [], "not in sight");
        let whole = "40 23 0:26 / HERE ro - cgroup cgroup rw,memory\n";
        let fake = Fake::new("4:memory:/../../etc\n", whole);
        fake.write("etc/memory.limit_in_bytes", "50\n");
        assert_eq!(fake.left(), [], "outside of this process's namespace");
    }
}
