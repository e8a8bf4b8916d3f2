//! Opens captures for questions, and reports their faults.

use std::io::{self, IsTerminal};
use std::path::Path;

use ppt_import::frame_dsl::edge::Edge;
use ppt_output::{FileId, Output, Readers, Rules};
use ppt_query::{CaptureLoss, CaptureSet, Engine, EngineOptions, ResultFormat, Window, plain};
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::error::AnswerError;
use crate::{message, question_settings};
use ppt_query::text::grouped;

/// Opens the captures of a command.
pub(crate) fn engine(captures: &args::Captures) -> Result<Engine, AnswerError> {
    engine_with(captures, None)
}

/// Opens captures, with other edge lines than theirs.
pub(crate) fn engine_with(
    captures: &args::Captures,
    edges: Option<Vec<Edge>>,
) -> Result<Engine, AnswerError> {
    let window = Window { from: captures.from, to: captures.to, buffers: captures.buffers.clone() };
    let threads = captures.threads.unwrap_or_else(|| EngineOptions::default().threads);
    let memory = question_settings::memory(captures.memory).bytes;
    let options = EngineOptions { memory, threads, window, pushdown: !captures.no_pushdown };
    let hosts = &captures.hosts;
    let mut set = CaptureSet::open(&captures.paths())
        .and_then(|set| set.align(&hosts.sync, hosts.reference.as_deref()))
        .map_err(ppt_query::QueryError::from)?;
    for (host, part) in set.clocks().unbounded() {
        let percent = (1000.0 * part).ceil() / 10.0;
        message::warning(
            "no-bounds",
            format_args!(
                "for {percent} % of the time of host {host}, readings leave open how its clock went: \
                 nothing of that time is compared with other hosts"
            ),
        );
    }
    if let Some(edges) = edges {
        set = set.with_edges(edges);
    }
    Ok(Engine::new(set, &options)?)
}

/// Refuses to write binary data to a terminal.
///
/// # Errors
/// `output` is standard output, and that is a terminal.
pub(crate) fn not_on_terminal(output: &Path, what: &str) -> Result<(), AnswerError> {
    if output.as_os_str() == "-" && io::stdout().is_terminal() {
        let why = format!("{what} is not for terminals: name a file with -o");
        return Err(AnswerError::Usage(why));
    }
    Ok(())
}

/// The output of a command that reads `engine`'s captures.
pub(crate) fn output(path: &Path, force: bool, engine: &Engine) -> Result<Output, AnswerError> {
    output_distinct_from(path, force, engine, None)
}

/// The output of a command that also reads `other`.
pub(crate) fn output_distinct_from(
    path: &Path,
    force: bool,
    engine: &Engine,
    other: Option<&Path>,
) -> Result<Output, AnswerError> {
    let inputs = engine.set().paths().chain(other).filter_map(FileId::of_input).collect();
    let rules = Rules { force, readers: Readers::ByUmask, inputs, invoker: None };
    Ok(Output::open(path, &rules)?)
}

/// The format that the extension of an output names.
pub(crate) fn format_by_extension(path: &Path) -> Option<ResultFormat> {
    path.extension()?.to_str()?.parse().ok()
}

/// Rejects the name of an output whose extension belongs to another format than `format`.
pub(crate) fn check_name(path: &Path, format: &str) -> Result<(), AnswerError> {
    const OTHERS: [&str; 14] = [
        "bmp", "dot", "eps", "gif", "gv", "htm", "html", "jpeg", "jpg", "pdf", "png", "svg",
        "tiff", "webp",
    ];
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let Some(extension) = extension.filter(|extension| OTHERS.contains(&extension.as_str())) else {
        return Ok(());
    };
    let (own, tool): (&[&str], &str) = match format {
        "HTML" => (&["html", "htm"], "a browser prints it as PDF"),
        "DOT" => (&["dot", "gv"], "`dot -Tpng` of Graphviz makes a picture of it"),
        _ => (
            &["svg"],
            "a browser, Inkscape or rsvg-convert makes a picture of another format of it",
        ),
    };
    if own.contains(&extension.as_str()) {
        return Ok(());
    }
    Err(AnswerError::Usage(format!(
        "what is written is {format}, and the name {} says {}: end the name in .{}; {tool}",
        path.display(),
        extension.to_uppercase(),
        own[0]
    )))
}

/// Reports missing frames.
fn warn_of_loss(engine: &Engine) {
    const FILES: usize = 5;
    let loss = engine.loss();
    if loss.absent > 0 {
        let absent = grouped(loss.absent);
        let mut text = format!(
            "{absent} frames were written between these captures and are in none of them: counts are \
             lower bounds"
        );
        for files in engine.set().absent_files(FILES) {
            text += &format!("\n  {files}");
        }
        message::note(format_args!("{text}"));
    }
    warn_of_missing(loss, &engine.buffers_with_loss());
}

/// Reports missing frames. `buffers`: those with missing frames, if others have none.
fn warn_of_missing(loss: CaptureLoss, buffers: &[&str]) {
    if loss.missing() == 0 {
        return;
    }
    let all = loss.captured.saturating_add(loss.missing());
    let gaps = match loss.gaps {
        0 => String::new(),
        1 => " in 1 gap".to_owned(),
        gaps => format!(" in {} gaps", grouped(gaps)),
    };
    let (missing, all) = (grouped(loss.missing()), grouped(all));
    let of_buffers = match buffers {
        [] => String::new(),
        [one] => format!(" of buffer {}", plain(one)),
        several => format!(" of buffers {}", plain(&several.join(", "))),
    };
    message::note(format_args!(
        "{missing} of {all} frames are missing{gaps}: counts{of_buffers} are lower bounds"
    ));
}

/// Reports missing frames and faults of the captures. Returns the exit status.
pub(crate) fn report_faults(engine: &Engine) -> ExitStatus {
    const SHOWN: usize = 5;
    warn_of_loss(engine);
    let mut code = ExitStatus::DONE;
    for trouble in engine.set().troubles() {
        let path = trouble.path.display();
        for damage in trouble.damaged.iter().take(SHOWN) {
            message::warning("damaged", format_args!("{path}: {damage}"));
        }
        let more = trouble.damages.saturating_sub(SHOWN as u64);
        if more > 0 {
            let text = format_args!("{path}: and {more} more damaged places");
            message::warning("damaged", text);
        }
        if trouble.damages > 0 {
            code = ExitStatus::FAILED;
        }
        if let Some(cut) = trouble.cut {
            let text = format_args!(
                "{path}: the capture was cut off at byte {cut}, or still grows; \
                                     everything before that counts"
            );
            message::warning("cut-off", text);
        }
    }
    code
}
