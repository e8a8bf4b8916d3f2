//! Forked children of a process: how to recognise them, which buffers they share with their parent,
//! and how to find them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use nix::unistd::Pid;

use crate::budget::Budget;
use crate::buffer::{Buffer, FoundBy};
use crate::descriptor::{Candidate, Checked, check};
use crate::error::Result;
use crate::kin::process;
use crate::mapping::{Kept, MAPS_OF_MANY};
use crate::memory::read_by_call;
use crate::system::System;
use crate::target::Target;

const AT_RANDOM: u64 = 25;

/// The identity of a program run: 16 random bytes that the kernel puts on the stack at exec
/// (getauxval(3), AT_RANDOM). Forked children keep them until they start another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    address: u64,
    random: [u8; 16],
}

impl Target {
    /// The origin of the process. Two processes have the same origin if one is a fork of the other,
    /// or both are forks of a third. `None` if it cannot be read.
    pub fn origin(&self) -> Option<Origin> {
        let address = *self.auxiliary()?.get(&AT_RANDOM)?;
        let mut random = [0; 16];
        let read = self.memory().read_exact(address, &mut random);
        read.is_ok_and(|whole| whole).then_some(Origin { address, random })
    }

    /// The origin of the process, if it is one of `known`. Of another user's process, somebody with only
    /// CAP_SYS_PTRACE may not read where the random bytes are, but may look where `known` have theirs.
    pub fn origin_among<'a>(&self, known: impl IntoIterator<Item = &'a Origin>) -> Option<Origin> {
        let own = self.origin();
        let is_same =
            |origin: &&Origin| own.map_or_else(|| origin.is_in(self.pid()), |own| own == **origin);
        known.into_iter().find(is_same).copied()
    }

    /// Returns the buffers of `known` that this process has at the same addresses. `known` are
    /// buffers of a process of the same [origin](Self::origin). It does not search for other
    /// buffers.
    ///
    /// # Errors
    /// A buffer cannot be read: the process has ended, or it is not permitted.
    pub fn copies_of(&self, known: &[Buffer]) -> Result<Vec<Buffer>> {
        let (mappings, _) = self.mappings(Kept::Private, MAPS_OF_MANY)?;
        let mut budget = Budget::of_one();
        let copy = |buffer: &Buffer| {
            let (address, found_by) = (buffer.address, FoundBy::Copy);
            let candidate = Candidate { address, object: "", build_id: "", found_by };
            match check(self.memory(), &mappings, candidate, &mut budget) {
                Checked::Believed(found) if found.descriptor == buffer.descriptor => Some(Buffer {
                    name: buffer.name.clone(),
                    object: buffer.object.clone(),
                    build_id: buffer.build_id.clone(),
                    ..*found
                }),
                _ => None,
            }
        };
        Ok(known.iter().filter_map(copy).collect())
    }

    /// The parent, if this process still uses the parent's memory, as a child of vfork(2) does. A
    /// write to this process would change the parent.
    pub(crate) fn lender(&self) -> Option<i32> {
        const KCMP_VM: i32 = 1;
        let parent = self.parent()?;
        // SAFETY: no pointers; the call only compares. Where the kernel lacks it or refuses it, the
        // result is no answer.
        let order =
            unsafe { libc::syscall(libc::SYS_kcmp, self.pid(), parent, KCMP_VM, 0usize, 0usize) };
        (order == 0).then_some(parent)
    }

    /// The current parent, in ppt's pid namespace.
    pub fn parent(&self) -> Option<i32> {
        parent(self.system(), self.pid())
    }
}

impl Origin {
    /// Whether a process has the same bytes at the same address.
    fn is_in(&self, pid: i32) -> bool {
        let mut random = [0; 16];
        let read = read_by_call(Pid::from_raw(pid), self.address, &mut random);
        read.is_ok_and(|size| size == random.len()) && random == self.random
    }
}

/// The current parent of a process.
pub fn parent(system: &System, pid: i32) -> Option<i32> {
    Some(process(system, pid)?.stat().ok()?.ppid)
}

/// Whether the initial environment of a process contains `variable`. False if the environment
/// cannot be read.
pub fn was_started_with(system: &System, pid: i32, variable: &[u8]) -> bool {
    let all = read(system, pid, "environ").unwrap_or_default();
    all.split(|&byte| byte == 0).any(|piece| piece == variable)
}

