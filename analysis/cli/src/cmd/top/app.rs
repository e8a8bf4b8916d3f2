//! The state of the screen, and the effects of keys.

use ppt_live::{CapturePhase, Picture};
use ppt_query::plain;
use ratatui_core::layout::{Constraint, Layout};
use ratatui_core::style::Style;
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_widgets::paragraph::Paragraph;

use super::choice::{Choice, Page, Sort};
use super::lines::{self, TextTable};

/// The state of the screen.
pub(super) struct App {
    /// The newest picture.
    newest: (Picture, CapturePhase),
    /// The picture at the time when the display was frozen.
    stopped: Option<(Picture, CapturePhase)>,
    choice: Choice,
    typing: bool,
    help: bool,
    message: Option<String>,
    /// First line of the table that is visible.
    top: usize,
}

/// An effect of a key outside of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    Save,
    /// Redraw everything: other programs may have written there.
    Redraw,
}

impl App {
    pub fn new(page: Page, filter: String, colours: bool) -> Self {
        App {
            newest: (Picture::default(), CapturePhase::Waiting),
            stopped: None,
            choice: Choice { page, sort: Sort::Rate, filter, row: 0, open: false, colours },
            typing: false,
            help: false,
            message: None,
            top: 0,
        }
    }

    /// Takes the newest picture, and makes its text harmless for terminals.
    pub fn show(&mut self, mut picture: Picture, phase: CapturePhase) {
        clean(&mut picture);
        let phase = match phase {
            CapturePhase::Ended(why) => CapturePhase::Ended(plain(&why)),
            CapturePhase::Failed(why) => CapturePhase::Failed(plain(&why)),
            other => other,
        };
        self.newest = (picture, phase);
    }

    /// The newest picture.
    pub fn newest(&self) -> &Picture {
        &self.newest.0
    }

    /// The picture that is drawn.
    pub fn picture(&self) -> &Picture {
        &self.stopped.as_ref().unwrap_or(&self.newest).0
    }

    /// Shows a message until a key is pressed.
    pub fn show_message(&mut self, text: String) {
        self.message = Some(plain(&text));
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        self.message = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Some(Wish::Quit);
        }
        if is_control && key.code == KeyCode::Char('l') {
            return Some(Wish::Redraw);
        }
        if self.typing {
            match key.code {
                KeyCode::Enter => self.typing = false,
                KeyCode::Esc => {
                    self.typing = false;
                    self.choice.filter.clear();
                }
                KeyCode::Backspace => {
                    self.choice.filter.pop();
                }
                KeyCode::Char(char) if !is_control && self.choice.filter.len() < 64 => {
                    self.choice.filter.push(char);
                }
                _ => {}
            }
            self.choice.row = 0;
            return None;
        }
        match key.code {
            KeyCode::Esc if self.help || self.choice.open => {
                (self.help, self.choice.open) = (false, false);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Char('w') => return Some(Wish::Save),
            KeyCode::Char('p' | ' ') => {
                self.stopped = match self.stopped.take() {
                    Some(_) => None,
                    None => Some(self.newest.clone()),
                };
            }
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('s') => {
                let all = self.choice.page.sorts();
                let next = all
                    .iter()
                    .position(|&sort| sort == self.choice.sort)
                    .map_or(0, |index| index + 1);
                self.choice.sort = all[next % all.len()];
            }
            KeyCode::Tab | KeyCode::Char('t') => {
                self.choice.page = match self.choice.page {
                    Page::Frames => Page::Threads,
                    Page::Threads => Page::Frames,
                };
                if !self.choice.page.sorts().contains(&self.choice.sort) {
                    self.choice.sort = Sort::Rate;
                }
                (self.choice.row, self.top) = (0, 0);
            }
            KeyCode::Enter => self.choice.open = !self.choice.open,
            KeyCode::Up | KeyCode::Char('k') => self.choice.row = self.choice.row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.choice.row += 1,
            KeyCode::PageUp => self.choice.row = self.choice.row.saturating_sub(10),
            KeyCode::PageDown => self.choice.row += 10,
            KeyCode::Home => self.choice.row = 0,
            KeyCode::End => self.choice.row = usize::MAX,
            _ => {}
        }
        None
    }

