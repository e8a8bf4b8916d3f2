//! The commands of `examples/README.md`, on a table whose answers are known.

use std::fs;

use crate::fixtures::support::{Bench, root, text};

/// Two users' updates, ten a second; the second one's fifth is missing. Two logins, three steps.
fn table() -> String {
    let mut rows = vec![(0, 1, 1, 10), (300_000, 1, 2, 10)];
    rows.extend([10_000, 510_000, 1_110_000].map(|start| (start, -1, -1, 2_000)));
    rows.extend((0..10).map(|i| (50_000 + i * 100_000, 0, 1, 100)));
    rows.extend((0..10).filter(|i| *i != 4).map(|i| (350_000 + i * 100_000, 0, 2, 100)));
    rows.sort_unstable();
    let mut table = String::from(
        "seqno\tring\ttid\tkind\twho\tsleep.tv_sec\tsleep.tv_usec\tstart.tv_sec\tstart.tv_usec\t\
         end.tv_sec\tend.tv_usec\n",
    );
    for (row, (start, kind, who, took)) in rows.iter().enumerate() {
        let seqno = if row < 20 { row + 1 } else { row + 5 };
        let time = |us: i64| format!("{}\t{}", 1000 + us / 1_000_000, us % 1_000_000);
        let (start, end) = (time(*start), time(start + took));
        table += &format!("{seqno}\t0\t77\t{kind}\t{who}\t{start}\t{start}\t{end}\n");
    }
    table
}

/// The blocks of a page's shell commands.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|it| it.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_papers_analyses_can_be_read_off_a_table() {
    let page = fs::read_to_string(root().join("examples/README.md")).unwrap();
    let bench = Bench::new();
    bench.write("table.tsv", &table());
    let answers = commands(&page).into_iter().map(|command| {
        let output = bench.command("sh").args(["-ec", &command]).output().unwrap();
        assert_eq!(text(&output.stderr), "", "{command}");
        assert!(output.status.success(), "{command}");
        text(&output.stdout).lines().map(|line| line.trim().to_owned() + "\n").collect::<String>()
    });
    let expected = [
        // Of a second's 1,000,000: 2 * 10 + 16 * 100 + 2 * 2000 and 3 * 100 + 2000.
        "0.23% 0.23% 0.56%\n",
        "-1      3     2.4\n0     19    15.2\n1      2     1.6\n",
        "1 1\n",
        "100.0 100.0 200.0\n",
        "0 0 0 0 0 19 0 0 0 0\n",
        "1 gaps in 24 frames\n",
        "user 2: 9 updates, 1 missing\nuser 1: 10 updates, 0 missing\n\
         19 updates in all, 1 missing\n",
    ];
    assert_eq!(answers.collect::<Vec<_>>(), expected);
}
