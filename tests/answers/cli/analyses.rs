//! The queries of `examples/README.md`, on a capture with known answers; awk computes the same numbers
//! from the table of `ppt dump`.

use std::fs;
use std::path::Path;
use std::process::Command;

use ppt_capture::{FileHeader, FramesHead, Lost};

use crate::support::{self, Bench, head, root, schema};

/// The frame of `examples/dve`.
const SCHEMA: &str = r#"{"v":1,"buffer":"example","slots":64,"stride":64,"frames":[{"name":"example",
    "kind":"plain","size":64,"fields":[
    {"name":"kind","type":"i32","offset":8},{"name":"who","type":"i32","offset":12},
    {"name":"sleep","type":"timeval","offset":16},{"name":"start","type":"timeval","offset":32},
    {"name":"end","type":"timeval","offset":48}]}]}"#;

/// Start (µs), kind, user and duration (µs): two users' updates, ten a second, of which the second
/// one's fifth is missing; two logins, three steps.
fn rows() -> Vec<(i64, i32, i32, i64)> {
    let mut rows = vec![(0, 1, 1, 10), (300_000, 1, 2, 10)];
    rows.extend([10_000, 510_000, 1_110_000].map(|start| (start, -1, -1, 2_000)));
    rows.extend((0..10).map(|i| (50_000 + i * 100_000, 0, 1, 100)));
    rows.extend((0..10).filter(|i| *i != 4).map(|i| (350_000 + i * 100_000, 0, 2, 100)));
    rows.sort_unstable();
    rows
}

fn capture() -> Vec<u8> {
    let frames = rows().into_iter().enumerate().map(|(row, (start, kind, who, took))| {
        // Four frames are lost before the 21st.
        let seq = if row < 20 { row as u64 + 1 } else { row as u64 + 5 };
        let time = |us: i64| [1000 + us / 1_000_000, us % 1_000_000].map(i64::to_le_bytes).concat();
        let words = [kind.to_le_bytes(), who.to_le_bytes()].concat();
        let times = [time(start), time(start), time(start + took)].concat();
        [seq.to_le_bytes().to_vec(), words, times].concat()
    });
    let frames: Vec<Vec<u8>> = frames.collect();
    let lost_before = Lost { overrun: 4, ..Lost::default() };
    let runs = [
        (head(1, 1), frames[..20].concat()),
        (FramesHead { lost_before, ..head(25, 25) }, frames[20..].concat()),
    ];
    support::capture(&FileHeader::default(), &schema(SCHEMA), &runs)
}

/// Columns in awk: `seqno` 1, `ring` 2, `kind` 4, `who` 5, `sleep` 6 and 7 (seconds, microseconds),
/// `start` 8 and 9, `end` 10 and 11. Percentiles are interpolated.
const AWK: [&str; 7] = [
    r#"awk 'NR > 1 { busy[$8] += ($10 - $8) * 1e6 + $11 - $9 }
         END { for (s in busy) printf "%.4f\n", busy[s] / 1e4 }' table.tsv | sort -n |
        awk '{ v[NR] = $1 } END { m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
               printf "%.2f %.2f %.2f\n", v[1], m, v[NR] }'"#,
    r#"awk 'NR > 1 { n[$4]++; t = $8 + $9 / 1e6; if (!from) from = t }
         END { for (k in n) printf "%d %d %.1f\n", k, n[k], n[k] / (t - from) }' table.tsv | sort -n"#,
    r#"awk 'NR > 1 && $4 == 1 { t = $8 + $9 / 1e6; if (!from) from = t; n[int((t - from) * 4)]++ }
         END { for (q in n) print q, n[q] }' table.tsv | sort -n"#,
    r#"awk 'NR > 1 && $4 == 0 { t = $8 * 1000 + $9 / 1000
             if ($5 in last) printf "%.1f\n", t - last[$5]; last[$5] = t }' table.tsv | sort -n |
        awk 'function p(share,  at) { at = 1 + (NR - 1) * share
                 return v[int(at)] + (v[int(at) + 1] - v[int(at)]) * (at - int(at)) }
             { v[NR] = $1 } END { v[NR + 1] = v[NR]; printf "%.1f %.1f %.1f\n", p(.01), p(.5), p(.99) }'"#,
    r#"awk 'NR > 1 && $4 == 0 { n[int($9 / 10000) % 10]++ }
         END { for (p in n) print p, n[p] }' table.tsv | sort -n"#,
    r#"awk 'NR > 1 { if ($2 in last && $1 != last[$2] + 1) gaps++; last[$2] = $1 }
         END { print gaps + 0, NR - 1 }' table.tsv"#,
    r#"awk 'NR > 1 && $4 == 0 { t[$5] = $8 + $9 / 1e6; if (!n[$5]++) from[$5] = t[$5] }
         END { for (u in n) { m[u] = int((t[u] - from[u]) * 10 + 1.5) - n[u]; total += m[u]; sum += n[u] }
               for (u in n) print u, n[u], m[u], sum, total }' table.tsv | sort -k3,3nr -k1,1n | head -n 3"#,
];

/// Expected output of each, computed by hand.
const EXPECTED: [&str; 7] = [
    // In µs of a second: 2 * 10 + 16 * 100 + 2 * 2000 and 3 * 100 + 2000.
    "0.23 0.4 0.56",
    "-1 3 2.4\n0 19 15.2\n1 2 1.6",
    "0 1\n1 1",
    "100 100 184",
    "5 19",
    "1 24",
    "2 9 1 19 1\n1 10 0 19 1",
];

/// The output of a shell command, its numbers as short as possible.
fn answer(folder: &Path, command: &str) -> Vec<String> {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-ec", command])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr)
        .replace("ppt: 4 of 28 frames are missing in 1 gap: counts are lower bounds\n", "");
    assert!(output.status.success() && said.is_empty(), "{command}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let short = |word: &str| word.parse::<f64>().map_or(word.to_owned(), |value| value.to_string());
    let line = |line: &str| line.split_whitespace().map(short).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect()
}

#[test]
fn the_papers_analyses_are_queries_and_awk_counts_the_same() {
    let bench = Bench::empty();
    let folder = bench.folder();
    bench.write("out.bin", capture());
    let table = fs::File::create(folder.join("table.tsv")).unwrap();
    let options = ppt_dump::DumpRequest::default();
    let outcome = ppt_dump::dump(&folder.join("out.bin"), &options, table).unwrap();
    assert_eq!((outcome.damages, outcome.rows), (0, 24));
    // `ppt` passes these commands on.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ppt"), folder.join("ppt")).unwrap();

    let page = fs::read_to_string(root().join("examples/README.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|piece| piece.split("```").next().unwrap());
    let mut queries: Vec<&str> = blocks.collect();
    let stat = answer(folder, queries.remove(0));
    let counts = stat.iter().filter(|text| {
        text.starts_with("example example -1 3 ") || text.starts_with("example example 0 19 ")
    });
    assert_eq!(counts.count(), 2, "{stat:?}");
    assert_eq!(queries.len(), AWK.len());
    for ((query, awk), expected) in queries.iter().zip(AWK).zip(EXPECTED) {
        let expected: Vec<&str> = expected.lines().collect();
        assert_eq!(answer(folder, awk), expected, "{awk}");
        // The first line contains the names of columns.
        assert_eq!(answer(folder, query)[1..], expected, "{query}");
    }
}
