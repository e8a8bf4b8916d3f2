//! Notices that ppt attaches or detaches. `tracing` remembers which callsites somebody is interested in, and does
//! not ask again by itself.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;
use tracing_core::callsite::rebuild_interest_cache;

/// How long a program may not notice that ppt has attached.
const INTERVAL: Duration = Duration::from_millis(50);

/// Starts the thread that looks, once a process.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    // What comes between here and the thread's first look is noticed by it.
    let session = session();
    STARTED.call_once(|| {
        let thread = thread::Builder::new().name("ppt-tracing".into());
        // Without the thread, the program goes on; ppt sees what it sees by now.
        let _ = thread.spawn(move || look(session));
    });
}

/// A number of what is attached: another session has another one.
fn session() -> (u64, u64) {
    (crate::frames::tracing::session(), crate::frames::callsites::session())
}

fn look(mut known: (u64, u64)) {
    // The program's signals are for the threads that it made.
    let _ = SigSet::all().thread_block();
    loop {
        let now = session();
        if now != known {
            known = now;
            #[cfg(feature = "log")]
            crate::records::set_level();
            rebuild_interest_cache(); // describes all callsites
        }
        thread::sleep(INTERVAL);
    }
}
