//! Bodies of answers, sent as a whole or in pieces.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::error::HttpRefusal;

/// The answer to a request.
pub(crate) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// The most pieces that wait for a slow reader.
const MAX_WAITING_PIECES: usize = 4;
/// The longest time that a reader may take for a piece.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// An answer that is sent as a whole.
pub(crate) fn whole(media_type: &'static str, bytes: impl Into<Bytes>) -> HttpAnswer {
    let mut answer = Response::new(Full::new(bytes.into()).boxed());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// An answer in JSON.
pub(crate) fn json(value: &impl Serialize) -> HttpAnswer {
    match serde_json::to_vec(value) {
        Ok(bytes) => whole("application/json", bytes),
        Err(error) => {
            refused(&HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        }
    }
}

/// The answer to a refused request: the status, and its text as JSON.
pub(crate) fn refused(refusal: &HttpRefusal) -> HttpAnswer {
    let text = serde_json::json!({ "error": refusal.text }).to_string();
    let mut answer = whole("application/json", text);
    *answer.status_mut() = refusal.status;
    answer
}

/// An answer that is sent in pieces, and the sender of its pieces.
pub(crate) fn pieces(media_type: &'static str) -> (HttpAnswer, Pieces) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_PIECES);
    let gone = Arc::new(AtomicBool::new(false));
    let body = PieceBody { receiver, gone: gone.clone() };
    let mut answer = Response::new(body.boxed());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    (answer, Pieces { sender, gone })
}

/// Sends the pieces of an answer.
pub(crate) struct Pieces {
    sender: mpsc::Sender<Bytes>,
    /// Whether the reader has closed the connection.
    gone: Arc<AtomicBool>,
}

impl Pieces {
    /// True once the reader has closed the connection.
    pub fn gone(&self) -> &Arc<AtomicBool> {
        &self.gone
    }

    /// Waits until the reader closes the connection.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Sends a piece. False if the reader is gone or takes too long.
    pub async fn send(&self, piece: Bytes) -> bool {
        let sent = tokio::time::timeout(READ_TIMEOUT, self.sender.send(piece)).await;
        matches!(sent, Ok(Ok(())))
    }
}

struct PieceBody {
    receiver: mpsc::Receiver<Bytes>,
    gone: Arc<AtomicBool>,
}

impl Body for PieceBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.receiver.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Drop for PieceBody {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}
