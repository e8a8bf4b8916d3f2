//! Processes that `ppt list` may not read, by owner.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use nix::unistd::{Uid, User, geteuid};
use ppt_agent::AgentError;

/// The most owners that the message names.
const MAX_OWNERS: usize = 4;

/// The number of unreadable processes of each user.
#[derive(Debug, Default)]
pub(super) struct Unreadable(BTreeMap<u32, usize>);

impl Unreadable {
    /// Counts process `pid` if `error` is a refusal of access.
    pub(super) fn note(&mut self, pid: i32, error: &AgentError) {
        let owner = std::fs::metadata(format!("/proc/{pid}")).map(|folder| folder.uid());
        if let (AgentError::Denied(_), Ok(owner)) = (error, owner) {
            *self.0.entry(owner).or_default() += 1;
        }
    }

    /// `12 processes of root and 1 of daemon were not readable; …`, if there are any.
    pub(super) fn message(&self) -> Option<String> {
        let mut owners: Vec<(u32, usize)> =
            self.0.iter().map(|(&uid, &count)| (uid, count)).collect();
        owners.sort_by_key(|&(uid, count)| (std::cmp::Reverse(count), uid));
        let others: usize = owners.iter().skip(MAX_OWNERS).map(|(_, count)| count).sum();
        let mut parts: Vec<String> = Vec::new();
        for &(uid, count) in owners.iter().take(MAX_OWNERS) {
            let noun = match (parts.is_empty(), count) {
                (true, 1) => " process",
                (true, _) => " processes",
                (false, _) => "",
            };
            parts.push(format!("{count}{noun} of {}", name(uid)));
        }
        parts.extend((others > 0).then(|| format!("{others} of other users")));
        let (last, before) = parts.split_last()?;
        let all = match before {
            [] => last.clone(),
            before => format!("{} and {last}", before.join(", ")),
        };
        let was = if self.0.values().sum::<usize>() == 1 { "was" } else { "were" };
        let advice = if geteuid().is_root() {
            "`ppt doctor PID` says why"
        } else {
            "`sudo ppt list` lists the buffers of every process"
        };
        Some(format!("{all} {was} not readable; {advice}"))
    }
}

/// The name of a user, or the number where it has none.
fn name(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| format!("user {uid}"), |user| ppt_agent::escaped(&user.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_named_most_processes_first() {
        let message =
            |counts: &[(u32, usize)]| Unreadable(counts.iter().copied().collect()).message();
        assert_eq!(message(&[]), None);
        let text = |counts: &[(u32, usize)]| message(counts).unwrap_or_default();
        assert!(text(&[(0, 1)]).starts_with("1 process of root was not readable; `"));
        let none = 4_000_000_001;
        let expected = format!("5 processes of user {none} and 1 of root were not readable; `");
        assert!(text(&[(0, 1), (none, 5)]).starts_with(&expected));
        let many: Vec<(u32, usize)> = (0..6).map(|at| (none + at, 9 - at as usize)).collect();
        let text = text(&many);
        assert!(text.contains(&format!("6 of user {}", none + 3)), "{text}");
        assert!(text.contains(" and 9 of other users were not"), "{text}");
    }
}
