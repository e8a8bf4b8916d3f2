//! Names that stay from version to version: commands, options, JSON keys and series of `ppt` and
//! `pptc`.

#[path = "../../stable/hold.rs"]
pub mod list;

use std::collections::BTreeSet;

use list::{hold, keys, options};

use crate::fixtures::scraped::Served;
use crate::fixtures::support::{Bench, root, text};
use crate::session::metrics::{run, sums};

#[test]
fn commands_and_options_stay() {
    let bench = Bench::new();
    let help = |words: &[&str]| bench.ppt(&[words, &["--help"]].concat()).stdout;
    let all = help(&[]);
    let commands = all.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands =
        commands.filter(|word| !word.is_empty() && !["ppt", "sudo", "-h,", "-V,"].contains(word));
    let mut there = BTreeSet::new();
    for command in commands {
        there.extend(options(&format!("ppt {command}"), &help(&[command])));
    }
    let live = help(&["whatif", "--live"]);
    there.extend(options("ppt whatif --live", &live));
    for words in [&["--help"][..], &["fmt", "--help"], &["functions", "--help"]] {
        let output = bench.command(env!("CARGO_BIN_EXE_pptc")).args(words).output().unwrap();
        let command = format!("pptc {}", words[..words.len() - 1].join(" "));
        there.extend(options(command.trim_end(), &text(&output.stdout)));
    }
    assert!(there.contains("ppt attach --kernel") && there.contains("pptc --emit"), "{there:?}");
    hold(root(), "options.txt", &there);
}

#[test]
fn keys_of_json_stay() {
    let bench = Bench::new();
    bench.copy_all(&["job.frame", "block.c"]);
    bench.pptc(&["job.frame"]);
    bench.cc(&["block.c", "job.c", "-o", "block"]);
    let mut target = bench.start("block", &[]);
    let mut there = BTreeSet::new();
    let mut ask = |args: &[&str]| {
        let ran = bench.ppt(args);
        let answer =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        keys(args[0], &answer, &["tags", "values"], &mut there);
    };
    let pid = target.pid().to_string();
    ask(&["doctor", "--json", &pid]);
    let attach = bench.attach(&target, &[]);
    ask(&["list", "--json", &pid]);
    target.run();
    attach.stop();
    target.finish();
    ask(&["info", "--json", "out.bin"]);
    assert!(there.contains("doctor.checks[].verdict: string"), "{there:#?}");
    assert!(there.contains("info.buffers[].frames: number"), "{there:#?}");
    hold(root(), "ppt-json.txt", &there);
}

/// Series keep their names and labels: those of every session, and those that follow from a frame
/// file.
#[test]
fn series_of_metrics_stay() {
    let bench = sums();
    let mut target = bench.start("sums", &["1", "10"]);
    let served = Served::attach(&bench, &target, &["--counters", "10ms"]);
    run(&mut target);
    let scrape = served.scrape_until("counters are read", |scrape| {
        scrape.all("ppt_sums_bytes_total", &[]).any(|entry| entry.1 > 0.0)
    });
    hold(root(), "metrics.txt", &scrape.names().collect());
    served.attach.stop();
    target.finish();
}
