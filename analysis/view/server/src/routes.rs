//! Routes requests to their answers.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde::de::DeserializeOwned;

use crate::assets::asset;
use crate::body::{HttpAnswer, json, refused, whole};
use crate::error::HttpRefusal;
use crate::guard::{Guard, protect};
use crate::session::{Sessions, ViewSession};
use crate::{
    about, compare, edges, events, export, filter, find, frame, layers, panels, paths, sql, why,
    window,
};

/// The most bytes of a request.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The longest time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The answer to a request, with the headers that protect the page.
pub(crate) async fn answer(
    sessions: Arc<Sessions>,
    guard: Arc<Guard>,
    request: Request<Incoming>,
) -> HttpAnswer {
    let found = route(&sessions, &guard, request).await;
    let mut answer = found.unwrap_or_else(|refusal| refused(&refusal));
    protect(answer.headers_mut());
    answer
}

async fn route(
    sessions: &Sessions,
    guard: &Guard,
    request: Request<Incoming>,
) -> Result<HttpAnswer, HttpRefusal> {
    guard.admit(request.method(), request.headers())?;
    let mut path = request.uri().path().to_owned();
    if let Some(asset) = asset(&path) {
        allow(&request, &Method::GET)?;
        return Ok(whole(asset.media_type, asset.bytes));
    }
    if !path.starts_with("/v1/") {
        return Err(not_found());
    }
    guard.authorize(request.headers())?;
    let mut session: &Arc<ViewSession> = &sessions.first;
    if let Some(rest) = path.strip_prefix("/v1/second/") {
        session = sessions.second.as_ref().ok_or_else(not_found)?;
        path = format!("/v1/{rest}");
    }
    Ok(match path.as_str() {
        "/v1/about" => {
            allow(&request, &Method::GET)?;
            json(&about::about(session, sessions.count())?)
        }
        "/v1/compare" => {
            allow(&request, &Method::POST)?;
            let other = sessions.second.as_ref().ok_or_else(not_found)?;
            json(&compare::compare([&sessions.first, other], &asked(request).await?).await?)
        }
        "/v1/panels" => {
            allow(&request, &Method::GET)?;
            json(&panels::panels())
        }
        "/v1/events" => {
            allow(&request, &Method::GET)?;
            events::events(session)
        }
        "/v1/window" => window::window(session, &asked(request).await?)?,
        "/v1/lengths" => window::lengths(session, &asked(request).await?)?,
        "/v1/frame" => json(&frame::frame(session, &asked(request).await?)?),
        "/v1/entry" => json(&layers::entry(session, &asked(request).await?).await?),
        "/v1/edges" => json(&edges::edges(session, &asked(request).await?).await?),
        "/v1/export" => export::export(session, &asked(request).await?).await?,
        "/v1/points" => {
            allow(&request, &Method::GET)?;
            json(&paths::points(session).await?)
        }
        "/v1/paths" => json(&paths::paths(session, &asked(request).await?).await?),
        "/v1/why" => json(&why::why(session, &asked(request).await?).await?),
        "/v1/filter" => json(&filter::filter(session, &asked(request).await?).await?),
        "/v1/find" => json(&find::find(session, &asked(request).await?).await?),
        "/v1/sql" => json(&sql::sql(session, &asked(request).await?).await?),
        "/v1/panel" => json(&panels::panel(session, &asked(request).await?).await?),
        _ => return Err(not_found()),
    })
}

fn not_found() -> HttpRefusal {
    HttpRefusal::new(StatusCode::NOT_FOUND, "there is nothing here: the page is at /")
}

fn allow(request: &Request<Incoming>, method: &Method) -> Result<(), HttpRefusal> {
    if request.method() == method {
        Ok(())
    } else {
        Err(HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("only {method} here")))
    }
}

/// The body of a POST request, parsed as JSON.
async fn asked<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, HttpRefusal> {
    allow(&request, &Method::POST)?;
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect();
    let body = tokio::time::timeout(BODY_TIMEOUT, body).await;
    let late =
        |_| HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, "the request did not come to its end");
    let body = body.map_err(late)?;
    let body = body.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "a request has 1 MiB at most")
        } else {
            HttpRefusal::bad(error.to_string())
        }
    })?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| HttpRefusal::bad(error.to_string()))
}
