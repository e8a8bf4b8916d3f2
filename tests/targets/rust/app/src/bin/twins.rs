//! twins: this program and the crate that it links each have a buffer of the same frame file. It
//! also has short-lived threads, and a signal handler that writes frames.
#![deny(warnings)]

ppt_probe::include_frames!("job");
use job::Login;

extern "C" fn handler(_: i32) {
    Login::write(|f| f.who = -1);
    app::login(-1);
}

fn main() {
    // SAFETY: the handler writes frames only.
    unsafe { libc::signal(libc::SIGUSR1, handler as extern "C" fn(i32) as usize) };
    app::serve(|| {
        for who in 0..100 {
            std::thread::spawn(move || {
                Login::write(|f| f.who = who);
                app::login(who);
            })
            .join()
            .unwrap();
        }
        // SAFETY: a signal that has a handler.
        unsafe { libc::raise(libc::SIGUSR1) };
        303
    });
}
