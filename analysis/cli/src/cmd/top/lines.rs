//! Pictures as lines of text.

use ppt_live::{
    CapturePhase, ClockBound, DistinctCount, FieldPicture, KindPicture, MeasuredValues,
    MetricPicture, Picture, SECONDS, SpanPicture, ThreadPicture,
};
use ppt_query::text::{bucket, counted_up, duration, grouped, measured, three};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::choice::{Choice, Page, Sort};

/// Lines of a table below its heading.
pub(super) struct TextTable {
    pub lines: Vec<Line<'static>>,
    /// The first line of each row, counted from the heading.
    pub starts: Vec<usize>,
}

/// Width of a column of numbers.
const NUMBER: usize = 11;
/// Heading of the names of threads. Process ids can be short, but the heading must not be cut.
const THREAD: &str = "PROCESS, THREAD";
/// Minimum and maximum width of a name.
const NAME: (usize, usize) = (12, 28);
/// Maximum width of a process and a thread, each with its name.
const MAX_THREAD_WIDTH: usize = 52;

pub(super) fn head(
    choice: &Choice,
    picture: &Picture,
    phase: &CapturePhase,
    stopped: bool,
    width: u16,
) -> Vec<Line<'static>> {
    let bold = Style::new().bold();
    let mut who: Vec<String> =
        picture.processes.iter().map(|process| format!("{} ({})", process.1, process.0)).collect();
    if picture.process_count > who.len() {
        who.push(format!("{} more", picture.process_count - who.len()));
    }
    let (state, colour) = match phase {
        _ if stopped => ("paused".to_owned(), Color::Yellow),
        CapturePhase::Waiting => ("waits for the capture to begin".to_owned(), Color::Yellow),
        CapturePhase::Running => ("live".to_owned(), Color::Green),
        CapturePhase::Ended(why) => (format!("ended: {why}"), Color::Yellow),
        CapturePhase::Unended => ("has no end yet: it may grow".to_owned(), Color::Green),
        CapturePhase::Cut => ("the input has ended".to_owned(), Color::Yellow),
        CapturePhase::Failed(why) => (format!("cannot be read on: {why}"), Color::Red),
    };
    let first = vec![
        Span::styled("ppt top  ", bold),
        Span::raw(cut(&who.join(", "), usize::from(width / 2))),
        Span::raw(if picture.host.is_empty() {
            String::new()
        } else {
            format!(" on {}", picture.host)
        }),
        Span::raw(format!("  {}  ", clock(picture.elapsed))),
        Span::styled(state, choice.style(colour)),
    ];
    let mut second = vec![
        Span::styled(format!("{} frames/s", rate(picture.rate)), bold),
        Span::raw(format!("  {}/s  ", bytes(picture.byte_rate))),
        Span::raw(format!("captured {}  ", grouped(picture.captured))),
    ];
    match picture.clock {
        Some(ClockBound::Within(ns)) => {
            second.push(Span::raw(format!("times within {}", duration(ns as f64))));
        }
        Some(ClockBound::TooFewReadings) => {
            second.push(Span::raw("times not known yet: too few readings of clocks"));
        }
        None => {}
    }
    let mut third = Vec::new();
    match picture.missing_in_all() {
        0 => third.push(Span::styled("nothing lost", choice.style(Color::Green))),
        missing => {
            let all = picture.captured.saturating_add(missing) as f64;
            let causes = picture.missing.iter();
            let causes: Vec<_> = causes
                .map(|(cause, count)| format!("{} {}", cause.text(), grouped(*count)))
                .collect();
            let text = format!(
                "MISSING {} ({} %): {}",
                grouped(missing),
                three(missing as f64 * 100.0 / all),
                causes.join(", ")
            );
            third.push(Span::styled(text, choice.style(Color::Red).add_modifier(Modifier::BOLD)));
            if picture.loss_rate >= 0.5 {
                third.push(Span::raw(format!("  {}/s are lost now", rate(picture.loss_rate))));
            }
        }
    }
    let more = [
        (picture.unattended, "written unattended"),
        (picture.damages, "damaged places"),
        (picture.other_kinds, "frames of other kinds"),
        (picture.other_threads, "frames of other threads"),
    ];
    for (count, what) in more.into_iter().filter(|entry| entry.0 > 0) {
        third.push(Span::raw(format!("  {} {what}", grouped(count))));
    }
    vec![Line::from(first), Line::from(second), Line::from(third), Line::default()]
}

