//! The paper's program and the documented forms, as a user would write them.

use crate::fixtures::support::{Account, Bench, available};

fn figure3(compiler: &str, args: &[&str]) {
    let bench = Bench::new();
    bench.copy("figure3.c");
    std::fs::copy(bench.copy("figure2.frame"), bench.path("example.frame")).unwrap();
    bench.pptc(&["example.frame"]);
    bench.compile(
        compiler,
        &[args, &["figure3.c", "example.c", "-o", "figure3", "-lpthread"]].concat(),
    );
    let mut target = bench.start("figure3", &["3000"]);
    let attach = bench.attach(&target, &[]);
    let written = target.run();
    attach.stop();
    target.finish();

    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!((account.captured, written), (3000, 3000));
    let table = bench.table("out.bin", &[]);
    let columns = "seqno ring tid kind who sleep.tv_sec sleep.tv_usec start.tv_sec start.tv_usec \
                   end.tv_sec end.tv_usec";
    assert_eq!(table.columns, columns.split_whitespace().collect::<Vec<_>>());
    assert_eq!(table.numbers("seqno"), (1..=3000).collect::<Vec<_>>());
    let time = |name: &str| {
        let seconds = table.numbers(&format!("{name}.tv_sec"));
        let micros = table.numbers(&format!("{name}.tv_usec"));
        seconds.iter().zip(micros).map(|(s, us)| s * 1_000_000 + us).collect::<Vec<_>>()
    };
    let (sleep, start, end) = (time("sleep"), time("start"), time("end"));
    for (index, (kind, who)) in
        table.numbers("kind").into_iter().zip(table.numbers("who")).enumerate()
    {
        let event = index as i64 + 1;
        let expected = if event % 3 == 0 { (-1, -1) } else { (0, event % 70 + 1) };
        assert_eq!((kind, who), expected, "row {event}");
        // next_event waits 200 µs between the two stamps.
        assert!(start[index] - sleep[index] >= 190, "row {event}");
        assert!(end[index] >= start[index], "row {event}");
        assert!(index == 0 || sleep[index] >= end[index - 1], "row {event}");
    }
}

#[test]
fn figure_3_as_c11() {
    figure3("gcc", &["-std=c11"]);
}

#[test]
fn figure_3_as_cpp17() {
    if !available("g++") {
        return;
    }
    figure3("g++", &["-std=c++17", "-x", "c++"]);
}

fn block(compiler: &str, args: &[&str]) {
    let bench = Bench::new();
    bench.copy_all(&["block.c", "job.frame"]);
    bench.pptc(&["--emit", "c", "job.frame"]);
    bench.compile(compiler, &[args, &["block.c", "job.c", "-o", "block", "-lpthread"]].concat());
    let mut target = bench.start("block", &[]);
    let attach = bench.attach(&target, &["--slots", "65536"]);
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    assert_eq!(Account::of(&info).captured, 9500);
    assert_eq!(info["buffers"][0]["tags"]["build"], "r1234");

    let jobs = bench.table("out.bin", &["--frame", "job"]);
    let expected: Vec<i64> = (0..5000).filter(|i| i % 10 != 9).collect();
    assert_eq!(jobs.numbers("who"), expected);
    assert!(jobs.cells("kind").iter().all(|&it| it == "LOGIN"));
    assert!(jobs.cells("name").iter().all(|&it| it == "block"));
    assert!(jobs.cells("bytes").iter().all(|&it| it == "0"), "what is not set is 0");
    let first: Vec<f64> = jobs.cells("pos_0").iter().map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(first, expected.iter().map(|&i| i as f64 * 0.5).collect::<Vec<_>>());
    let (start, end) = (jobs.numbers("handle_start"), jobs.numbers("handle_end"));
    assert!(start.iter().zip(&end).all(|(start, end)| 0 < *start && start <= end));

    let logins = bench.table("out.bin", &["--frame", "login"]);
    assert_eq!(logins.numbers("who"), (0..5000).collect::<Vec<_>>());
    // Set at every second frame; it keeps its value in between.
    let expected: Vec<i64> = (0..5000).map(|i| i64::from(i / 2 % 2 == 0)).collect();
    assert_eq!(logins.numbers("in_"), expected);
    let when = logins.numbers("when");
    assert!(when.is_sorted() && when[0] > 0);

    let all = bench.table("out.bin", &[]);
    assert_eq!(all.rows.len(), 9500);
    assert_eq!(all.columns[3], "frame");
}

#[test]
fn block_form_and_macro_form_as_c11() {
    block("gcc", &["-std=c11"]);
}

#[test]
fn block_form_and_macro_form_as_cpp17() {
    if !available("g++") {
        return;
    }
    block("g++", &["-std=c++17", "-x", "c++"]);
}

#[test]
fn the_costly_part_runs_only_while_ppt_is_attached() {
    let bench = Bench::new();
    bench.copy_all(&["block.c", "job.frame"]);
    bench.pptc(&["job.frame"]);
    bench.cc(&["block.c", "job.c", "-o", "block", "-lpthread"]);
    let mut command = bench.command(bench.path("block"));
    command.stderr(std::fs::File::create(bench.path("stderr")).unwrap());
    let mut target = crate::fixtures::support::Target::start(command);
    assert_eq!(target.run(), 9500);
    target.finish();
    assert_eq!(std::fs::read_to_string(bench.path("stderr")).unwrap(), "prepared 0\n");
}
