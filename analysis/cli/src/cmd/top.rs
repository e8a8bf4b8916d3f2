//! `ppt top CAPTURE`: activity in a growing capture. `ppt top PID` attaches, and runs this with the
//! capture on stdin.

mod app;
mod choice;
mod lines;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ppt_live::{CaptureError, CapturePhase, LiveReader, Picture, Tally};
use ppt_output::{Output, Readers, Rules};
use ppt_query::text::grouped;
use ppt_text::exit::ExitStatus;
use ratatui_crossterm::crossterm::event::{self, Event, KeyEventKind};

use self::app::{App, Wish};
use self::choice::Page;
use self::screen::Screen;
use crate::args::TopOptions;
use crate::error::AnswerError;
use crate::message;

/// Interval between checks of keys and signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Columns of a table that is not written to a terminal.
const WIDTH: u16 = 100;

pub(crate) fn run(capture: &Path, options: &TopOptions) -> Result<ExitStatus, AnswerError> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let page = if options.threads { Page::Threads } else { Page::Frames };
    let mut app = App::new(page, options.filter.clone().unwrap_or_default(), colours);
    ppt_signals::end_work();
    if options.once {
        let (picture, phase) = once(capture, options)?;
        app.show(picture, phase);
        print(&app).map_err(AnswerError::writing("standard output"))?;
    } else {
        if !io::stdout().is_terminal() {
            return Err(AnswerError::Usage(
                "`ppt top` draws on a terminal, and standard output is none: --once prints a table"
                    .to_owned(),
            ));
        }
        let watch = open(capture, options.keep)?;
        // Until then, the terminal belongs to the program that fills the pipe.
        while is_stream(capture) && watch.look().1 == CapturePhase::Waiting {
            pause()?;
        }
        if let (_, CapturePhase::Failed(why)) = watch.look() {
            return Err(AnswerError::Watch(name(capture), why));
        }
        if watch.look().1 != CapturePhase::Cut || watch.look().0.captured > 0 {
            watch_it(options, &watch, &mut app)?;
        }
    }
    Ok(end(app.newest(), options.once))
}

fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name(path: &Path) -> String {
    if is_stream(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn open(path: &Path, keep: usize) -> Result<LiveReader, AnswerError> {
    LiveReader::start(path, keep).map_err(|error| cannot(path, error))
}

fn cannot(path: &Path, error: CaptureError) -> AnswerError {
    AnswerError::Capture(name(path), error)
}

/// Waits a moment, unless a signal ends the command.
fn pause() -> Result<(), AnswerError> {
    if ppt_signals::came() {
        return Err(ppt_query::QueryError::Cancelled.into());
    }
    thread::sleep(POLL_INTERVAL / 5);
    Ok(())
}

/// The whole file, or a stream for a while.
fn once(path: &Path, options: &TopOptions) -> Result<(Picture, CapturePhase), AnswerError> {
    if !is_stream(path) && path.is_file() {
        // A signal leaves nothing behind.
        ppt_signals::end_the_program();
        let tally = Tally::from_capture(path).map_err(|error| cannot(path, error))?;
        return Ok((tally.picture(tally.last()), tally.phase()));
    }
    let watch = open(path, 0)?;
    let mut since = None;
    loop {
        let (picture, phase) = watch.look();
        match phase {
            CapturePhase::Waiting => {}
            CapturePhase::Running => {
                let began: &mut Instant = since.get_or_insert_with(Instant::now);
                if began.elapsed() >= options.every() {
                    return Ok((picture, phase));
                }
            }
            CapturePhase::Failed(why) => return Err(AnswerError::Watch(name(path), why)),
            CapturePhase::Ended(_) | CapturePhase::Unended | CapturePhase::Cut => {
                return Ok((picture, phase));
            }
        }
        pause()?;
    }
}

fn print(app: &App) -> io::Result<()> {
    let width =
        ratatui_crossterm::crossterm::terminal::size().map_or(WIDTH, |size| size.0.max(WIDTH));
    let mut out = io::stdout().lock();
    for line in app.head(width).iter().chain(&app.table(width).lines) {
        writeln!(out, "{}", line.to_string().trim_end())?;
    }
    out.flush()
}

/// Draws until the user quits.
fn watch_it(options: &TopOptions, watch: &LiveReader, app: &mut App) -> Result<(), AnswerError> {
    let failed = |error| AnswerError::System("draw on the terminal", error);
    let mut screen = Screen::open().map_err(failed)?;
    let mut next = Instant::now();
    loop {
        if next <= Instant::now() {
            let (picture, phase) = watch.look();
            app.show(picture, phase);
            next = Instant::now() + options.every();
        }
        screen.draw(app).map_err(failed)?;
        loop {
            if ppt_signals::came() {
                return Err(ppt_query::QueryError::Cancelled.into());
            }
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if !event::poll(left.min(POLL_INTERVAL)).map_err(failed)? {
                continue;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match app.key(key) {
                    Some(Wish::Quit) => return Ok(()),
                    Some(Wish::Save) => {
                        let message = save(watch);
                        app.show_message(message.unwrap_or_else(|failure| failure.to_string()));
                    }
                    Some(Wish::Redraw) => screen.clear().map_err(failed)?,
                    None => {}
                },
                Event::Resize(..) => screen.clear().map_err(failed)?,
                _ => continue,
            }
            break;
        }
    }
}

/// Writes the latest frames as a capture, and returns its name.
fn save(watch: &LiveReader) -> Result<String, AnswerError> {
    let latest = watch.latest();
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let path = PathBuf::from(format!("top-{}.bin", now.replace(':', "").trim_end_matches('Z')));
    let rules = Rules { force: false, readers: Readers::Owner, inputs: Vec::new(), invoker: None };
    let mut output = Output::open(&path, &rules)?;
    let name = output.name();
    let tool = concat!("ppt ", env!("CARGO_PKG_VERSION"));
    latest.write(output.file(), tool).map_err(AnswerError::writing(&name))?;
    output.publish()?;
    Ok(format!("the latest {} frames are in {name}", grouped(latest.frames())))
}

/// The state of the capture, and the exit status.
fn end(picture: &Picture, once: bool) -> ExitStatus {
    let missing = picture.missing_in_all();
    if !once {
        let seconds = ppt_query::text::duration(picture.elapsed as f64);
        let lost = match missing {
            0 => "nothing lost".to_owned(),
            missing => format!("{} missing", grouped(missing)),
        };
        message::note(format_args!("{} frames in {seconds}, {lost}", grouped(picture.captured)));
    }
    match picture.damages {
        0 => ExitStatus::DONE,
        damages => {
            message::warning("damaged", format_args!("{} damaged places", grouped(damages)));
            ExitStatus::FAILED
        }
    }
}