pub(super) fn frames(choice: &Choice, picture: &Picture, width: u16) -> TextTable {
    let wanted = |kind: &&KindPicture| {
        contains(&kind.name, &choice.filter)
            || contains(&kind.buffer, &choice.filter)
            || kind.fields.iter().any(|field| contains(&field.name, &choice.filter))
    };
    let mut kinds: Vec<&KindPicture> = picture.kinds.iter().filter(wanted).collect();
    let p99 = |kind: &KindPicture| {
        let of_time = kind.fields.iter().filter(|field| field.unit == "ns");
        of_time.filter_map(|field| Some(field.numbers?.p99)).fold(0.0, f64::max)
    };
    kinds.sort_by(|one, two| {
        let by = match choice.sort {
            Sort::Rate => two.rate.total_cmp(&one.rate).then(two.count.cmp(&one.count)),
            Sort::Count | Sort::Lost => two.count.cmp(&one.count),
            Sort::P99 => p99(two).total_cmp(&p99(one)),
            Sort::Name => std::cmp::Ordering::Equal,
        };
        by.then_with(|| (&one.name, &one.buffer).cmp(&(&two.name, &two.buffer)))
    });
    let same = |kind: &KindPicture| kinds.iter().filter(|other| other.name == kind.name).count();
    let titles: Vec<String> = kinds
        .iter()
        .map(|kind| match same(kind) {
            1 => kind.name.clone(),
            _ => format!("{}.{}", kind.buffer, kind.name),
        })
        .collect();
    let names = kinds.iter().flat_map(|kind| &kind.fields).map(|field| wide(&field.label()) + 2);
    let names = names.chain(picture.metrics.iter().map(|metric| wide(&metric.name)));
    let name = names.chain(titles.iter().map(|title| wide(title))).max().unwrap_or(0);
    let name = name.clamp(NAME.0, NAME.1);
    let spark = usize::from(width).saturating_sub(name + 2 + 6 * (NUMBER + 1)).min(SECONDS);
    let heads = ["RATE/S", "COUNT", "P50", "P99", "MAX", "BUSY"];
    let mut lines = vec![names_of("FRAME", name, &heads, spark)];
    let mut starts = Vec::new();
    for (row, (kind, title)) in kinds.iter().zip(&titles).enumerate() {
        starts.push(lines.len() - 1);
        let chosen = row == choice.row && choice.page == Page::Frames;
        let numbers = [rate(kind.rate), grouped(kind.count)];
        let mut text = format!("{} ", fit(title, name));
        numbers.iter().for_each(|number| text.push_str(&format!("{number:>NUMBER$} ")));
        text.push_str(&" ".repeat(4 * (NUMBER + 1)));
        let style = if chosen { Style::new().bold().reversed() } else { Style::new().bold() };
        let bars = Span::styled(bars(&kind.history, spark), choice.style(Color::Cyan));
        lines.push(Line::from(vec![Span::styled(text, style), bars]));
        for field in &kind.fields {
            lines.push(of_field(field, name, width));
            if chosen && choice.open {
                values(field, name, &mut lines);
            }
        }
        if let Some(spans) = &kind.spans {
            lines.push(of_spans(spans, name, width));
        }
    }
    metrics(choice, picture, (name, spark), (&mut lines, &mut starts));
    if kinds.is_empty() && lines.len() == 1 {
        let why =
            if choice.filter.is_empty() { "no frames yet" } else { "nothing has such a name" };
        lines.push(Line::from(why));
    }
    TextTable { lines, starts }
}

