//! `ppt compare` judges the fields of its gates and no others, and reports what it cannot judge.

use ppt_capture::FileHeader;

use crate::support::{self, Bench, head, schema};

const SCHEMA: &str = r#"{"v":1,"buffer":"shop","slots":64,"stride":24,"frames":[{"name":"q","kind":"plain",
    "size":24,"fields":[{"name":"ok","type":"u64","offset":8},{"name":"bad","type":"f64","offset":16}]}]}"#;

/// A run of `count` frames: `ok` is about `level`, `bad` is infinite in the third one.
fn run(number: u8, count: u64, level: u64) -> Vec<u8> {
    let frame = |seq: u64| {
        let bad = if seq == 3 { f64::INFINITY } else { seq as f64 };
        let ok = level + seq * 7919 % 13 + u64::from(number % 3);
        [seq, ok, bad.to_bits()].map(u64::to_le_bytes).concat()
    };
    let header = FileHeader { capture_id: [number; 16], ..FileHeader::default() };
    let frames: Vec<u8> = (1..=count).flat_map(frame).collect();
    support::capture(&header, &schema(SCHEMA), &[(head(1, 1), frames)])
}

fn bench() -> Bench {
    let bench = Bench::empty();
    for number in 0..6u8 {
        bench.write(&format!("before{number}.bin"), run(number, 50, 1_000));
        bench.write(&format!("same{number}.bin"), run(20 + number, 50, 1_000));
        bench.write(&format!("after{number}.bin"), run(40 + number, 50, 1_200));
    }
    bench.write("few0.bin", run(60, 4, 1_000));
    bench.write("few1.bin", run(61, 4, 1_000));
    bench
}

#[test]
fn an_infinite_value_of_another_field_fails_no_gate() {
    let bench = bench();
    let compare = |gate: &str, second: &str| {
        bench.run(&["compare", "--fail-if", gate, "before*.bin", "--", second])
    };
    let output = compare("q.ok mean > 5%", "same*.bin");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("not compared: shop.q.bad: on the first side value 3 of run 1 is inf"),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("shop.q.ok   6 runs against 6 runs"));
    let output = compare("q.ok mean > 5%", "after*.bin");
    assert_eq!(output.status.code(), Some(1), "a slowdown is one, whatever else there is");
}

#[test]
fn what_cannot_be_judged_has_a_status_of_its_own() {
    let bench = bench();
    let sides = ["before*.bin", "--", "same*.bin"];
    let (said, code) =
        bench.fails(&[&["compare", "--fail-if", "bad mean > 5%"], &sides[..]].concat());
    assert_eq!(code, 3, "{said}");
    let expected = "mean(bad) > 1.05x: shop.q.bad cannot be judged: on the first side, value 3 of run 1 is inf";
    assert!(said.contains(expected) && said.contains("ppt explain not-judged"), "{said}");
    // A proven failure has priority.
    let both = ["compare", "--fail-if", "bad mean > 5%", "--fail-if", "ok mean > 5%"];
    let (said, code) = bench.fails(&[&both[..], &["before*.bin", "--", "after*.bin"]].concat());
    assert_eq!(code, 1, "{said}");
    // Nothing is saved unless a gate passes.
    let save = ["compare", "--fail-if", "bad mean > 5%", "--save", "next.json"];
    let (said, code) = bench.fails(&[&save[..], &sides[..]].concat());
    assert!(said.contains("a gate cannot be judged, so nothing is saved") && code == 3, "{said}");
    assert!(!bench.path("next.json").exists());
}

#[test]
fn too_few_values_are_named() {
    let bench = bench();
    let (said, code) = bench.fails(&["compare", "--field", "ok", "few0.bin", "--", "few1.bin"]);
    let expected = "nothing can be compared: shop.q.ok: on the first side, the only run has 4 values: at \
                    least 10 are needed, or more runs";
    assert!(said.contains(expected), "{said}");
    assert_eq!(code, 3, "{said}");
}

#[test]
fn a_field_is_selected_by_its_name() {
    let bench = bench();
    let sides = ["before*.bin", "--", "same*.bin"];
    let output = bench.run(&[&["compare", "--field", "q.ok"], &sides[..]].concat());
    let (said, text) = (output.stderr, String::from_utf8(output.stdout).unwrap());
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
    assert_eq!(text.lines().filter(|line| !line.starts_with(' ')).count(), 1, "{text}");
    let (said, code) = bench.fails(&[&["compare", "--field", "q.okk"], &sides[..]].concat());
    assert!(said.contains("there is no field `q.okk`") && code == 2, "{said}");
}
