//! Screens, drawn without a terminal.

use ppt_live::{
    Cause, ClockBound, FieldPicture, HistogramCells, KindPicture, MeasuredValues, MetricPicture,
    NumberSpread, SpanPicture, ThreadPicture, WordSample,
};
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;

use super::*;

fn picture() -> Picture {
    let handle = FieldPicture {
        name: "handle".into(),
        unit: "ns".into(),
        is_interval: true,
        numbers: Some(NumberSpread {
            count: 1000,
            p50: 12_000.0,
            p99: 1_200_000.0,
            max: 3_020_000.0,
            busy: Some(0.018),
        }),
        ..FieldPicture::default()
    };
    let kind = FieldPicture {
        name: "kind".into(),
        words: Some(WordSample {
            shares: vec![("UPDATE".into(), 0.9), ("LOGIN".into(), 0.1)],
            more: false,
        }),
        ..FieldPicture::default()
    };
    let of = |name: &str, rate: f64, fields| KindPicture {
        buffer: "dve".into(),
        name: name.into(),
        count: (rate * 12.0) as u64,
        rate,
        history: vec![0, 1, 2, 4, 8],
        fields,
        spans: None,
    };
    let thread = |tid, rate, lost| ThreadPicture {
        pid: 4711,
        comm: "server".into(),
        tid,
        name: (tid == 4712).then(|| "worker".into()),
        buffer: "dve".into(),
        ring: tid - 4711,
        count: 500,
        rate,
        history: vec![1, 1],
        lost,
    };
    Picture {
        processes: vec![(4711, "server".into())],
        process_count: 1,
        host: "here".into(),
        elapsed: 12_000_000_000,
        captured: 12_240_000,
        rate: 1_020_000.0,
        byte_rate: 65_280_000.0,
        clock: Some(ClockBound::Within(812)),
        missing: vec![(Cause::Overrun, 1200), (Cause::NoRing, 34)],
        loss_rate: 100.0,
        kinds: vec![of("pass", 20_000.0, vec![]), of("job", 1_000_000.0, vec![handle, kind])],
        threads: vec![thread(4711, 10.0, 0), thread(4712, 20.0, 7)],
        ..Picture::default()
    }
}

fn app() -> App {
    let mut app = App::new(Page::Frames, String::new(), true);
    app.show(picture(), CapturePhase::Running);
    app
}

fn press(app: &mut App, keys: &str) -> Option<Wish> {
    let codes = keys.chars().map(|key| match key {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\x1b' => KeyCode::Esc,
        '\x08' => KeyCode::Backspace,
        key => KeyCode::Char(key),
    });
    codes.map(|code| app.key(KeyEvent::new(code, KeyModifiers::NONE))).last().flatten()
}

