//! Removes segments of agents that were killed between making a segment and marking it for removal.

use ppt_segment::abi::SHM_KEY_PREFIX;
use ppt_segment::sysv;

use crate::system::System;

/// Removes segments that are certainly ppt's and certainly left over: they have ppt's key prefix
/// and the same user, no process has attached them, and their creator has ended. Returns their
/// number.
pub fn sweep(system: &System) -> usize {
    let Some(table) = system.proc_text("sysvipc/shm") else { return 0 };
    let uid = rustix::process::geteuid().as_raw();
    let left = table.lines().skip(1).filter_map(|line| left_behind(system, line, uid));
    left.filter(|&id| sysv::mark_removed(id).is_ok()).count()
}

/// The id of a leftover segment, from a line of `/proc/sysvipc/shm`: key, shmid, perms, size, cpid,
/// lpid, nattch, uid, gid, cuid, cgid, …
fn left_behind(system: &System, line: &str, uid: u32) -> Option<i32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
    let ours = number(0)? as u32 & 0xffff_0000 == SHM_KEY_PREFIX
        && number(6)? == 0
        && number(7)? == i64::from(uid)
        && number(9)? == i64::from(uid);
    let creator = u64::try_from(number(4)?).ok()?;
    (ours && system.start_time(creator).is_none()).then_some(number(1)? as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: u32, cpid: u32, nattch: u32, uid: u32) -> String {
        format!("{key:10} 7 600 4096 {cpid} 0 {nattch} {uid} 0 {uid} 0 0 0 0 0 0")
    }

    #[test]
    fn only_what_is_ours_and_left_is_removed() {
        let system = System::default();
        let (key, dead, alive) = (SHM_KEY_PREFIX | 5, 0x3fff_fff0, std::process::id());
        assert_eq!(left_behind(&system, &line(key, dead, 0, 1), 1), Some(7));
        assert_eq!(left_behind(&system, &line(key, alive, 0, 1), 1), None, "its maker lives");
        assert_eq!(left_behind(&system, &line(key, dead, 1, 1), 1), None, "attached");
        assert_eq!(left_behind(&system, &line(key, dead, 0, 2), 1), None, "another user's");
        assert_eq!(left_behind(&system, &line(5, dead, 0, 1), 1), None, "another program's");
        assert_eq!(left_behind(&system, "rubbish", 1), None);
    }
}
