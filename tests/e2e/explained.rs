//! The page docs/troubleshooting.md beside what was said: it quotes messages word for word.

use crate::steady::matches;
use crate::support::root;

/// What was said without the lines `more:`. Each must name a section of the page, and the message
/// above it must be one that the section quotes.
#[track_caller]
pub fn explained(said: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let mut rest: Vec<&str> = Vec::new();
    for line in said.lines() {
        let Some(code) = line.strip_prefix("  more: ppt explain ") else {
            rest.push(line);
            continue;
        };
        let first = rest.iter().rposition(|it| it.starts_with("ppt: "));
        let message = &rest[first.expect("a message above")..];
        let quotes = quotes(&page, code);
        let is_quoted = quotes.iter().any(|quote| says(message, quote));
        assert!(is_quoted, "said:\n{}\n\nquoted as {code}:\n{quotes:#?}", message.join("\n"));
    }
    let end = if said.ends_with('\n') { "\n" } else { "" };
    rest.join("\n") + end
}

/// The quotes of a section, in which `{}` stands for what differs.
fn quotes(page: &str, code: &str) -> Vec<String> {
    let from = page.find(&format!("\n### {code}\n")).unwrap_or_else(|| panic!("no section {code}"));
    let section = page[from + 1..].split("\n##").next().unwrap_or_default();
    let paragraphs = section.split("\n\n").filter(|it| it.starts_with("> "));
    let plain = |it: &str| it.lines().map(|line| &line[2..]).collect::<Vec<_>>().join("\n");
    paragraphs.map(|it| plain(it).replace('…', "{}")).collect()
}

/// Whether a message begins with the lines of a quote.
fn says(message: &[&str], quote: &str) -> bool {
    let count = quote.lines().count().min(message.len());
    let said = message[..count].join("\n");
    matches(said.trim_start_matches("ppt: "), quote)
}

#[test]
fn quotes_are_held_against_messages() {
    let traced = "ppt: process 7 is traced by process 8 (gdb); ppt does not interfere with a \
                  debugger by default; to attach anyway: --allow traced";
    let said = format!("attached: pid 7\n{traced}\n  more: ppt explain traced\n");
    assert_eq!(explained(&said), format!("attached: pid 7\n{traced}\n"));
    let wrong = said.replace("does not", "will not");
    assert!(std::panic::catch_unwind(|| explained(&wrong)).is_err());
}
