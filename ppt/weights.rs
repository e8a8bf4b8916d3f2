//! Weights of threads that `ppt whatif --live --pause-host` left: its guard restores them if ppt is killed. If both
//! are killed, the next ppt that finds the dead one restores them.

use std::io;

use ppt_agent::{AttachedBuffer, Session};

use crate::report;

/// Makes the threads of a process ordinary again that a ppt has made heavier. Returns their number.
///
/// # Errors
/// The kernel refuses one of them.
pub(crate) fn restore(pid: i32, except: &[i32]) -> io::Result<usize> {
    let mut heavier = ppt_kernel::heavier_threads(pid);
    heavier.retain(|tid| !except.contains(tid));
    let results: Vec<_> = heavier.iter().map(|&tid| ppt_kernel::restore_weight(tid)).collect();
    results.into_iter().collect::<io::Result<()>>().map(|()| heavier.len())
}

/// Restores the weights of a process if its session took a buffer over from a ppt that has died.
pub(crate) fn restore_after_death(session: &Session) {
    let has_died = |buffer: &AttachedBuffer| {
        buffer.took_over.as_ref().is_some_and(|holder| holder.alive == Some(false))
    };
    if session.attached().iter().any(has_died) {
        restore_left(session.target().pid());
    }
}

/// Restores the weights that a killed ppt left in a process, with a message.
pub(crate) fn restore_left(pid: i32) {
    match restore(pid, &[]) {
        Ok(0) => {}
        Ok(count) => report::note(format_args!(
            "process {pid}: threads that a killed ppt had made heavier have their ordinary weight again: {count}"
        )),
        Err(error) => report::note(format_args!(
            "process {pid}: a killed ppt has left threads heavier (ps -L -o ni), and they stay so: {error}"
        )),
    }
}