/// A line for spans, which are frames of begins and ends.
fn of_spans(spans: &SpanPicture, name: usize, width: u16) -> Line<'static> {
    let mut text = format!("  {} ", fit("spans", name - 2));
    let ns = |value: Option<f64>| value.map_or_else(String::new, duration);
    let lengths = spans.lengths;
    let cells = [
        rate(spans.rate),
        grouped(spans.count),
        ns(lengths.map(|length| length.p50)),
        ns(lengths.map(|length| length.p99)),
        ns(lengths.map(|length| length.max)),
        format!("{} open", grouped(spans.open)),
    ];
    cells.iter().for_each(|cell| text.push_str(&format!("{cell:>NUMBER$} ")));
    Line::from(cut(text.trim_end(), usize::from(width)))
}

/// Counters, and histograms.
fn metrics(
    choice: &Choice,
    picture: &Picture,
    (name, spark): (usize, usize),
    (lines, starts): (&mut Vec<Line<'static>>, &mut Vec<usize>),
) {
    let wanted = |picture: &&MetricPicture| {
        contains(&picture.name, &choice.filter) || contains(&picture.buffer, &choice.filter)
    };
    let mut all: Vec<&MetricPicture> = picture.metrics.iter().filter(wanted).collect();
    all.sort_by(|one, two| {
        let by = match choice.sort {
            Sort::Name => std::cmp::Ordering::Equal,
            _ => two.rate.total_cmp(&one.rate),
        };
        by.then_with(|| (&one.name, &one.buffer).cmp(&(&two.name, &two.buffer)))
    });
    let (counters, histograms): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|picture| matches!(picture.value, MeasuredValues::Counter(_)));
    let tables = [
        ("COUNTER", vec!["RATE/S", "TOTAL"], counters),
        ("HISTOGRAM", vec!["RATE/S", "COUNT", "P50", "P99", "MAX"], histograms),
    ];
    for (what, mut heads, all) in tables.into_iter().filter(|table| !table.2.is_empty()) {
        lines.push(Line::default());
        heads.resize(6, "");
        lines.push(names_of(what, name, &heads, spark));
        let same =
            |picture: &MetricPicture| all.iter().filter(|other| other.name == picture.name).count();
        for metric_picture in &all {
            let title = match same(metric_picture) {
                1 => metric_picture.name.clone(),
                _ => format!("{}.{}", metric_picture.buffer, metric_picture.name),
            };
            let mut text = format!("{} ", fit(&title, name));
            for cell in measured_cells(metric_picture) {
                text.push_str(&format!("{cell:>NUMBER$} "));
            }
            let chosen = starts.len() == choice.row && choice.page == Page::Frames;
            let style = if chosen { Style::new().reversed() } else { Style::new() };
            let bars =
                Span::styled(bars(&metric_picture.history, spark), choice.style(Color::Cyan));
            starts.push(lines.len() - 1);
            lines.push(Line::from(vec![Span::styled(text, style), bars]));
        }
    }
}

fn measured_cells(picture: &MetricPicture) -> [String; 6] {
    match &picture.value {
        MeasuredValues::Counter(total) => {
            let with_unit = |text: String| match picture.unit.as_str() {
                "" => text,
                unit => format!("{text} {unit}"),
            };
            // A unit that is longer than its column would move the others.
            let short = |text: String| {
                let long = with_unit(text.clone());
                if wide(&long) <= NUMBER { long } else { text }
            };
            let none = String::new;
            [short(rate(picture.rate)), short(counted_up(*total)), none(), none(), none(), none()]
        }
        MeasuredValues::Histogram { count, latest, is_time } => {
            // The upper end of the bucket at this quantile.
            let at = |part: f64| {
                let bound =
                    |number: i128| bucket(Some((Some(number), Some(number + 1))), "", *is_time);
                match latest.quantile(part) {
                    Some((_, Some(hi))) => bound(hi - 1),
                    Some((Some(lo), None)) => format!("≥ {}", bound(lo)),
                    _ => String::new(),
                }
            };
            let cells =
                [rate(picture.rate), grouped(*count), at(0.5), at(0.99), at(1.0), String::new()];
            cells.map(|cell| cut(&cell, NUMBER))
        }
    }
}

