//! Notices that ppt attaches or detaches. `tracing` remembers which callsites are wanted, and does not ask again
//! by itself.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;
use tracing_core::callsite::rebuild_interest_cache;

/// The longest time until a program notices that ppt has attached.
const INTERVAL: Duration = Duration::from_millis(50);

/// Starts the thread that watches for sessions, once a process.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    // Read before the thread starts, so that it notices a session that begins before its first check.
    let session = session();
    STARTED.call_once(|| {
        let thread = thread::Builder::new().name("ppt-tracing".into());
        // Without the thread, the program continues, and the callsites stay as they are.
        let _ = thread.spawn(move || watch(session));
    });
}

/// The numbers of the sessions of both buffers; 0 if there is none.
fn session() -> (u64, u64) {
    (crate::frames::tracing::session(), crate::frames::callsites::session())
}

fn watch(mut known: (u64, u64)) {
    // The program expects signals in its own threads.
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
