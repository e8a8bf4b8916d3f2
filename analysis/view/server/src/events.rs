//! `/v1/events`: changes of a session as server-sent events.

use std::time::Duration;

use serde_json::json;

use crate::body::{HttpAnswer, pieces};
use crate::session::{SessionState, ViewSession};

/// The interval of lines without an event, which show that the server runs.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The shortest interval between events.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Sends the events of a session: `progress` {done, total}; `built` {view}; `grown` {view};
/// `trouble` {text}; `ended` {}.
pub(crate) fn events(session: &ViewSession) -> HttpAnswer {
    let (answer, pieces) = pieces("text/event-stream");
    let mut news = session.news();
    tokio::spawn(async move {
        let mut sent = SessionState { view: news.borrow().view, ..SessionState::default() };
        loop {
            let now = news.borrow_and_update().clone();
            let mut text = lines(&sent, &now);
            sent = now;
            if text.is_empty() {
                text.push_str(": quiet\n\n");
            }
            if !pieces.send(text.into()).await {
                return;
            }
            tokio::time::sleep(MIN_INTERVAL).await;
            // An error of the channel means that the server ends.
            if let Ok(Err(_)) = tokio::time::timeout(KEEP_ALIVE, news.changed()).await {
                return;
            }
        }
    });
    answer
}

/// The events for the changes between two states.
fn lines(before: &SessionState, now: &SessionState) -> String {
    let mut events = Vec::new();
    if now.view != before.view {
        events.push(("grown", json!({ "view": now.view })));
    }
    if now.progress != before.progress {
        let ppt_view::Progress { done, frames } = now.progress;
        events.push(("progress", json!({ "done": done, "total": frames })));
    }
    if now.built && (!before.built || now.view != before.view) {
        events.push(("built", json!({ "view": now.view })));
    }
    for text in now.troubles.iter().skip(before.troubles.len()) {
        events.push(("trouble", json!({ "text": text })));
    }
    if now.ended && !before.ended {
        events.push(("ended", json!({})));
    }
    events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
}

#[cfg(test)]
mod tests {
    use ppt_view::Progress;

    use super::*;

    #[test]
    fn only_changes_are_told() {
        let before = SessionState::default();
        assert_eq!(lines(&before, &before), "");
        let progress = Progress { done: 5, frames: 9 };
        let now = SessionState {
            view: 1,
            progress,
            built: true,
            ended: true,
            troubles: vec!["x\ny".into()],
        };
        let expected = "event: grown\ndata: {\"view\":1}\n\n\
                        event: progress\ndata: {\"done\":5,\"total\":9}\n\n\
                        event: built\ndata: {\"view\":1}\n\n\
                        event: trouble\ndata: {\"text\":\"x\\ny\"}\n\n\
                        event: ended\ndata: {}\n\n";
        assert_eq!(lines(&before, &now), expected);
        assert_eq!(lines(&now, &now), "");
    }
}
