//! fork: a child of an attached program writes nothing, and its parent continues.
#![deny(warnings)]

ppt_probe::include_frames!("job");
use job::{Job, Login};

fn main() {
    app::serve(|| {
        Login::write(|f| f.who = 1);
        // SAFETY: the child only writes frames and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut ran = job::on();
            for who in 0..1000 {
                Login::write(|_| ran = true);
                job::write_login!(who = who);
                drop(Job::scope(|f| f.who = who));
            }
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(ran)) };
        }
        let mut status = 0;
        // SAFETY: our child, and a number of our own.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "the child was on");
        Login::write(|f| f.who = 2);
        2
    });
}
