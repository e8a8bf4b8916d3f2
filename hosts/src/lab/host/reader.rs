//! Privileges of the process that reads other users' captures.

use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use super::error::{HostError, cannot};

/// Gives up every capability of root except the one that opens files, and becomes the user and the
/// group that `user` (`UID:GID`) names, if any. A process without root's privileges stays as it is.
pub(super) fn step_down(user: &str) -> Result<(), HostError> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let held = capabilities(None).map_err(cannot("ask for its capabilities"))?.permitted;
    let retained = held & CapabilitySet::DAC_READ_SEARCH;
    if let Some((uid, gid)) = user.split_once(':') {
        let number = |text: &str| text.parse().map_err(|_| HostError::Arguments);
        let (uid, gid) = (Uid::from_raw(number(uid)?), Gid::from_raw(number(gid)?));
        set_keep_capabilities(true).map_err(cannot("keep a capability"))?;
        setgroups(&[gid]).and_then(|()| setgid(gid)).map_err(cannot("leave its groups"))?;
        setuid(uid).map_err(cannot("become another user"))?;
    }
    // Only inheritable and ambient capabilities survive execve(2) for a user that is not root.
    let sets = CapabilitySets { effective: retained, permitted: retained, inheritable: retained };
    set_capabilities(None, sets).map_err(cannot("give up its capabilities"))?;
    if !retained.is_empty() {
        configure_capability_in_ambient_set(retained, true).map_err(cannot("keep a capability"))?;
    }
    // Keeps root from regaining capabilities by execve(2).
    set_no_new_privs(true).map_err(cannot("give up its capabilities"))
}