/// Whether a process may have one of these origins. It reads one file, which excludes most
/// processes; if it may not, their random bytes.
pub fn may_be_of<'a>(
    system: &System,
    pid: i32,
    mut origins: impl Iterator<Item = &'a Origin>,
) -> bool {
    let Some(bytes) = read(system, pid, "auxv") else {
        return origins.any(|origin| origin.is_in(pid));
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let entry = bytes.chunks_exact(16).find(|chunk| word(&chunk[..8]) == AT_RANDOM);
    entry.is_some_and(|entry| origins.any(|origin| origin.address == word(&entry[8..])))
}

/// A file of a process that the kernel made when its program was started.
fn read(system: &System, pid: i32, file: &str) -> Option<Vec<u8>> {
    /// More than the kernel takes.
    const MAX_FILE_BYTES: u64 = 8 << 20;
    let file = File::open(system.proc.join(format!("{pid}/{file}"))).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The numbers of all processes.
fn numbers(system: &System) -> BTreeSet<i32> {
    let entries = std::fs::read_dir(&system.proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Finds new processes.
///
/// If there are none, a look costs one read.
#[derive(Debug)]
pub struct Newcomers {
    system: System,
    /// The processes that were there before and still live.
    earlier: BTreeSet<i32>,
    seen: BTreeSet<i32>,
    /// The last field of `/proc/loadavg`: the last pid that the system assigned.
    last: Option<String>,
    /// Looks since all processes were listed.
    idle: u32,
}

/// Number of looks after which all processes are listed regardless of `/proc/loadavg`, because
/// lxcfs may have replaced that file.
const IDLE: u32 = 10;

impl Newcomers {
    /// Finds processes that start from now on.
    pub fn new(system: &System) -> Self {
        let last = last_pid(system);
        let seen = numbers(system);
        Self { system: system.clone(), earlier: seen.clone(), seen, last, idle: 0 }
    }

    /// Whether a process was alive at the last list of all processes.
    pub fn lives(&self, pid: i32) -> bool {
        self.seen.contains(&pid)
    }

    /// Returns the living processes that are new since the last look.
    pub fn look(&mut self) -> Vec<i32> {
        let last = last_pid(&self.system);
        self.idle += 1;
        if last.is_some() && last == self.last && self.idle < IDLE {
            return Vec::new();
        }
        self.last = last;
        self.list()
    }

    /// Like [`Self::look`], but lists all processes regardless of `/proc/loadavg`: a process that
    /// is being forked has a pid but is not listed yet.
    pub fn list(&mut self) -> Vec<i32> {
        self.idle = 0;
        let before = std::mem::replace(&mut self.seen, numbers(&self.system));
        self.earlier.retain(|pid| self.seen.contains(pid));
        self.seen.difference(&before).copied().collect()
    }

    /// The processes of the last list that have started since [`Self::new`].
    pub fn recent(&self) -> impl Iterator<Item = i32> {
        self.seen.difference(&self.earlier).copied()
    }
}

fn last_pid(system: &System) -> Option<String> {
    Some(system.proc_text("loadavg")?.rsplit(' ').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn newcomers_are_those_since_the_last_look() {
        let root = tempfile::tempdir().unwrap();
        let system = System { proc: root.path().into(), ..System::default() };
        let comes = |pid: i32| {
            fs::create_dir(root.path().join(pid.to_string())).unwrap();
            let stat = format!("{pid} (a) S 7 {}\n", "0 ".repeat(48));
            fs::write(root.path().join(format!("{pid}/stat")), stat).unwrap();
        };
        let tell = |pid: i32| {
            fs::write(root.path().join("loadavg"), format!("0.1 0.1 0.1 1/80 {pid}\n")).unwrap();
        };
        tell(10);
        comes(10);
        let mut newcomers = Newcomers::new(&system);
        comes(11);
        assert!(newcomers.look().is_empty(), "nobody told of it");
        tell(11);
        assert_eq!(newcomers.look(), [11]);
        assert!(newcomers.look().is_empty());
        fs::remove_dir_all(root.path().join("10")).unwrap();
        comes(12);
        comes(9);
        tell(9);
        assert_eq!(newcomers.look(), [9, 12]);
        fs::remove_file(root.path().join("loadavg")).unwrap();
        comes(13);
        assert_eq!(newcomers.look(), [13], "nobody tells");
        assert_eq!(newcomers.recent().collect::<Vec<_>>(), [9, 11, 12, 13]);
        comes(15);
        assert_eq!(newcomers.list(), [15], "whoever tells");
        fs::remove_dir_all(root.path().join("15")).unwrap();
        assert!(newcomers.list().is_empty() && !newcomers.lives(15));
        tell(13);
        comes(14);
        let looks = (0..).find(|_| !newcomers.look().is_empty());
        assert!(looks.is_some_and(|looks| looks <= IDLE), "{looks:?}");
        assert_eq!(parent(&system, 12), Some(7));
        assert_eq!(parent(&system, 10), None);
    }
}
