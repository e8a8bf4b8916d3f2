//! The top of the page, the timeline, and the end of the page.

use super::parts::{counted, swatch};
use crate::facts::{CaptureAccount, Facts};
use crate::html::{HtmlTable, escape_html};
use crate::page_svg;
use crate::timeline_data::Timeline;
use ppt_query::text::{duration, grouped, time};

/// The name of a program without its folder.
fn short(exe: &str) -> &str {
    exe.rsplit('/').next().filter(|piece| !piece.is_empty()).unwrap_or(exe)
}

/// The title: the captured programs.
pub fn title(facts: &Facts) -> String {
    let mut names: Vec<&str> = Vec::new();
    for program in &facts.programs {
        let name = short(&program.exe);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.len() {
        0 => "capture".to_owned(),
        1..=3 => names.join(", "),
        more => format!("{} and {} more programs", names[..2].join(", "), more - 2),
    }
}

pub fn header(facts: &Facts) -> String {
    let title = escape_html(&title(facts));
    let mut details: Vec<String> = Vec::new();
    let mut processes: Vec<String> = Vec::new();
    for program in &facts.programs {
        let name = format!("pid {}", program.pid);
        if !processes.contains(&name) {
            processes.push(name);
        }
    }
    match processes.len() {
        0 => {}
        1..=3 => details.push(escape_html(&processes.join(", "))),
        many => details.push(counted(many as u64, "process").replace("processs", "processes")),
    }
    let mut hosts: Vec<&str> = facts.programs.iter().map(|program| program.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.retain(|host| !host.is_empty());
    match hosts.len() {
        0 => {}
        1..=3 => details.push(format!("on {}", escape_html(&hosts.join(", ")))),
        many => details.push(format!("on {many} hosts")),
    }
    if let Some(span) = &facts.span {
        details.push(escape_html(&moment(span.first)));
        details.push(duration(span.len() as f64));
    }
    let tags: Vec<String> = facts
        .programs
        .first()
        .into_iter()
        .flat_map(|program| &program.tags)
        .map(|(name, value)| {
            format!("<span class=tag>{} {}</span>", escape_html(name), escape_html(value))
        })
        .take(6)
        .collect();
    format!(
        "<header>\n<h1>{title}</h1>\n<p class=said>{}</p>\n{}\n{}</header>\n",
        details.iter().map(|text| format!("<span>{text}</span>")).collect::<String>(),
        if tags.is_empty() {
            String::new()
        } else {
            format!("<p class=tags>{}</p>", tags.concat())
        },
        verdict(facts)
    )
}

/// A time with a resolution of seconds; tables have finer ones.
fn moment(ns: i64) -> String {
    let full = time(ns);
    match full.split_once('.') {
        Some((seconds, _)) => format!("{} UTC", seconds.replace('T', " ")),
        None => full,
    }
}

/// Whether frames are missing.
fn verdict(facts: &Facts) -> String {
    let loss = &facts.loss;
    let captured = grouped(loss.captured);
    let cut = facts.captures.iter().filter(|capture| !capture.complete).count();
    let mut notes = String::new();
    if cut > 0 {
        let which = match facts.captures.len() {
            1 => "The capture".to_owned(),
            all => format!("{cut} of {all} captures"),
        };
        let verb = if facts.captures.len() == 1 || cut == 1 { "has" } else { "have" };
        notes = format!(
            " <span class=note>{which} {verb} no proper end: what was captured before counts.</span>"
        );
    }
    if loss.absent > 0 {
        notes += &format!(
            " <span class=note>{} frames were written between these captures and are in none of them: \
             counts are lower bounds.</span>",
            grouped(loss.absent)
        );
    }
    if loss.missing() > 0 {
        let all = grouped(loss.captured.saturating_add(loss.missing()));
        let gaps = match loss.gaps {
            0 => String::new(),
            _ => format!(" in {}, hatched below", counted(loss.gaps, "gap")),
        };
        return format!(
            "<p class=\"verdict bad\"><b>{} of {all} frames are missing</b>{gaps}. \
             Counts are lower bounds.{notes}</p>\n",
            grouped(loss.missing())
        );
    }
    let class = if cut > 0 || loss.absent > 0 { "warn" } else { "good" };
    let text = match loss.captured {
        0 => "No frame was captured.".to_owned(),
        captured if loss.absent > 0 => format!("{} frames are here.", grouped(captured)),
        1 => "<b>The one frame is here</b>: nothing was lost.".to_owned(),
        _ => format!("<b>All {captured} frames are here</b>: nothing was lost."),
    };
    let kernel = match facts.account.of_kernel {
        0 => String::new(),
        count => format!(
            " {} of them say what the kernel did; the table below counts those of programs.",
            grouped(count)
        ),
    };
    format!("<p class=\"verdict {class}\">{text}{kernel}{notes}</p>\n")
}

pub fn timeline(facts: &Facts) -> String {
    let timeline = &facts.timeline;
    if timeline.lanes.is_empty() {
        return String::new();
    }
    let mut legend = names(timeline);
    if timeline.lanes.iter().any(|lane| lane.ticks.iter().any(|&tick| tick > 0)) {
        legend.push_str(&format!("<span>{}frames without an interval</span>", swatch(None)));
    }
    if !timeline.gaps.is_empty() {
        legend.push_str("<span><i class=\"sw lost\"></i>missing frames</span>");
    }
    if timeline.lanes.iter().any(|lane| !lane.states.is_empty()) {
        legend.push_str("<span class=keys>the line above each thread, by the kernel:</span>");
        legend.push_str(&super::kernel::legend());
    }
    if !timeline.marks.is_empty() {
        legend.push_str("<span><i class=\"sw mark\"></i>trigger</span>");
    }
    let mut table = HtmlTable::new(&["host", "process", "thread", "frames", "covered", "share"], 1);
    let (_, length) = timeline.extent();
    for lane in &timeline.lanes {
        let share = lane.busy / length.max(1) as f64 * 100.0;
        table.row([
            lane.host.clone(),
            lane.pid.clone(),
            lane.label(),
            grouped(lane.frames),
            duration(lane.busy),
            format!("{share:.1} %"),
        ]);
    }
    let more = match timeline.hidden_threads {
        0 => String::new(),
        more => format!(
            "<p class=note>{} with fewer frames {} not drawn.</p>",
            counted(more as u64, "thread"),
            if more == 1 { "is" } else { "are" }
        ),
    };
    let holds = if timeline.has_all_frames {
        "Every frame is on this page."
    } else {
        "This page holds single frames around the slowest intervals (marked on the strip); \
                  elsewhere it shows how much of the time is covered."
    };
    format!(
        "<section id=timeline>\n<h2>Timeline</h2>\n<p class=note>{holds}</p>\n\
         <p class=legend>{legend}</p>\n\
         <div id=stage hidden>\n<div class=tools>\
         <button type=button data-do=in title=\"w\">Zoom in</button>\
         <button type=button data-do=out title=\"s\">Zoom out</button>\
         <button type=button data-do=left title=\"a\" aria-label=\"Earlier\">←</button>\
         <button type=button data-do=right title=\"d\" aria-label=\"Later\">→</button>\
         <button type=button data-do=all title=\"0\">Whole</button>\
         <span id=where role=status></span></div>\n\
         <canvas id=strip aria-label=\"The whole, with the part that is shown\"></canvas>\n\
         <div id=lanes tabindex=0 role=application aria-label=\"Timeline: w and s zoom, a and d move, 0 shows the whole\">\
         <canvas id=canvas></canvas><div id=below hidden><span></span></div></div>\n\
         <p class=hint>Wheel or <kbd>w</kbd> <kbd>s</kbd> zoom, drag or <kbd>a</kbd> <kbd>d</kbd> \
         move, <kbd>0</kbd> shows the whole. The strip \
         counts frames over time; drag on it to select. Click a slice or a tick for its frame.</p>\n\
         <div id=picked hidden></div>\n</div>\n\
         <noscript><p class=note>The timeline needs a script; this page brings its own. \
         The table tells the threads.</p></noscript>\n\
         <details><summary>Threads as a table</summary>\n{}</details>\n{more}</section>\n",
        table.html("")
    )
}

/// The legend of the timeline. Names that share the last colour share an entry.
fn names(timeline: &Timeline) -> String {
    let drawn = |at: &usize| timeline.is_drawn(*at);
    let (own, shared): (Vec<usize>, Vec<usize>) =
        (0..timeline.names.len()).filter(drawn).partition(|&at| at < page_svg::COLOURS);
    let entry = |at: &usize| {
        format!("<span>{}{}</span>", swatch(Some(*at)), escape_html(&timeline.names[*at]))
    };
    let mut legend: String = own.iter().map(entry).collect();
    match &shared[..] {
        [] => {}
        [one] => legend.push_str(&entry(one)),
        many => {
            let all: Vec<&str> = many.iter().map(|&at| timeline.names[at].as_str()).collect();
            legend.push_str(&format!(
                "<span title=\"{}\">{}{} other names</span>",
                escape_html(&all.join(", ")),
                swatch(Some(many[0])),
                many.len()
            ));
        }
    }
    legend
}

pub fn footer(facts: &Facts) -> String {
    let files: String = facts
        .captures
        .iter()
        .take(20)
        .map(|capture| {
            format!(
                "<li><code>{}</code> {} frames, {}, {}",
                escape_html(&capture.path),
                capture.frames.parse().map_or(capture.frames.clone(), grouped),
                bytes(capture.bytes),
                ending(capture)
            )
        })
        .collect();
    let more = match facts.captures.len().saturating_sub(20) {
        0 => String::new(),
        more => format!("<li>and {more} more"),
    };
    format!(
        "<footer>\n<h2>This page</h2>\n<p>This command makes it again:</p>\n\
         <pre><code>{}</code></pre>\n<ul class=files>{files}{more}</ul>\n</footer>\n",
        escape_html(&facts.command)
    )
}

/// The end of a capture, in words.
fn ending(capture: &CaptureAccount) -> String {
    match (capture.complete, capture.reason.as_str()) {
        (true, "") => "complete".to_owned(),
        (true, reason) => format!("ended: {}", escape_html(reason)),
        (false, _) => "cut off, or still growing".to_owned(),
    }
}

/// A number of bytes with a unit.
fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => counted(count, "byte"),
        10_000..=9_999_999 => format!("{:.0} kB", count as f64 / 1e3),
        10_000_000..=9_999_999_999 => format!("{:.0} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}
