//! The captured processes, the missing frames, and the accuracy of clocks.

use ppt_query::Engine;

use crate::error::ReportError;
use crate::text_rows::{TextRows, query};

/// A captured process.
#[derive(Debug, PartialEq, Eq)]
pub struct ProcessAccount {
    pub exe: String,
    pub host: String,
    pub pid: String,
    pub buffers: String,
    pub tags: Vec<(String, String)>,
}

/// A capture file.
#[derive(Debug)]
pub struct CaptureAccount {
    pub path: String,
    pub frames: String,
    pub bytes: u64,
    pub reason: String,
    pub complete: bool,
}

/// A run of missing frames.
#[derive(Debug)]
pub struct FrameGap {
    pub host: String,
    pub pid: String,
    pub tid: String,
    pub buffer: String,
    pub ring: String,
    pub count: u64,
    pub cause: String,
    pub from: Option<i64>,
    pub to: Option<i64>,
}

/// Two clocks, and how accurately they were read together.
#[derive(Debug)]
pub struct ClockAccount {
    pub host: String,
    pub pair: String,
    pub readings: u64,
    /// Half the time between the surrounding readings, in ns: median and maximum.
    pub typical: Option<f64>,
    pub worst: Option<f64>,
    pub distrusted: bool,
}

/// The missing frames, by cause, and where they are missing.
#[derive(Debug)]
pub struct Account {
    /// buffer, process, cause, count.
    pub causes: TextRows,
    /// buffer, process, ring, frames, lost.
    pub rings: TextRows,
    /// Number of rings.
    pub all_rings: u64,
    pub gaps: Vec<FrameGap>,
    pub all_gaps: u64,
    pub clocks: Vec<ClockAccount>,
    /// Captured frames that the kernel's recorder wrote.
    pub of_kernel: u64,
}

/// Maximum number of rings on a page.
const RINGS: usize = 40;
/// Maximum number of gaps on a page.
const GAPS: usize = 2000;

impl Account {
    pub(super) async fn gather(engine: &Engine) -> Result<Account, ReportError> {
        // Processes of several hosts may have the same pid.
        let hosts = query(engine, "SELECT DISTINCT host FROM sources LIMIT 2").await?.len();
        let process = if hosts > 1 { "concat(pid, ' on ', host)" } else { "pid" };
        let causes = format!(
            "SELECT buffer, {process}, cause, sum(count) FROM account \
             GROUP BY buffer, host, pid, cause ORDER BY buffer, host, pid, cause"
        );
        let rings = format!(
            "SELECT buffer, {process}, ring, frames, lost FROM rings \
             ORDER BY lost DESC, frames DESC, buffer, host, pid, ring LIMIT {RINGS}"
        );
        let gaps = format!(
            "SELECT host, pid, tid, buffer, ring, count, cause, CAST(ts_lo AS BIGINT) AS lo, \
             CAST(ts_hi AS BIGINT) AS hi FROM gaps ORDER BY count DESC, ts_lo LIMIT {GAPS}"
        );
        let count = |rows: TextRows| rows.first().map_or(0, |row| row[0].parse().unwrap_or(0));
        let gap = |row: Vec<String>| {
            let [host, pid, tid, buffer, ring, count, cause, from, to] =
                <[String; 9]>::try_from(row).unwrap_or_default();
            let (count, from, to) =
                (count.parse().unwrap_or(0), from.parse().ok(), to.parse().ok());
            FrameGap { host, pid, tid, buffer, ring, count, cause, from, to }
        };
        let causes = query(engine, &causes).await?;
        let is_kernel =
            |row: &&Vec<String>| engine.set().is_kernel(&row[0]) && row[2] == "captured";
        let by_kernel = causes.iter().filter(is_kernel);
        let of_kernel = by_kernel.filter_map(|row| row[3].parse::<u64>().ok()).sum();
        Ok(Account {
            causes,
            of_kernel,
            rings: query(engine, &rings).await?,
            all_rings: count(query(engine, "SELECT count(*) FROM rings").await?),
            gaps: query(engine, &gaps).await?.into_iter().map(gap).collect(),
            all_gaps: count(query(engine, "SELECT count(*) FROM gaps").await?),
            clocks: clocks(engine).await?,
        })
    }
}

