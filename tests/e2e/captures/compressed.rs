//! Captures with compressed frames: the same frames in less space, in all situations.

use std::collections::BTreeSet;
use std::fs;

use crate::fixtures::flood::{self, frames};
use crate::fixtures::ledger::{Ledger, captures};
use crate::fixtures::support::{Account, Bench, wait_until};

const CODECS: [&str; 2] = ["zstd", "lz4"];

/// A capture with `--compress codec`, or without, and its content: (thread, sequence number of the
/// thread).
fn captured(bench: &Bench, codec: Option<&str>) -> BTreeSet<(u64, u64)> {
    let name = format!("{}.bin", codec.unwrap_or("raw"));
    let mut target = bench.start("flood", &["2", "10000"]);
    let mut args = vec!["-o", &name];
    args.extend(codec.iter().flat_map(|codec| ["--compress", codec]));
    let attach = bench.attach(&target, &args);
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info(&name);
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "{account:?}");
    frames(bench, &name).iter().map(|beat| (beat.thread, beat.n)).collect()
}

#[test]
fn the_same_frames_take_less_room() {
    let bench = flood::build();
    let expected = captured(&bench, None);
    assert_eq!(expected.len(), 20_000);
    let raw = bench.info("raw.bin");
    assert_eq!(raw["stored"]["codecs"], serde_json::json!([]));
    assert_eq!(raw["stored"]["bytes"], raw["stored"]["raw_bytes"]);
    assert!(!bench.ppt(&["info", "raw.bin"]).stdout.contains("stored"));
    for codec in CODECS {
        let name = format!("{codec}.bin");
        assert!(captured(&bench, Some(codec)) == expected, "{codec}");
        let info = bench.info(&name);
        let number = |what: &str| info["stored"][what].as_u64().unwrap();
        assert_eq!(info["stored"]["codecs"], serde_json::json!([codec]));
        assert_eq!(number("raw_bytes"), raw["stored"]["raw_bytes"].as_u64().unwrap());
        let size = |name: &str| fs::metadata(bench.path(name)).unwrap().len();
        assert!(number("bytes") < number("raw_bytes"));
        assert!(size(&name) < size("raw.bin"), "{codec}");
        assert!(number("bytes") < size(&name));
        let stdout = bench.ppt(&["info", &name]).stdout;
        assert!(stdout.contains(&format!("\nstored    {codec}: ")), "{stdout}");
    }
}

#[test]
fn sizes_are_those_of_the_file() {
    const MAX_BYTES: u64 = 1 << 20;
    let bench = flood::build();
    for codec in CODECS {
        let target = flood::start_endless(&bench, "4");
        let name = format!("{codec}.bin");
        let attach = bench.attach(&target, &["--compress", codec, "--max-size", "1M", "-o", &name]);
        attach.ended(0);
        let size = fs::metadata(bench.path(&name)).unwrap().len();
        let info = bench.info(&name);
        let raw = info["stored"]["raw_bytes"].as_u64().unwrap();
        assert!(size <= MAX_BYTES, "{size}");
        assert!(info["complete"] == true && size >= MAX_BYTES / 4, "{codec}: {size} of {raw}");
        frames(&bench, &name);
        drop(target);

        let target = flood::start_endless(&bench, "4");
        let stem = format!("{codec}-part.bin");
        let args = ["--compress", codec, "--rotate", "1M", "--slots", "1024", "-o", &stem];
        let attach = bench.attach(&target, &args);
        let stem = format!("{codec}-part");
        wait_until("there are four files", || captures(&bench, &stem).len() >= 4);
        attach.stop();
        let mut ledger = Ledger::default();
        for name in captures(&bench, &stem) {
            ledger.take(&bench, &name);
            assert!(fs::metadata(bench.path(&name)).unwrap().len() <= MAX_BYTES, "{name}");
        }
    }
}

#[test]
fn killed_at_any_time_it_is_readable() {
    let bench = flood::build();
    for codec in CODECS {
        let target = flood::start_endless(&bench, "4");
        let mut captured = 0;
        for round in 0..4 {
            let name = format!("{codec}{round}.bin");
            let attach = bench.attach(&target, &["--compress", codec, "-o", &name]);
            let least = 1 << (14 + 2 * round);
            let size = || fs::metadata(bench.path(&name)).unwrap().len();
            wait_until("there is something to read", || size() >= least);
            attach.kill();
            let info = bench.info(&name);
            assert_eq!(info["complete"], false);
            let account = Account::of(&info);
            assert_eq!(frames(&bench, &name).len() as u64, account.captured);
            assert_eq!(info["damages"], 0, "{info}");
            captured += account.captured;
        }
        // Not in each, because the first chunk may have been truncated.
        assert!(captured > 0);
    }
}
