//! Extreme values and times of all types, and every clock.

use ppt_capture::EndReason;

use crate::numbers::made::{MS, MadeCapture, made, turn};
use crate::numbers::maker::{MONO, Maker, MakerProgram, MakerWord, REAL, SECOND, TICKS};

const VALUES: &str = "
buffer values;
option time ns realtime;
enum Verb : u8 { GET = 1, PUT, DROP = 200 }
enum Wide : i64 { LOW = -9000000000, HIGH = 9000000000 }
frame every {
    time when @at;
    i8 a; u8 b; i16 c; u16 d; i32 e; u32 f; i64 g; u64 h;
    float x; double y;
    bool even;
    duration took;
    Verb verb; Wide wide;
    char name[12]; bytes raw[4];
    double pair[2];
    interval time handle;
    time mono @clock(monotonic);
    time cpu @clock(thread_cpu);
}
frame little { int n; u16 size @unit(\"B\"); }
";

pub fn values() -> MadeCapture {
    let mut maker = Maker::begin(1);
    let source = maker.source(MakerProgram { frames: VALUES, pid: 4211, kind: "" });
    let rings = [maker.ring(source, 0, 4211), maker.ring(source, 3, 4219)];
    let bounds = [i64::MIN, -1, 0, 1, i64::MAX, 1 << 53, (1 << 53) + 1];
    let tops = [u64::MAX, 0, 1, u64::MAX - 1, 1 << 63, (1 << 53) + 1];
    let doubles = [
        0.1,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE / 8.0,
        f64::MAX,
        0.0,
        -1.5,
    ];
    let singles = [0.1f32, -0.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE / 4.0, f32::MAX, 2.5];
    let names: [&[u8]; 6] = [
        b"plain",
        b"tab\t\"q\",\n",
        b"",
        b"\xff\xfe raw",
        "zw\u{f6}lf b\u{fc}\u{df}".as_bytes(),
        b"'a\\n'",
    ];
    for n in 0..90u64 {
        let at = REAL + SECOND + n * MS;
        maker.at(MONO + SECOND + n * MS + MS / 2);
        let mut fields: Vec<(&str, MakerWord)> = vec![
            ("a", turn(&[-128, 127, 0, -1], n).into()),
            ("b", turn(&[255, 0, 7], n).into()),
            ("c", turn(&[-32_768, 32_767, 5], n).into()),
            ("d", turn(&[65_535, 0], n).into()),
            ("e", turn(&[i32::MIN, i32::MAX, 3], n).into()),
            ("f", turn(&[u32::MAX, 0, 1], n).into()),
            ("g", turn(&bounds, n).into()),
            ("h", turn(&tops, n).into()),
            ("x", turn(&singles, n).into()),
            ("y", turn(&doubles, n).into()),
            ("even", turn(&[0, 1, 7], n).into()),
            ("took", turn(&[0, -5, 1_500, 3_000_000_000i64], n).into()),
            ("verb", turn(&[1, 2, 99, 200, 0], n).into()),
            ("wide", turn(&[-9_000_000_000i64, 9_000_000_000, 17], n).into()),
            ("name", turn(&names, n).into()),
            ("raw", turn(&[&[0u8, 1, 2, 255][..], &[0; 4][..]], n).into()),
            ("pair_0", (n as f64 / 4.0).into()),
            ("pair_1", (-(n as f64)).into()),
            ("mono", (MONO + SECOND + n * MS + 7).into()),
            ("cpu", (n * 250).into()),
        ];
        // Every seventh time is missing; an interval may lack an end, or end before it starts.
        if n % 7 != 3 {
            fields.push(("when", at.into()));
        }
        let start = if n % 11 == 5 { 0 } else { at - 900_000 };
        let end = match n % 13 {
            4 => 0,
            6 => at - 950_000,
            _ => at - 900_000 + n * 7_919 % 800_000,
        };
        fields.extend([("handle_start", start.into()), ("handle_end", MakerWord::from(end))]);
        maker.frame(rings[(n % 3 == 2) as usize], "every", &fields);
        if n % 4 == 0 {
            let size = (n * 37 % 1_000, "size");
            maker.frame(
                rings[0],
                "little",
                &[("n", (n as i64 - 40).into()), (size.1, size.0.into())],
            );
        }
    }
    made("values", maker, EndReason::Stopped)
}

const FAR: &str = "
buffer far;
option time ns realtime;
frame place { time when @at; interval time visit; int n; }
";

const WALLS: &str = "
buffer walls;
frame old { time when @at; int n; }
frame spec { time when @clock(realtime) @at; int n; interval time work; }
";

/// The most distant times of each type.
pub fn far() -> MadeCapture {
    let mut maker = Maker::begin(2);
    let far = maker.source(MakerProgram { frames: FAR, pid: 4211, kind: "" });
    let walls = maker.source(MakerProgram { frames: WALLS, pid: 4211, kind: "" });
    let (ring, other) = (maker.ring(far, 0, 4211), maker.ring(walls, 0, 4211));
    let real = REAL as i64;
    let times = [real, -5, i64::MIN, i64::MAX, 1, 0, -SECOND_SIGNED, real + 5_000];
    for (n, time) in (0i64..).zip(times.into_iter().cycle().take(24)) {
        maker.at(MONO + SECOND + n as u64 * MS);
        let start = times[(n as usize * 3 + 1) % times.len()];
        let fields = [
            ("when", time.into()),
            ("n", n.into()),
            ("visit_start", start.into()),
            ("visit_end", MakerWord::from(time)),
        ];
        maker.frame(ring, "place", &fields);
    }
    let pairs = [
        (REAL as i64 / SECOND_SIGNED, 5),
        (-3, 999_999),
        (0, 0),
        (9_223_372_036, 854_775),
        (9_223_372_037, 0),
        (i64::MAX, 999_999),
        (i64::MIN, 0),
        (0, 1),
    ];
    for (n, (seconds, rest)) in (0i64..).zip(pairs.into_iter().cycle().take(24)) {
        let when = ("when", MakerWord::Pair(seconds, rest));
        maker.frame(other, "old", &[when.clone(), ("n", n.into())]);
        let work = [(n * 3, 3), (n * 3 + n % 3, 5)]
            .map(|(s, us)| MakerWord::Pair(REAL as i64 / SECOND_SIGNED + s, us));
        let [start, end] = work;
        maker.frame(
            other,
            "spec",
            &[when, ("n", n.into()), ("work_start", start), ("work_end", end)],
        );
    }
    made("far", maker, EndReason::Exited)
}

const SECOND_SIGNED: i64 = SECOND as i64;

const STAMPED: &str = "
buffer stamped;
option time tsc;
frame leap { u32 n; interval time work @at; time other; time wall @clock(realtime); }
";

/// Stamps of the CPU's counter and, from the middle on, of the clock that replaces it.
pub fn ticks() -> MadeCapture {
    let mut maker = Maker::begin(9);
    let source = maker.source(MakerProgram { frames: STAMPED, pid: 4211, kind: "" });
    let ring = maker.ring(source, 0, 4211);
    for n in 0..100u64 {
        let at = MONO + SECOND + n * 30 * MS;
        let stamp = |at: u64| match n {
            // Between two ns, and before the first reading.
            0..50 => TICKS + (at - MONO) / 2 * 3 + n % 3,
            _ => 1 << 63 | at,
        };
        maker.at(at + MS);
        let fields = [
            ("n", n.into()),
            ("work_start", stamp(at).into()),
            ("work_end", stamp(at + 100_000 + n * 77).into()),
            ("other", (if n % 4 == 1 { 0 } else { stamp(at) }).into()),
            ("wall", MakerWord::from(REAL + (at - MONO))),
        ];
        maker.frame(ring, "leap", &fields);
    }
    made("ticks", maker, EndReason::Unloaded)
}
