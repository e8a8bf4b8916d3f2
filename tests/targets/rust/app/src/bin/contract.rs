//! contract ROUNDS: the documented program, and every way out of a scope.
#![deny(warnings)]
#![forbid(unsafe_code)]

ppt_probe::include_frames!("job"); // mod job { … }, one module per buffer
use job::{Job, Kind, Login};

fn serve(user: i32) {
    let _handle = Job::scope(|f| f.who = user); // stamps handle_start now; handle_end and the write when dropped, also on panic
    Job::write(|f| {
        // runs only when on; what is not set is 0
        f.kind = Kind::Login;
        f.who = user;
        f.pos = [1.0, 0.5, -1.0];
        f.name.set("rust"); // char[16]: cut at a character boundary, zero-padded
    });
    job::write_job!(kind = Kind::Update, who = user); // the paper's style: other fields keep their last value
}

/// One frame.
fn early(user: i32) -> Option<i32> {
    let mut scope = Job::scope(|f| f.who = user);
    scope.set(|f| f.bytes = 7);
    let odd = (user % 2 == 1).then_some(user)?;
    scope.set(|f| f.bytes = 8);
    Some(odd)
}

fn main() {
    let rounds: i32 = std::env::args().nth(1).unwrap().parse().unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    // While nobody is attached: kept for the first frame that is written.
    job::set_job!(name = "größer als sechzehn", bytes = 3);
    app::serve(|| {
        job::prepare();
        let begun = job::now();
        for user in 0..rounds {
            serve(user);
        }
        early(1);
        early(2);
        let result = std::panic::catch_unwind(|| {
            let _scope = Job::scope(|f| f.who = -7);
            panic!("on purpose");
        });
        assert!(result.is_err());
        job::set_login!(who = 5);
        job::write_login!(in_ = true, when = begun);
        job::write_login!(who = 6);
        Login::write(|f| f.who = 7);
        u64::try_from(rounds).unwrap() * 3 + 6
    });
}
