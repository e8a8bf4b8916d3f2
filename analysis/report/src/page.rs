//! The page, from top to bottom.

mod account;
mod clocks;
mod glance;
mod kernel;
mod metrics;
mod parts;
mod points;
mod sections;
mod top;
mod triggers;
mod wholes;

use crate::bytes::base64;
use crate::facts::Facts;
use crate::html::{escape_html, json};

/// Style sheet of the page.
const STYLE: &str = include_str!("../assets/page.css");
/// Script of the page.
const SCRIPT: &str = include_str!("../assets/page.js");

/// Makes the page, one file without network access or foreign scripts.
pub fn page(facts: &Facts) -> String {
    let title = escape_html(&top::title(facts));
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let mut out = format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{policy}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body data-rows=\"{}\">\n",
        facts.loss.captured
    );
    out.push_str(&top::header(facts));
    out.push_str("<main>\n");
    out.push_str(&kernel::causes(facts));
    out.push_str(&glance::section(facts));
    out.push_str(&top::timeline(facts));
    out.push_str(&triggers::section(facts));
    let charts = sections::Room::default();
    for (at, whole) in facts.wholes.iter().enumerate() {
        out.push_str(&wholes::section(facts, whole, facts.frames.len() + at, &charts));
    }
    for (at, frame) in facts.frames.iter().enumerate() {
        out.push_str(&sections::frame(facts, frame, at, &charts));
    }
    out.push_str(&points::section(facts));
    out.push_str(&clocks::section(facts));
    out.push_str(&metrics::section(facts));
    out.push_str(&kernel::section(facts));
    for view in &facts.views {
        out.push_str(&sections::view(view));
    }
    out.push_str(&account::section(facts));
    out.push_str("</main>\n");
    out.push_str(&top::footer(facts));
    let data = json(&facts.timeline.json());
    out.push_str(&format!("<script type=\"application/json\" id=data>{data}</script>\n"));
    out.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

/// The hash of a text, as a content security policy writes it.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&hmac_sha256::Hash::hash(text.as_bytes())))
}