/// The first and the last time at which the listener drained frames, ns since the epoch.
pub async fn drained(engine: &Engine) -> Result<Option<(i64, i64)>, ReportError> {
    let sql =
        "SELECT CAST(min(drained) AS BIGINT) AS lo, CAST(max(drained) AS BIGINT) AS hi FROM frames";
    let rows = query(engine, sql).await?;
    let number = |at: usize| rows.first().and_then(|row| row[at].parse().ok());
    Ok(number(0).zip(number(1)))
}

pub async fn programs(engine: &Engine) -> Result<Vec<ProcessAccount>, ReportError> {
    let rows = query(engine, "SELECT * FROM sources ORDER BY host, pid, buffer").await?;
    let schema = engine.sql("SELECT * FROM sources").await?;
    let names: Vec<String> =
        schema.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut programs: Vec<ProcessAccount> = Vec::new();
    for row in rows {
        let cell =
            |name: &str| names.iter().position(|text| text == name).map_or("", |at| &row[at]);
        let buffer = cell("buffer");
        let tags = names.iter().zip(&row).filter_map(|(name, value)| {
            let name = name.strip_prefix("tag_")?;
            (!value.is_empty()).then(|| (name.to_owned(), value.clone()))
        });
        let program = ProcessAccount {
            exe: cell("exe").to_owned(),
            host: cell("host").to_owned(),
            pid: cell("pid").to_owned(),
            buffers: buffer.to_owned(),
            tags: tags.collect(),
        };
        let same = |account: &&mut ProcessAccount| {
            (&account.exe, &account.host, &account.pid)
                == (&program.exe, &program.host, &program.pid)
        };
        match programs.iter_mut().find(same) {
            None => programs.push(program),
            Some(known) if known.buffers.split(", ").all(|piece| piece != buffer) => {
                known.buffers.push_str(", ");
                known.buffers.push_str(buffer);
            }
            Some(_) => {}
        }
    }
    Ok(programs)
}

pub async fn captures(engine: &Engine) -> Result<Vec<CaptureAccount>, ReportError> {
    let sql = "SELECT path, frames, bytes, reason, complete FROM captures";
    let capture = |row: Vec<String>| CaptureAccount {
        path: row[0].clone(),
        frames: row[1].clone(),
        bytes: row[2].parse().unwrap_or(0),
        reason: row[3].clone(),
        complete: row[4] == "true",
    };
    Ok(query(engine, sql).await?.into_iter().map(capture).collect())
}

async fn clocks(engine: &Engine) -> Result<Vec<ClockAccount>, ReportError> {
    // Ticks have no fixed length: their own readings give it.
    let sql = "SELECT host, clock_a, clock_b, count(*), \
               CAST(approx_percentile_cont(a_after - a_before, 0.5) AS DOUBLE) / 2, \
               CAST(max(a_after - a_before) AS DOUBLE) / 2, \
               CAST(max(b) - min(b) AS DOUBLE) / nullif(CAST(max(a_before) - min(a_before) AS DOUBLE), 0), \
               max(flags) FROM clocks GROUP BY host, clock_a, clock_b ORDER BY host, clock_a, clock_b";
    let clock = |row: Vec<String>| {
        let number = |at: usize| row[at].parse::<f64>().ok();
        let scale = if row[1].contains("tick") { number(6) } else { Some(1.0) };
        let ns = |at: usize| Some(number(at)? * scale?);
        ClockAccount {
            host: row[0].clone(),
            pair: format!("{} – {}", row[1], row[2]),
            readings: row[3].parse().unwrap_or(0),
            typical: ns(4),
            worst: ns(5),
            distrusted: row[7].parse::<i64>().is_ok_and(|number| number & 1 == 1),
        }
    };
    Ok(query(engine, sql).await?.into_iter().map(clock).collect())
}
