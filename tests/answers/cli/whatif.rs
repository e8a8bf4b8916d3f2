//! `ppt whatif`: arguments, answers, and errors.

use ppt_capture::frame_dsl::schema::Schema;
use ppt_capture::{CaptureWriter, Cause, End, EndReason, FileHeader, FramesHead, Gap};
use serde_json::Value;

use crate::support::{self, Bench, capture, head};

const BEGIN: u64 = 1_700_000_000_000_000_000;

fn schema() -> Schema {
    let text = "emit C; buffer shop; option time ns realtime;\n\
                frame job { interval time handle @at; interval time parse; }";
    ppt_frame_dsl::compile(text.as_bytes(), "shop.frame").unwrap().schema
}

/// Jobs of 100 µs with pauses of 100 µs; half of each is spent in parsing.
fn jobs(schema: &Schema, which: std::ops::Range<u64>) -> Vec<u8> {
    let job = |n: u64| {
        let from = BEGIN + n * 200_000;
        let mut bytes = vec![0; schema.stride as usize];
        bytes[..8].copy_from_slice(&(n + 1).to_le_bytes());
        let values = [
            ("handle_start", from),
            ("handle_end", from + 100_000),
            ("parse_start", from + 25_000),
            ("parse_end", from + 75_000),
        ];
        for (name, value) in values {
            let field = schema.frames[0].fields.iter().find(|field| field.name == name).unwrap();
            bytes[field.offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    };
    which.flat_map(job).collect()
}

/// A capture of four jobs.
pub fn bench() -> Bench {
    let schema = schema();
    let header = FileHeader { created_realtime_ns: BEGIN, ..FileHeader::default() };
    let bench = Bench::empty();
    bench.write("out.bin", capture(&header, &schema, &[(head(1, 9), jobs(&schema, 0..4))]));
    bench
}

/// A capture of twenty jobs, some of which are lost.
fn lossy(lost: std::ops::Range<u64>) -> Bench {
    let schema = schema();
    let header = FileHeader { created_realtime_ns: BEGIN, ..FileHeader::default() };
    let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
    writer.source(0, &support::source(&schema)).unwrap();
    let chunk = |which: std::ops::Range<u64>| {
        let time = |n: u64| BEGIN + n * 200_000 + 100_000;
        FramesHead {
            nonce: 7,
            tid: 77,
            stride: schema.stride,
            count: (which.end - which.start) as u32,
            t_min: time(which.start),
            t_max: time(which.end - 1),
            ..head(which.start + 1, which.end * 200_000)
        }
    };
    for which in [0..lost.start, lost.end..20] {
        writer.frames(&chunk(which.clone()), &jobs(&schema, which)).unwrap();
    }
    let FramesHead { source, nonce, ring, .. } = chunk(0..20);
    let (first_seq, count) = (lost.start + 1, lost.end - lost.start);
    writer.gap(&Gap { source, nonce, ring, first_seq, count, cause: Cause::Overrun }).unwrap();
    let end = End::new(EndReason::Stopped, BEGIN + 4_000_000, 4_000_000);
    let bench = Bench::empty();
    bench.write("out.bin", writer.end(&end).unwrap());
    bench
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_rest_stays_as_long_as_it_was() {
    let bench = bench();
    let ask = |args: &[&str]| {
        json(&bench.done(&[&["whatif", "out.bin", "--format", "json"], args].concat()))
    };
    let twice = ask(&["--speed", "handle=2x", "--metric", "job.handle", "--metric", "end"]);
    assert_eq!(twice[0]["metric"], "job.handle");
    assert_eq!(twice[0]["speed"], serde_json::json!({ "job.handle": 2.0 }));
    assert_eq!((&twice[0]["was"]["n"], &twice[0]["was"]["mean"]), (&4.into(), &100_000.0.into()));
    assert_eq!(twice[0]["predicted"]["mean"], 50_000.0);
    assert_eq!(twice[0]["predicted"]["mean_lo"], 50_000.0);
    assert_eq!(twice[0]["critical_share"], 1.0);
    assert_eq!(
        (&twice[1]["was"]["mean"], &twice[1]["predicted"]["mean"]),
        (&700_000.0.into(), &500_000.0.into())
    );
    assert_eq!(twice[1]["predicted"]["mean_lo"], Value::Null);

    let swept = ask(&["--speed", "parse=2x", "--sweep", "1,2x,5", "--metric", "handle"]);
    let means: Vec<_> = (0..3).map(|at| swept[at]["predicted"]["mean"].as_f64().unwrap()).collect();
    assert_eq!(means, [100_000.0, 75_000.0, 60_000.0]);

    // By default, all intervals are ranked by their effect on the end.
    let ranked = ask(&[]);
    let ends: Vec<_> =
        ranked.as_array().unwrap().iter().map(|value| &value["predicted"]["mean"]).collect();
    assert_eq!(ends, [500_000.0, 600_000.0]);
    assert!(ranked[0]["speed"]["job.handle"] == 2.0 && ranked[1]["speed"]["job.parse"] == 2.0);
}

#[test]
fn people_read_a_table() {
    let bench = bench();
    let args =
        ["--speed", "parse=2x", "--sweep", "1,2", "--metric", "job.handle", "--format", "text"];
    let text = bench.done(&[&["whatif", "out.bin"], &args[..]].concat());
    let cells: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0], ["job.handle", "4", "of", "them"]);
    assert_eq!(cells[2][..5], ["as", "it", "was", "100", "µs"]);
    assert_eq!(cells[3][0], "job.parse=1x");
    assert!(text.lines().nth(3).unwrap().contains("no gain"), "{text}");
    assert!(text.lines().nth(4).unwrap().contains("25.0 %"), "{text}");
    let rows = bench.done(&["whatif", "out.bin", "--speed", "parse=2x", "--metric", "rate(parse)"]);
    assert!(rows.starts_with("metric\tspeed\tn\twas_mean") && rows.lines().count() == 2, "{rows}");
}

#[test]
fn what_is_not_known_is_said() {
    let bench = bench();
    for (args, said) in [
        (vec!["--speed", "handle"], "does not say how fast"),
        (vec!["--speed", "handle=0x"], "above 0"),
        (vec!["--speed", "handle=NaNx"], "above 0"),
        (vec!["--speed", "handle=2x", "--speed", "handle=3x"], "`handle` has two speeds"),
        (vec!["--speed", "handle=2x", "--speed", "job.handle=3x"], "`job.handle` has two speeds"),
        (vec!["--speed", "hande=2x"], "there is no interval `hande`"),
        (vec!["--speed", "handle=2x", "--metric", "path(a)"], "takes two points"),
        (vec!["--speed", "handle=2x", "--metric", "hande"], "there is no interval `hande`"),
        (vec!["--sweep", "2"], "--speed"),
        (vec!["--speed", "handle=2x", "--sweep", "0"], "a factor above 0"),
    ] {
        let (text, code) = bench.fails(&[&["whatif", "out.bin"], &args[..]].concat());
        assert!(text.contains(said) && code == 2, "{args:?}: {code} {text}");
    }
    let args = ["--speed", "handle=2x", "--metric", "path(sent, taken)"];
    let (text, code) = bench.fails(&[&["whatif", "out.bin"], &args[..]].concat());
    assert!(text.contains("there is no `sent` in the run") && code == 1, "{code} {text}");
}

#[test]
fn what_a_loss_touches_is_left_out() {
    let args = ["whatif", "out.bin", "--speed", "handle=2x", "--metric", "end"];
    let bench = lossy(5..7);
    let told = json(&bench.done(&[&args[..], &["--format", "json"]].concat()));
    // From the end of the fifth job, at 900 µs, to that of the eighth. Runs of 900 µs and 2.4 ms
    // remain, in which jobs take half of 5 × 100 µs and of 12 × 100 µs.
    assert_eq!(told[0]["missing_share"], 599_998.0 / 3_900_000.0);
    assert_eq!(told[0]["was"]["mean"], 3_300_000.0);
    assert_eq!(told[0]["predicted"]["mean"], 2_450_000.0);
    let text = bench.done(&[&args[..], &["--format", "text"]].concat());
    assert!(
        text.starts_with("end   1 of them; left out: 15.4 % of the time, where frames"),
        "{text}"
    );
    let bench = lossy(2..18);
    let (text, code) = bench.fails(&args);
    let said = "what `end` would be is unknown for 87.2 % of the time, as frames are missing";
    assert!(text.contains(said) && text.contains("no-retiming") && code == 1, "{code} {text}");
}
