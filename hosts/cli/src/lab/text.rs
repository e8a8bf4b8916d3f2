//! Plans and differences as text.

use std::fmt::Write as _;

use ppt_hosts::lab::{Action, Difference, DifferenceKind, LabPlan, Stop};

/// Hosts, cells in their order, and what each combination of parameters runs.
pub(super) fn plan(plan: &LabPlan) -> String {
    let mut text =
        format!("{}: {} cells, seed {}\n\nhosts\n", plan.name, plan.cells.len(), plan.seed);
    for host in &plan.hosts {
        let addresses: String = host.addr.iter().map(|addr| format!(", {addr}")).collect();
        let _ = writeln!(text, "  {:<12} {}{addresses}", host.name, host.via);
    }
    text.push_str("\ncells, in this order\n");
    for (number, cell) in plan.cells.iter().enumerate() {
        let _ = writeln!(text, "  {:>4}  {}", number + 1, cell.key);
    }
    let mut firsts: Vec<_> = plan.cells.iter().filter(|cell| cell.repeat == 1).collect();
    firsts.sort_by(|a, b| a.key.cmp(&b.key));
    for cell in firsts {
        let parameters = plan.parameters(cell).map(|(name, value)| format!("{name} = {value}"));
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let title = if parameters.is_empty() { "each cell" } else { &parameters };
        let _ = writeln!(text, "\n{title}");
        for phase in plan.resolve(cell) {
            let _ = writeln!(text, "  phase {}, {:?} at most", phase.name, phase.timeout);
            for (host, does) in &phase.actions {
                action(&mut text, &plan.hosts[*host].name, does);
            }
        }
    }
    safe(&text)
}

fn action(text: &mut String, host: &str, action: &Action) {
    match &action.stop {
        Some(Stop::All) => _ = writeln!(text, "    {host}: stop all programs"),
        Some(Stop::Phases(names)) => {
            let _ = writeln!(text, "    {host}: stop programs of {}", names.join(", "));
        }
        None => {}
    }
    if let Some(clock) = &action.clock {
        let (until, most) = (clock.until, clock.give_up);
        let _ = writeln!(text, "    {host}: measure the clock until ±{until:?}, {most:?} at most");
    }
    if let Some(command) = &action.command {
        let how = if command.ends { "run" } else { "start" };
        let captured = if command.capture { ", captured" } else { "" };
        let env = command.env.iter().map(|(name, value)| format!("{name}={} ", word(value)));
        let words = command.words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ");
        let env = env.collect::<String>();
        let _ = writeln!(text, "    {host}: {how} {env}{words}{captured}");
        let ready = &command.ready;
        let conditions = [
            ready.output.as_ref().map(|output| format!("it writes {}", word(output))),
            ready.tcp.map(|tcp| format!("TCP port {tcp} listens")),
            ready.udp.map(|udp| format!("UDP port {udp} is bound")),
            ready.file.as_ref().map(|file| format!("{} is there", file.display())),
        ];
        for condition in conditions.into_iter().flatten() {
            let _ = writeln!(text, "      ready when {condition}");
        }
    }
    if !action.collect.is_empty() {
        let _ = writeln!(text, "    {host}: fetch {}", action.collect.join(", "));
    }
}

/// A word of a command, quoted if its end would be unclear.
fn word(word: &str) -> String {
    if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'') {
        format!("{word:?}")
    } else {
        word.to_owned()
    }
}

/// The differences by category; those that explain the others come first.
pub(super) fn differences(differences: &[Difference]) -> String {
    let mut text = String::new();
    for (kind, title) in [
        (DifferenceKind::Setup, "set up differently"),
        (DifferenceKind::Result, "ended differently"),
        (DifferenceKind::Content, "files of other content"),
    ] {
        let of_kind: Vec<_> =
            differences.iter().filter(|difference| difference.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{title}: {}", of_kind.len());
        for Difference { fact, a, b, .. } in of_kind {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "—".to_owned());
            let _ = match kind {
                DifferenceKind::Content => writeln!(text, "  {fact}"),
                _ => writeln!(text, "  {fact}\n    a: {}\n    b: {}", value(a), value(b)),
            };
        }
    }
    if text.is_empty() { "nothing differs\n".to_owned() } else { safe(&text) }
}

/// Names may come from a host, so terminal control characters are escaped.
fn safe(text: &str) -> String {
    text.lines().map(|line| ppt_text::escaped(line).to_string() + "\n").collect()
}
