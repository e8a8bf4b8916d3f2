//! Repeats requests to an object store that does not answer for a while.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::error::DeliveryError;
use crate::object_client::ClientError;

/// The first pause before a request is repeated. Each pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The shortest outage that is reported.
const MIN_REPORTED: Duration = Duration::from_secs(1);
/// The longest outage after a request to stop.
const MAX_STOPPING: Duration = Duration::from_secs(5);
/// The interval at which requests to stop are noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Receives outages, and limits their duration.
pub trait OutageWatch: Send + Sync {
    /// The longest outage. A longer one ends the delivery.
    fn limit(&self) -> Duration;
    /// Requests have failed for a second because of `cause`, and are repeated.
    fn began(&self, cause: &str);
    /// Requests succeed again, `after` this time.
    fn ended(&self, after: Duration);
    /// Whether a person or another process asked to stop.
    fn is_stopped(&self) -> bool;
}

/// The answer to a request. None if no answer came for [`MAX_STOPPING`] after a request to stop.
async fn answer<T>(watch: &dyn OutageWatch, request: impl Future<Output = T>) -> Option<T> {
    let mut request = std::pin::pin!(request);
    let mut stopped: Option<Instant> = None;
    loop {
        if let Ok(answer) = tokio::time::timeout(POLL_INTERVAL, request.as_mut()).await {
            return Some(answer);
        }
        if watch.is_stopped()
            && stopped.get_or_insert_with(Instant::now).elapsed() >= MAX_STOPPING.min(watch.limit())
        {
            return None;
        }
    }
}

/// Repeats a request, with growing pauses, until the store answers. Errors show the `name` of the object.
pub(crate) async fn persist<T, F: Future<Output = Result<T, ClientError>>>(
    watch: &dyn OutageWatch,
    name: &str,
    mut request: impl FnMut() -> F,
) -> Result<Result<T, ClientError>, DeliveryError> {
    let mut since: Option<Instant> = None;
    let mut is_reported = false;
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(answer) = answer(watch, request()).await else {
            let after = since.map_or(MAX_STOPPING, |since| since.elapsed());
            let cause = "it has not answered".to_owned();
            return Err(DeliveryError::StoreAway { name: name.to_owned(), after, cause });
        };
        let cause = match answer {
            Err(ClientError::Away(cause)) => cause,
            done => {
                if let Some(since) = since.filter(|_| is_reported) {
                    watch.ended(since.elapsed());
                }
                return Ok(done);
            }
        };
        let since = *since.get_or_insert_with(Instant::now);
        let begun = Instant::now();
        while begun.elapsed() < pause {
            if !is_reported && since.elapsed() >= MIN_REPORTED.min(watch.limit()) {
                watch.began(&cause);
                is_reported = true;
            }
            let limit = if watch.is_stopped() { MAX_STOPPING } else { watch.limit() };
            if since.elapsed() >= limit.min(watch.limit()) {
                let (name, after) = (name.to_owned(), since.elapsed());
                return Err(DeliveryError::StoreAway { name, after, cause });
            }
            tokio::time::sleep(POLL_INTERVAL.min(pause)).await;
        }
        pause = MAX_PAUSE.min(2 * pause);
    }
}
