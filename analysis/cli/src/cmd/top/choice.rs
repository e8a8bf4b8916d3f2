//! What was chosen to be shown, and how.

use ratatui_core::style::{Color, Style};

/// What is shown of a picture.
pub(super) struct Choice {
    pub page: Page,
    pub sort: Sort,
    /// What names have in them.
    pub filter: String,
    /// The row that is chosen, among those that are shown.
    pub row: usize,
    /// Whether the chosen row shows more.
    pub open: bool,
    pub colours: bool,
}

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Frames,
    Threads,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Rate,
    Count,
    P99,
    Lost,
    Name,
}

impl Choice {
    /// Colours, unless they are not wanted.
    pub fn style(&self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }
}

impl Page {
    /// In the order of the key.
    pub fn sorts(self) -> &'static [Sort] {
        match self {
            Page::Frames => &[Sort::Rate, Sort::Count, Sort::P99, Sort::Name],
            Page::Threads => &[Sort::Rate, Sort::Count, Sort::Lost, Sort::Name],
        }
    }
}

impl Sort {
    pub fn word(self) -> &'static str {
        match self {
            Sort::Rate => "rate",
            Sort::Count => "count",
            Sort::P99 => "p99",
            Sort::Lost => "lost",
            Sort::Name => "name",
        }
    }
}