fn of_field(field: &FieldPicture, name: usize, width: u16) -> Line<'static> {
    let mut text = format!("  {} ", fit(&field.label(), name - 2));
    match (&field.numbers, &field.words) {
        _ if field.distinct.is_some() => {
            let about = |count: DistinctCount| if count.exact { "" } else { "about " };
            let different = field.distinct.map(|distinct| {
                format!("{}{} different", about(distinct), grouped(distinct.count))
            });
            text.push_str(&different.unwrap_or_default());
        }
        (Some(numbers), _) => {
            let value = |value: f64| measured(value, &field.unit);
            let busy =
                numbers.busy.map(|busy| format!("{} %", three((busy * 1000.0).round() / 10.0)));
            let cells = [
                String::new(),
                String::new(),
                value(numbers.p50),
                value(numbers.p99),
                value(numbers.max),
                busy.unwrap_or_default(),
            ];
            cells.iter().for_each(|cell| text.push_str(&format!("{cell:>NUMBER$} ")));
        }
        (None, Some(words)) => {
            let mut shares: Vec<_> = words
                .shares
                .iter()
                .take(8)
                .map(|(word, share)| format!("{word} {}", percent(*share)))
                .collect();
            if words.more || words.shares.len() > 8 {
                shares.push("…".to_owned());
            }
            text.push_str(&shares.join(" · "));
        }
        (None, None) => text.push('–'),
    }
    Line::from(cut(text.trim_end(), usize::from(width)))
}

/// The most frequent values of a field, a line each.
fn values(field: &FieldPicture, name: usize, lines: &mut Vec<Line<'static>>) {
    const BAR: f64 = 24.0;
    let Some(words) = &field.words else { return };
    let widest = words.shares.iter().map(|share| wide(&share.0)).max().unwrap_or(0).clamp(4, 24);
    for (word, share) in &words.shares {
        let bar = "█".repeat((share * BAR).round() as usize);
        let word = fit(word, widest);
        lines.push(Line::from(format!(
            "{}{word} {:>6} {bar}",
            " ".repeat(name + 1),
            percent(*share)
        )));
    }
    if words.more {
        lines.push(Line::from(format!("{}others", " ".repeat(name + 1))));
    }
}

pub(super) fn threads(choice: &Choice, picture: &Picture, width: u16) -> TextTable {
    let wanted = |picture: &&ThreadPicture| {
        let name = picture.name.as_deref().unwrap_or_default();
        [&picture.comm, &picture.buffer, name].iter().any(|text| contains(text, &choice.filter))
    };
    let mut threads: Vec<&ThreadPicture> = picture.threads.iter().filter(wanted).collect();
    threads.sort_by(|one, two| {
        let by = match choice.sort {
            Sort::Rate | Sort::P99 => two.rate.total_cmp(&one.rate),
            Sort::Count => two.count.cmp(&one.count),
            Sort::Lost => two.lost.cmp(&one.lost),
            Sort::Name => (&one.comm, &one.name).cmp(&(&two.comm, &two.name)),
        };
        by.then((one.pid, one.tid, &one.buffer, one.ring).cmp(&(
            two.pid,
            two.tid,
            &two.buffer,
            two.ring,
        )))
    });
    let title = |thread: &ThreadPicture| {
        let tid = if thread.tid == 0 { "?".to_owned() } else { thread.tid.to_string() };
        let name = thread.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        format!("{} {} {tid}{name}", thread.comm, thread.pid)
    };
    let names = threads.iter().map(|thread| wide(&title(thread)));
    let name = names.max().unwrap_or(0).clamp(THREAD.len(), MAX_THREAD_WIDTH);
    let heads = ["RATE/S", "COUNT", "LOST", "BUFFER", "RING"];
    let spark = usize::from(width).saturating_sub(name + 2 + 5 * (NUMBER + 1)).min(SECONDS);
    let mut lines = vec![names_of(THREAD, name, &heads, spark)];
    let mut starts = Vec::new();
    for (row, thread) in threads.iter().enumerate() {
        starts.push(lines.len() - 1);
        let buffer = cut(&thread.buffer, NUMBER);
        let lost = grouped(thread.lost);
        let ring = thread.ring.to_string();
        let cells = [rate(thread.rate), grouped(thread.count), lost, buffer, ring];
        let mut text = format!("{} ", fit(&title(thread), name));
        for cell in cells {
            let space = NUMBER.saturating_sub(wide(&cell));
            text.push_str(&format!("{}{cell} ", " ".repeat(space)));
        }
        let chosen = row == choice.row && choice.page == Page::Threads;
        let mut style = if thread.lost > 0 { choice.style(Color::Red) } else { Style::new() };
        if chosen {
            style = style.reversed();
        }
        let bars = Span::styled(bars(&thread.history, spark), choice.style(Color::Cyan));
        lines.push(Line::from(vec![Span::styled(text, style), bars]));
    }
    TextTable { lines, starts }
}

