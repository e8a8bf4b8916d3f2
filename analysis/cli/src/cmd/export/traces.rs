//! Exports of traces: events in the order of time.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use ppt_interchange::{
    Chrome, Ctf, Encoding, EventRole, EventSchema, Events, Merge, Otlp, Perfetto, Resources,
    RowRun, Trace, TraceFormat, TraceSelection,
};
use ppt_query::text::grouped;
use ppt_query::{Engine, Processes};

use super::folder::ExportFolder;
use crate::args::{self, ExportFormat};
use crate::error::AnswerError;
use crate::{message, open, question_settings, run};

/// Bytes of a write.
const BUFFER: usize = 1 << 20;

pub(super) async fn export(
    form: TraceFormat,
    args: &args::Export,
    engine: &Engine,
) -> Result<(), AnswerError> {
    if !args.partition_by.is_empty() {
        let why = "a trace is one whole: --partition-by is for tables";
        return Err(AnswerError::Usage(why.to_owned()));
    }
    let to = &args.to.output;
    let selection = match &args.frame {
        None => TraceSelection::everything(engine, form)?,
        Some(name) => TraceSelection::named(engine, form, name)?,
    };
    let events = Events::new(engine, form);
    let (kinds, sources) = events.sources(&selection).await?;
    if let Some(why) = &sources.edges_are_unknown {
        message::note(format_args!("spans have no links to their causes: {why}"));
    }
    // The rest is for sorting and for rows that were read ahead.
    let memory = question_settings::memory(args.captures.memory).bytes.unwrap_or(1 << 30) / 4;
    let merge = Merge::new(&events, sources, memory).await?;
    let processes = Processes::new(engine.set());
    match (form, args.format == ExportFormat::OtlpJson) {
        (TraceFormat::Perfetto, _) => {
            if to.as_os_str() == "-" && io::stdout().is_terminal() {
                let why = "this format is not for terminals: name a file with -o";
                return Err(AnswerError::Usage(why.to_owned()));
            }
            let mut output = open::output(to, args.to.force, engine)?;
            let name = output.name();
            let readings = events.readings().await?;
            let file = buffered(output.file());
            let trace = Perfetto::new(file, &kinds, processes, &readings);
            let trace = trace.map_err(AnswerError::writing(&name))?;
            write(trace, &kinds, merge, &name).await?;
            Ok(output.publish()?)
        }
        (TraceFormat::Chrome, _) => {
            let mut output = open::output(to, args.to.force, engine)?;
            let name = output.name();
            let trace = Chrome::new(buffered(output.file()), &kinds, processes);
            let trace = trace.map_err(AnswerError::writing(&name))?;
            write(trace, &kinds, merge, &name).await?;
            Ok(output.publish()?)
        }
        (TraceFormat::Otlp, true) => {
            let mut output = open::output(to, args.to.force, engine)?;
            let name = output.name();
            let resources = Resources::new(engine, &processes).await?;
            let files = (buffered(output.file()), None);
            let of = (processes, resources);
            let trace = Otlp::new(files, Encoding::Json, &kinds, of, events.start());
            write(trace, &kinds, merge, &name).await?;
            Ok(output.publish()?)
        }
        (TraceFormat::Otlp, false) => {
            let folder = folder(to, "OTLP as protobuf")?;
            let name = to.display().to_string();
            let file = |file: &str| {
                File::create_new(folder.inside().join(file)).map_err(AnswerError::writing(&name))
            };
            let files = (buffered(file("traces.pb")?), Some(buffered(file("metrics.pb")?)));
            let resources = Resources::new(engine, &processes).await?;
            let of = (processes, resources);
            let trace = Otlp::new(files, Encoding::Protobuf, &kinds, of, events.start());
            write(trace, &kinds, merge, &name).await?;
            folder.publish()
        }
        (TraceFormat::Ctf, _) => {
            let folder = folder(to, "CTF")?;
            let name = to.display().to_string();
            let trace = Ctf::new(folder.inside(), &kinds).map_err(AnswerError::writing(&name))?;
            write(trace, &kinds, merge, &name).await?;
            folder.publish()
        }
    }
}

fn buffered<W: Write>(file: W) -> BufWriter<W> {
    BufWriter::with_capacity(BUFFER, file)
}

/// The folder of a trace in a format that has several files.
fn folder(to: &Path, format: &str) -> Result<ExportFolder, AnswerError> {
    if to.as_os_str() == "-" {
        return Err(AnswerError::Usage(format!("{format} is a folder: name it with -o")));
    }
    ExportFolder::new(to)
}

/// Number of rows between two checks for Ctrl-C.
const ROWS: usize = 4096;

/// Writes all rows. Warns about missing links, and mentions frames without a time.
async fn write(
    mut trace: impl Trace,
    kinds: &[EventSchema],
    mut merge: Merge,
    name: &str,
) -> Result<(), AnswerError> {
    let fail = AnswerError::writing(name);
    let mut timeless = 0u64;
    let mut take = |run: RowRun<'_>| {
        trace.turn_to(run.kind, run.rows);
        let is_frame = matches!(kinds[run.kind].what, EventRole::Frames | EventRole::Unknown);
        for row in run.which.iter().map(|&row| row as usize) {
            if is_frame && !run.rows.has_own_time(row) {
                timeless += 1;
            }
            trace.event(run.kind, run.rows, row).map_err(&fail)?;
        }
        Ok::<_, AnswerError>(())
    };
    let mut written = 0;
    loop {
        let count = merge.next(&mut take).await?;
        if count == 0 {
            break;
        }
        written += count;
        if written >= ROWS {
            written = 0;
            run::pause().await;
        }
    }
    trace.finish().map_err(&fail)?;
    let dropped_links = trace.dropped_links();
    if dropped_links > 0 {
        let text = "links from effects to their causes are not in the export, because more were waiting \
                    for their effects at once than ppt keeps";
        message::warning("links-let-go", format_args!("{name}: {} {text}", grouped(dropped_links)));
    }
    if timeless > 0 {
        let subject = match timeless {
            1 => "1 frame has no time: its place".to_owned(),
            count => format!("{} frames have no time: their place", grouped(count)),
        };
        message::note(format_args!("{subject} in the trace is the beginning of the first capture"));
    }
    Ok(())
}