    /// The lines above the table.
    pub fn head(&self, width: u16) -> Vec<Line<'static>> {
        let (picture, phase) = self.stopped.as_ref().unwrap_or(&self.newest);
        lines::head(&self.choice, picture, phase, self.stopped.is_some(), width)
    }

    /// The rows.
    pub fn table(&self, width: u16) -> TextTable {
        match self.choice.page {
            Page::Frames => lines::frames(&self.choice, self.picture(), width),
            Page::Threads => lines::threads(&self.choice, self.picture(), width),
        }
    }

    fn foot(&self) -> Line<'static> {
        if let Some(message) = &self.message {
            return Line::from(message.clone());
        }
        if self.typing {
            return Line::from(format!("filter: {}▏  Enter: done  Esc: none", self.choice.filter));
        }
        let other = match self.choice.page {
            Page::Frames => "threads",
            Page::Threads => "frames",
        };
        let filter = match self.choice.filter.as_str() {
            "" => String::new(),
            filter => format!(" ({})", plain(filter)),
        };
        let keys = [
            ("q", " quit  ".to_owned()),
            ("s", format!(" sort: {}  ", self.choice.sort.word())),
            ("/", format!(" filter{filter}  ")),
            ("p", if self.stopped.is_some() { " go on  " } else { " pause  " }.to_owned()),
            ("Tab", format!(" {other}  ")),
            ("Enter", " values  ".to_owned()),
            ("w", " write  ".to_owned()),
            ("?", " help".to_owned()),
        ];
        let bold = Style::new().bold();
        let spans = keys.into_iter().flat_map(|(key, what)| [Span::styled(key, bold), what.into()]);
        Line::from(spans.collect::<Vec<_>>())
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let head = self.head(area.width);
        let rows =
            [Constraint::Length(head.len() as u16), Constraint::Min(0), Constraint::Length(1)];
        let [above, middle, below] = Layout::vertical(rows).areas(area);
        frame.render_widget(Paragraph::new(head), above);
        frame.render_widget(Paragraph::new(self.foot()), below);
        if self.help {
            return frame.render_widget(Paragraph::new(lines::help()), middle);
        }
        let table = self.table(area.width);
        // The chosen row stays visible.
        self.choice.row = self.choice.row.min(table.starts.len().saturating_sub(1));
        let table = self.table(area.width);
        let height = usize::from(middle.height).saturating_sub(1);
        let start = table.starts.get(self.choice.row).copied().unwrap_or(0);
        let end = table.starts.get(self.choice.row + 1).copied().unwrap_or(table.lines.len() - 1);
        if end > self.top + height {
            self.top = end - height;
        }
        self.top = self.top.min(start).min(table.lines.len().saturating_sub(height + 1));
        let mut lines = table.lines.into_iter();
        let names = lines.next();
        let shown = names.into_iter().chain(lines.skip(self.top).take(height));
        frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), middle);
    }
}

/// Makes text of a target harmless.
fn clean(picture: &mut Picture) {
    let each = |text: &mut String| *text = plain(text);
    each(&mut picture.host);
    picture.processes.iter_mut().for_each(|process| each(&mut process.1));
    for kind in &mut picture.kinds {
        each(&mut kind.buffer);
        each(&mut kind.name);
        for field in &mut kind.fields {
            each(&mut field.name);
            each(&mut field.unit);
            let words = field.words.iter_mut().flat_map(|sample| &mut sample.shares);
            words.for_each(|entry| each(&mut entry.0));
        }
    }
    for metric in &mut picture.metrics {
        each(&mut metric.buffer);
        each(&mut metric.name);
        each(&mut metric.unit);
    }
    for thread in &mut picture.threads {
        each(&mut thread.comm);
        thread.name.iter_mut().for_each(each);
        each(&mut thread.buffer);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