pub(super) fn help() -> Vec<Line<'static>> {
    let lines = [
        "Rates are of the last second or two. Percentiles, the greatest value, and how busy",
        "intervals are: of the last 5 to 10 seconds. Shares of values: of a sample.",
        "The bars are the last minute, a second each. Spans that are open began and did not",
        "end. Counters and histograms are of the latest reading; a percentile is below the",
        "end of its bucket.",
        "`times within`: how far a time can be from the system's clock, by all readings so far.",
        "",
        "q, Esc      end: the program is detached, and goes on",
        "s           sort by something else",
        "/           show only what has this text in its name",
        "p, space    stop the picture; reading goes on",
        "Tab, t      frames, or threads",
        "↑ ↓ j k     choose a row",
        "Enter       show the most frequent values of the chosen frame",
        "w           write the latest frames into a capture, top-TIME.bin",
        "Ctrl-L      draw the screen again",
        "?, h        this",
    ];
    lines.map(Line::from).to_vec()
}

fn names_of(first: &str, name: usize, heads: &[&str], spark: usize) -> Line<'static> {
    let mut text = format!("{} ", fit(first, name));
    heads.iter().for_each(|head| text.push_str(&format!("{head:>NUMBER$} ")));
    if spark >= 11 {
        text.push_str("LAST MINUTE");
    }
    Line::from(Span::styled(text, Style::new().underlined()))
}

/// The latest counts as bars, as many as fit.
fn bars(counts: &[u64], most: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &counts[counts.len().saturating_sub(most)..];
    let greatest = shown.iter().copied().max().unwrap_or(0).max(1);
    let bar = |&count: &u64| match count {
        0 => ' ',
        // Small counts stay visible.
        count => BARS[(u128::from(count) * 7 / u128::from(greatest)) as usize],
    };
    shown.iter().map(bar).collect()
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn rate(per_second: f64) -> String {
    three(if per_second >= 100.0 { per_second.round() } else { per_second })
}

fn percent(share: f64) -> String {
    format!("{} %", three((share * 1000.0).round() / 10.0))
}

fn bytes(count: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|unit| count >= unit.0) {
        Some((each, unit)) => format!("{} {unit}", three(count / each)),
        None => format!("{} B", three(count.round())),
    }
}

fn clock(ns: u64) -> String {
    match ns / 1_000_000_000 {
        0..60 => duration(ns as f64),
        seconds => format!("{}:{:02}", seconds / 60, seconds % 60),
    }
}

fn wide(text: &str) -> usize {
    Span::raw(text).width()
}

/// At most `most` columns of a text.
fn cut(text: &str, most: usize) -> String {
    if wide(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    for char in text.chars() {
        if wide(&out) + wide(char.encode_utf8(&mut [0; 4])) >= most {
            break;
        }
        out.push(char);
    }
    if most > 0 {
        out.push('…');
    }
    out
}

/// Exactly `width` columns.
fn fit(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let space = width.saturating_sub(wide(&text));
    text + &" ".repeat(space)
}
