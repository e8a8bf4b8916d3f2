//! Exports of traces: events in the order of time.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};

use ppt_interchange::{
    Chrome, Ctf, Encoding, EventRole, EventSchema, Events, Merge, Otlp, Perfetto, Resources,
    RowRun, Trace, TraceFormat, TraceSelection,
};
use ppt_query::text::grouped;
use ppt_query::{Engine, Processes};

use super::folder::ExportFolder;
use crate::args::{self, ExportFormat};
use crate::failure::Failure;
use crate::{message, open, run, terms};

/// Bytes of a write.
const BUFFER: usize = 1 << 20;

/// The format of a trace; `None` if the format is that of tables.
pub(super) fn form(format: ExportFormat) -> Option<TraceFormat> {
    match format {
        ExportFormat::Perfetto => Some(TraceFormat::Perfetto),
        ExportFormat::Chrome => Some(TraceFormat::Chrome),
        ExportFormat::Ctf => Some(TraceFormat::Ctf),
        ExportFormat::Otlp | ExportFormat::OtlpJson => Some(TraceFormat::Otlp),
        ExportFormat::Parquet | ExportFormat::Arrow | ExportFormat::Csv | ExportFormat::Jsonl => {
            None
        }
    }
}

pub(super) async fn export(
    form: TraceFormat,
    args: &args::Export,
    engine: &Engine,
) -> Result<(), Failure> {
    if !args.partition_by.is_empty() {
        let why = "a trace is one whole: --partition-by is for tables";
        return Err(Failure::Usage(why.to_owned()));
    }
    let to = &args.to.output;
    let is_stdout = to.as_os_str() == "-";
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
    let memory = terms::memory(args.captures.memory).bytes.unwrap_or(1 << 30) / 4;
    let merge = Merge::new(&events, sources, memory).await?;
    let processes = Processes::new(engine.set());
    let is_json = args.format == ExportFormat::OtlpJson;
    if form == TraceFormat::Ctf || form == TraceFormat::Otlp && !is_json {
        if is_stdout {
            let of = if form == TraceFormat::Ctf { "CTF" } else { "OTLP as protobuf" };
            return Err(Failure::Usage(format!("{of} is a folder: name it with -o")));
        }
        let folder = ExportFolder::new(to)?;
        let name = to.display().to_string();
        if form == TraceFormat::Ctf {
            let trace = Ctf::new(folder.inside(), &kinds).map_err(Failure::writing(&name))?;
            write(trace, &kinds, merge, &name).await?;
        } else {
            let file = |file: &str| {
                let created = File::create_new(folder.inside().join(file));
                let created = created.map_err(Failure::writing(&name))?;
                Ok::<_, Failure>(BufWriter::with_capacity(BUFFER, created))
            };
            let files = (file("traces.pb")?, Some(file("metrics.pb")?));
            let resources = Resources::new(engine, &processes).await?;
            let of = (processes, resources);
            let trace = Otlp::new(files, Encoding::Protobuf, &kinds, of, events.start());
            write(trace, &kinds, merge, &name).await?;
        }
        return folder.publish();
    }
    if is_stdout && form == TraceFormat::Perfetto && io::stdout().is_terminal() {
        let why = "this format is not for terminals: name a file with -o";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut output = open::output(to, args.to.force, engine)?;
    let name = output.name();
    let file = BufWriter::with_capacity(BUFFER, output.file());
    let fail = Failure::writing(&name);
    if form == TraceFormat::Perfetto {
        let readings = events.readings().await?;
        let trace = Perfetto::new(file, &kinds, processes, &readings).map_err(&fail)?;
        write(trace, &kinds, merge, &name).await?;
    } else if is_json {
        let of = (processes.clone(), Resources::new(engine, &processes).await?);
        let trace = Otlp::new((file, None), Encoding::Json, &kinds, of, events.start());
        write(trace, &kinds, merge, &name).await?;
    } else {
        let trace = Chrome::new(file, &kinds, processes).map_err(&fail)?;
        write(trace, &kinds, merge, &name).await?;
    }
    Ok(output.publish()?)
}

/// Number of rows between two checks for Ctrl-C.
const ROWS: usize = 4096;

/// Writes all rows. Warns about missing links, and mentions frames without a time.
async fn write(
    mut trace: impl Trace,
    kinds: &[EventSchema],
    mut merge: Merge,
    name: &str,
) -> Result<(), Failure> {
    let fail = Failure::writing(name);
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
        Ok::<_, Failure>(())
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
