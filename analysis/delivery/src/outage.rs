//! An object store that does not answer for a while.

use std::future::Future;
use std::time::{Duration, Instant};

use object_store::Error;

use crate::error::DeliveryError;

/// The first pause before a request is repeated; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// What is shorter is not worth a word.
const BRIEF: Duration = Duration::from_secs(1);
/// How long an outage may be once somebody asked to stop.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often is looked whether somebody asks to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Receives outages, and decides how long one may be.
pub trait OutageWatch: Send + Sync {
    /// How long an outage may be until the delivery gives up.
    fn limit(&self) -> Duration;
    /// Requests have failed for a second, by this cause, and are repeated.
    fn began(&self, cause: &str);
    /// Requests succeed again, after so long.
    fn ended(&self, after: Duration);
    /// Whether somebody asked to stop.
    fn is_stopped(&self) -> bool;
}

/// Whether a request may succeed later. What the store refuses is not among that.
fn is_outage(error: &Error) -> bool {
    let Error::Generic { .. } = error else { return false };
    let text = error.to_string();
    let is_refused = text.contains("status code: 4") && !text.contains("<Code>ExpiredToken</Code>");
    // What is wrong with the settings does not pass; the client repeats neither.
    let is_busy = ["status code: 408", "status code: 429"].iter().any(|code| text.contains(code));
    let is_elsewhere =
        text.contains("incorrectly configured region") || text.contains("status code: 3");
    !(is_refused && !is_busy || is_elsewhere || is_unknown(error))
}

/// Whether the store does not know what was asked for.
pub(crate) fn is_unknown(error: &Error) -> bool {
    match error {
        Error::NotImplemented { .. } => true,
        error => error.to_string().contains("status code: 501"),
    }
}

/// What an error says, on one line.
pub(crate) fn told(error: &Error) -> String {
    const LONGEST: usize = 400;
    let mut texts = vec![error.to_string()];
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Many say what their cause says.
        if texts.iter().all(|known| !known.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    let text = texts.join(": ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The answer to a request. `None`: somebody asked to stop, and none came for [`FAREWELL`].
async fn answer<T>(watch: &dyn OutageWatch, request: impl Future<Output = T>) -> Option<T> {
    let mut request = std::pin::pin!(request);
    let mut stopped: Option<Instant> = None;
    loop {
        if let Ok(answer) = tokio::time::timeout(POLL_INTERVAL, request.as_mut()).await {
            return Some(answer);
        }
        if watch.is_stopped()
            && stopped.get_or_insert_with(Instant::now).elapsed() >= FAREWELL.min(watch.limit())
        {
            return None;
        }
    }
}

/// Repeats a request until the store answers, with pauses that grow. `name` is what it is about.
pub(crate) async fn persist<T, F: Future<Output = Result<T, Error>>>(
    watch: &dyn OutageWatch,
    name: &str,
    mut request: impl FnMut() -> F,
) -> Result<Result<T, Error>, DeliveryError> {
    let mut since: Option<Instant> = None;
    let mut is_told = false;
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(answer) = answer(watch, request()).await else {
            let after = since.map_or(FAREWELL, |since| since.elapsed());
            let cause = "it has not answered".to_owned();
            return Err(DeliveryError::StoreAway { name: name.to_owned(), after, cause });
        };
        let error = match answer {
            Err(error) if is_outage(&error) => error,
            done => {
                if let Some(since) = since.filter(|_| is_told) {
                    watch.ended(since.elapsed());
                }
                return Ok(done);
            }
        };
        let cause = told(&error);
        let since = *since.get_or_insert_with(Instant::now);
        let begun = Instant::now();
        while begun.elapsed() < pause {
            if !is_told && since.elapsed() >= BRIEF.min(watch.limit()) {
                watch.began(&cause);
                is_told = true;
            }
            let limit = if watch.is_stopped() { FAREWELL } else { watch.limit() };
            if since.elapsed() >= limit.min(watch.limit()) {
                let (name, after) = (name.to_owned(), since.elapsed());
                return Err(DeliveryError::StoreAway { name, after, cause });
            }
            tokio::time::sleep(POLL_INTERVAL.min(pause)).await;
        }
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}