fn drawn(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

#[test]
fn a_screen_tells_rates_percentiles_values_and_losses() {
    let screen = drawn(&mut app(), 100, 11);
    let expected = [
        "ppt top  server (4711) on here  12.0 s  live",
        "1,020,000 frames/s  65.3 MB/s  captured 12,240,000  times within 812 ns",
        "MISSING 1,234 (0.010 %): overrun 1,200, no ring 34  100/s are lost now",
        "",
        "FRAME             RATE/S       COUNT         P50         P99         MAX        BUSY LAST MINUTE",
        "job            1,000,000  12,000,000                                                  ▁▂▄█",
        "  handle                                 12.0 µs     1.20 ms     3.02 ms      1.80 %",
        "  kind       UPDATE 90 % · LOGIN 10 %",
        "pass              20,000     240,000                                                  ▁▂▄█",
        "",
        "q quit  s sort: rate  / filter  p pause  Tab threads  Enter values  w write  ? help",
    ];
    assert_eq!(screen, expected);
}

/// A picture with spans, counters and histograms.
fn measured() -> Picture {
    let metric = |name: &str, unit: &str, rate, value| MetricPicture {
        buffer: "dve".into(),
        name: name.into(),
        unit: unit.into(),
        rate,
        history: vec![1, 2, 4],
        value,
    };
    let latest = HistogramCells {
        count: 100,
        sum: 0,
        buckets: vec![(Some(1024), Some(1088), 98), (Some(1_000_000), Some(1_062_501), 2)],
    };
    let linear = HistogramCells {
        count: 3,
        sum: 0,
        buckets: vec![(Some(10), Some(20), 1), (Some(64), None, 2)],
    };
    let counters = vec![
        metric("bytes_in", "B", 1_234_567.0, MeasuredValues::Counter(98_765_432)),
        metric("inflight", "", -2.0, MeasuredValues::Counter(-12)),
        metric(
            "handling",
            "",
            40.0,
            MeasuredValues::Histogram { count: 4_000, latest, is_time: true },
        ),
        metric(
            "queue",
            "",
            1.0,
            MeasuredValues::Histogram { count: 3, latest: linear, is_time: false },
        ),
    ];
    let mut picture = Picture { metrics: counters, ..picture() };
    let lengths = NumberSpread { count: 9, p50: 1e6, p99: 2e6, max: 3e6, busy: None };
    let spans = SpanPicture { count: 9_000, rate: 900.0, open: 12, lengths: Some(lengths) };
    picture.kinds[0].spans = Some(spans);
    picture
}

#[test]
fn counters_histograms_and_spans_are_told() {
    let mut app = app();
    app.show(measured(), CapturePhase::Running);
    let screen = drawn(&mut app, 100, 19);
    let expected = [
        "pass              20,000     240,000                                                  ▁▂▄█",
        "  spans              900       9,000     1.00 ms     2.00 ms     3.00 ms     12 open",
        "",
        "COUNTER           RATE/S       TOTAL                                                 LAST MINUTE",
        "bytes_in     1,234,567 B  98,765,432                                                 ▂▄█",
        "inflight              -2         -12                                                 ▂▄█",
        "",
        "HISTOGRAM         RATE/S       COUNT         P50         P99         MAX             LAST MINUTE",
        "handling              40       4,000     1.09 µs     1.06 ms     1.06 ms             ▂▄█",
        "queue                  1           3        ≥ 64        ≥ 64        ≥ 64             ▂▄█",
    ];
    assert_eq!(screen[8..18], expected);
    // The chosen row is visible.
    press(&mut app, "jjjjj");
    assert!(drawn(&mut app, 100, 9).iter().any(|line| line.starts_with("queue")));
    press(&mut app, "/inflight\n");
    let screen = drawn(&mut app, 100, 12).join("\n");
    assert!(screen.contains("inflight") && !screen.contains("bytes_in"), "{screen}");
}

#[test]
fn keys_sort_filter_and_choose() {
    let mut app = app();
    let names = |app: &mut App| {
        let screen = drawn(app, 100, 14);
        let rows = screen[5..13].iter().filter(|text| !text.starts_with(' ') && !text.is_empty());
        rows.map(|row| row.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    press(&mut app, "sss");
    assert_eq!(app.choice.sort, Sort::Name);
    assert_eq!(names(&mut app), ["job", "pass"]);
    press(&mut app, "s");
    assert_eq!(app.choice.sort, Sort::Rate);
    press(&mut app, "/pas\n");
    assert_eq!(names(&mut app), ["pass"]);
    press(&mut app, "/x");
    assert_eq!(drawn(&mut app, 60, 8)[5], "nothing has such a name");
    assert_eq!(press(&mut app, "q"), None, "a letter of the filter");
    press(&mut app, "\x08\x08\n");
    assert_eq!(names(&mut app), ["pass"]);
    press(&mut app, "/\x1b");
    assert_eq!(names(&mut app).len(), 2);
    press(&mut app, "\n");
    assert!(drawn(&mut app, 100, 14).iter().any(|line| line.contains("UPDATE   90 % ██████")));
    assert_eq!(press(&mut app, "w"), Some(Wish::Save));
    assert_eq!(press(&mut app, "\x1b"), None, "closes the values");
    assert_eq!(press(&mut app, "q"), Some(Wish::Quit));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    press(&mut app, "/");
    assert_eq!(app.key(control_c), Some(Wish::Quit), "whatever is typed");
}

#[test]
fn threads_tell_what_they_lost() {
    let mut app = app();
    press(&mut app, "\t");
    let screen = drawn(&mut app, 100, 9);
    assert_eq!(
        screen[5].split_whitespace().collect::<Vec<_>>()[..7],
        ["server", "4711", "4712", "(worker)", "20", "500", "7"]
    );
    assert!(screen[6].contains("4711 4711  "), "no name is known");
    // A long name is shown completely.
    let mut long = picture();
    long.threads[1].name = Some("compactor-thr-1".into());
    app.show(long, CapturePhase::Running);
    assert!(drawn(&mut app, 100, 9)[5].starts_with("server 4711 4712 (compactor-thr-1)  "));
    press(&mut app, "/WORKER\n");
    app.show(picture(), CapturePhase::Running);
    let screen = drawn(&mut app, 100, 9);
    assert!(screen[5].contains("(worker)") && screen[6].is_empty(), "{screen:?}");
    press(&mut app, "/\x1b");
    // Process ids are short on a young machine.
    let mut young = picture();
    young.threads.iter_mut().for_each(|thread| (thread.pid, thread.tid) = (7, 7));
    app.show(young, CapturePhase::Running);
    assert!(drawn(&mut app, 100, 9)[4].starts_with("PROCESS, THREAD "));
    press(&mut app, "\t");
    assert!(drawn(&mut app, 100, 9)[4].starts_with("FRAME"));
}

#[test]
fn a_pause_stops_the_picture_and_nothing_else() {
    let mut app = app();
    press(&mut app, "p");
    app.show(
        Picture { captured: 99, ..picture() },
        CapturePhase::Ended("process 4711 ended".into()),
    );
    let screen = drawn(&mut app, 100, 10);
    assert!(
        screen[0].ends_with("paused") && screen[1].contains("captured 12,240,000"),
        "{screen:?}"
    );
    press(&mut app, "p");
    let screen = drawn(&mut app, 100, 10);
    assert!(screen[0].ends_with("ended: process 4711 ended"), "{screen:?}");
    assert!(screen[1].ends_with("captured 99  times within 812 ns"), "{screen:?}");
    let unknown = Picture { clock: Some(ClockBound::TooFewReadings), ..picture() };
    app.show(unknown, CapturePhase::Running);
    let screen = drawn(&mut app, 100, 10);
    assert!(screen[1].ends_with("times not known yet: too few readings of clocks"), "{screen:?}");
}

#[test]
fn any_size_will_do() {
    for (width, height) in [(1, 1), (3, 40), (20, 5), (40, 6), (79, 24), (300, 100)] {
        let mut app = app();
        for keys in ["", "\n", "\t", "\tjjjjj", "?", "\x1b/abc"] {
            press(&mut app, keys);
            drawn(&mut app, width, height);
        }
    }
    // The chosen row stays visible.
    let mut app = app();
    press(&mut app, "j");
    assert!(drawn(&mut app, 100, 7).iter().any(|line| line.starts_with("pass")));
    app.show(Picture::default(), CapturePhase::Running);
    assert_eq!(drawn(&mut app, 100, 7)[5], "no frames yet");
}

#[test]
fn text_of_a_target_is_nothing_that_a_terminal_obeys() {
    let evil = "\x1b]0;gone\x07\x1b[2J\r\n\u{202e}\u{9b}31m";
    let mut picture = measured();
    for metric in &mut picture.metrics {
        (metric.name, metric.buffer, metric.unit) = (evil.into(), evil.into(), evil.into());
    }
    picture.host = evil.into();
    picture.processes[0].1 = evil.into();
    for kind in &mut picture.kinds {
        (kind.name, kind.buffer) = (evil.into(), evil.into());
        for field in &mut kind.fields {
            (field.name, field.unit) = (evil.into(), evil.into());
            let words = field.words.iter_mut().flat_map(|sample| &mut sample.shares);
            words.for_each(|entry| entry.0 = evil.into());
        }
    }
    for thread in &mut picture.threads {
        (thread.comm, thread.buffer) = (evil.into(), evil.into());
        thread.name = Some(evil.into());
    }
    let mut app = App::new(Page::Frames, evil.into(), true);
    app.show(picture, CapturePhase::Ended(evil.into()));
    app.show_message(evil.into());
    for keys in ["", "/\x1b", "\n", "\t", "w"] {
        press(&mut app, keys);
        let text = drawn(&mut app, 200, 30).join("");
        assert!(!text.contains(char::is_control) && !text.contains('\u{202e}'), "{text:?}");
        let printed = app.head(200).into_iter().chain(app.table(200).lines);
        let printed: String = printed.map(|line| line.to_string()).collect();
        assert!(!printed.contains(char::is_control), "{printed:?}");
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let colours = |wanted| {
        let mut app = App::new(Page::Frames, String::new(), wanted);
        app.show(picture(), CapturePhase::Running);
        let mut terminal = Terminal::new(TestBackend::new(100, 12)).unwrap();
        terminal.draw(|frame| app.draw(frame)).unwrap();
        terminal.backend().buffer().content.iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert!(colours(true) > 20);
    assert_eq!(colours(false), 0);
}
