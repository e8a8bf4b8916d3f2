//! Access control: refuses requests, and adds protecting headers to answers.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};

use crate::error::HttpRefusal;
use crate::token::Token;

/// The headers of every answer. They allow scripts and styles of this server alone, forbid frames around the
/// page, and forbid caching.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
    ),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Adds the headers of every answer.
pub(crate) fn protect(headers: &mut HeaderMap) {
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
}

/// The addresses of this server, and its token.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    hosts: [String; 2],
    token: Token,
}

impl Guard {
    pub fn new(port: u16, token: Token) -> Guard {
        Guard { hosts: ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}")), token }
    }

    /// Refuses requests that do not come from the page of this server. `Host` reveals a foreign name that
    /// points here by DNS, `Origin` a foreign page.
    pub fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let is_own = |host: &[u8]| self.hosts.iter().any(|own| own.as_bytes() == host);
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(misdirected());
        };
        if !is_own(host.as_bytes()) {
            return Err(misdirected());
        }
        for origin in headers.get_all(header::ORIGIN) {
            let host = origin.as_bytes().strip_prefix(b"http://");
            if !host.is_some_and(is_own) {
                return Err(foreign());
            }
        }
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_foreign = matches!(site, Some(b"cross-site" | b"same-site"));
        // A link on another page may open the page, which has no data.
        let is_link = *method == Method::GET
            && headers.get("sec-fetch-mode").map(HeaderValue::as_bytes) == Some(b"navigate");
        if is_foreign && !is_link {
            return Err(foreign());
        }
        Ok(())
    }

    /// Refuses requests without the token.
    pub fn authorize(&self, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let authorization = headers.get(header::AUTHORIZATION);
        if authorization.is_some_and(|value| self.token.admits(value.as_bytes())) {
            return Ok(());
        }
        let text = "the token is missing or wrong: open the address that `ppt view` printed";
        Err(HttpRefusal::new(StatusCode::UNAUTHORIZED, text))
    }
}

fn misdirected() -> HttpRefusal {
    let text = "this server answers to 127.0.0.1 and localhost only: open the address that `ppt view` printed";
    HttpRefusal::new(StatusCode::MISDIRECTED_REQUEST, text)
}

fn foreign() -> HttpRefusal {
    HttpRefusal::new(StatusCode::FORBIDDEN, "this server answers to its own page only")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, pairs: &[(&'static str, &str)]) -> Result<(), StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        let guard = Guard::new(4711, Token::random().unwrap());
        guard.admit(&method, &headers).map_err(|refusal| refusal.status)
    }

    #[test]
    fn only_the_own_page_is_answered() {
        let own = ("host", "127.0.0.1:4711");
        assert_eq!(asked(Method::GET, &[own]), Ok(()));
        assert_eq!(asked(Method::GET, &[("host", "localhost:4711")]), Ok(()));
        let origin = ("origin", "http://127.0.0.1:4711");
        assert_eq!(asked(Method::POST, &[own, origin, ("sec-fetch-site", "same-origin")]), Ok(()));
        let misdirected = Err(StatusCode::MISDIRECTED_REQUEST);
        assert_eq!(asked(Method::GET, &[]), misdirected);
        for host in
            ["127.0.0.1", "127.0.0.1:80", "evil.example:4711", "127.0.0.1:4711.evil.example"]
        {
            assert_eq!(asked(Method::GET, &[("host", host)]), misdirected, "{host}");
        }
        assert_eq!(asked(Method::GET, &[own, own]), misdirected);
        let foreign = Err(StatusCode::FORBIDDEN);
        for origin in
            ["null", "http://evil.example", "https://127.0.0.1:4711", "http://127.0.0.1:1"]
        {
            assert_eq!(asked(Method::POST, &[own, ("origin", origin)]), foreign, "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            let site = ("sec-fetch-site", site);
            assert_eq!(asked(Method::POST, &[own, site]), foreign);
            assert_eq!(asked(Method::POST, &[own, site, ("sec-fetch-mode", "navigate")]), foreign);
            assert_eq!(asked(Method::GET, &[own, site, ("sec-fetch-mode", "no-cors")]), foreign);
            assert_eq!(asked(Method::GET, &[own, site, ("sec-fetch-mode", "navigate")]), Ok(()));
        }
    }
}
