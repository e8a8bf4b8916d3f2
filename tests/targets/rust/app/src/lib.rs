//! A crate that includes the same frame file as the program that links it, and every golden one.
#![deny(warnings, missing_docs)]
#![forbid(unsafe_code)]

mod goldens {
    #![allow(missing_docs)]
    ppt_probe::include_frames!("everything");
    ppt_probe::include_frames!("example");
    ppt_probe::include_frames!("hole");
    ppt_probe::include_frames!("no_time");
    ppt_probe::include_frames!("only_counters");
    ppt_probe::include_frames!("ticks");
    ppt_probe::include_frames!("timespecs");
    ppt_probe::include_frames!("timevals");
}

ppt_probe::include_frames!("job");

/// One frame of this crate's buffer.
pub fn login(who: i32) {
    job::Login::write(|f| f.who = who);
    goldens::example::Example::write(|f| f.who = who);
}

/// The protocol of test targets: print `ready`, wait, work, print the number of frames, wait.
pub fn serve(work: impl FnOnce() -> u64) {
    let mut line = String::new();
    println!("ready");
    if std::io::stdin().read_line(&mut line).unwrap() == 0 {
        return;
    }
    println!("written {}", work());
    while std::io::stdin().read_line(&mut line).unwrap() != 0 {}
}

/// A scope may be held over an `await` of a task that continues in another thread.
const _: fn(ppt_probe::Scope<job::Job>) = {
    fn is_send<T: Send>(_: T) {}
    is_send
};
