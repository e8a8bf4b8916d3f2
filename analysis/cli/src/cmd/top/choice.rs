//! The user's choice of rows, order and details.

use ratatui_core::style::{Color, Style};

/// Selection and order of a picture.
pub(super) struct Choice {
    pub page: Page,
    pub sort: Sort,
    /// Text that names must contain.
    pub filter: String,
    /// Index of the chosen row among those that are shown.
    pub row: usize,
    /// Whether the chosen row shows details.
    pub open: bool,
    pub colours: bool,
}

/// The kind of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Frames,
    Threads,
}

/// The sort order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Rate,
    Count,
    P99,
    Lost,
    Name,
}

impl Choice {
    /// Colours, unless they are disabled.
    pub fn style(&self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }
}

impl Page {
    /// All sort orders, as the key cycles through them.
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
