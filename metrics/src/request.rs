//! Parses requests, and decides which are answered.

/// Most bytes of the head of a request.
pub(crate) const MAX_HEAD_BYTES: usize = 8 << 10;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;

/// The response to a request that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRefusal {
    /// The status code and its text.
    pub status: &'static str,
    /// The body.
    pub text: &'static str,
}

/// A request for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsRequest {
    /// Whether only the head of the response is wanted.
    pub head_only: bool,
}

const BAD: RequestRefusal =
    RequestRefusal { status: "400 Bad Request", text: "this is no request of HTTP/1.1\n" };
const LARGE: RequestRefusal = RequestRefusal {
    status: "431 Request Header Fields Too Large",
    text: "a request may have 64 headers and 8 KiB\n",
};
const METHOD: RequestRefusal =
    RequestRefusal { status: "405 Method Not Allowed", text: "only GET and HEAD are answered\n" };
const ABSENT: RequestRefusal =
    RequestRefusal { status: "404 Not Found", text: "metrics are at /metrics\n" };
const MISDIRECTED: RequestRefusal = RequestRefusal {
    status: "421 Misdirected Request",
    text: "on a loopback address, ppt answers to localhost and to addresses of this machine only\n",
};
const FOREIGN: RequestRefusal = RequestRefusal {
    status: "403 Forbidden",
    text: "the page of another server asks for this; ppt answers to scrapers only\n",
};
pub(crate) const BUSY: RequestRefusal =
    RequestRefusal { status: "503 Service Unavailable", text: "too many connections are open\n" };
pub(crate) const NOT_YET: RequestRefusal =
    RequestRefusal { status: "503 Service Unavailable", text: "ppt has nothing to tell yet\n" };

/// Parses the received part of a request. `None` if its head is incomplete. `is_loopback`: only
/// requests from this machine are answered.
pub fn read(bytes: &[u8], is_loopback: bool) -> Option<Result<MetricsRequest, RequestRefusal>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(judge(&request, is_loopback)),
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD_BYTES => Some(Err(LARGE)),
        Ok(httparse::Status::Partial) => None,
        Err(httparse::Error::TooManyHeaders) => Some(Err(LARGE)),
        Err(_) => Some(Err(BAD)),
    }
}

fn judge(
    request: &httparse::Request<'_, '_>,
    is_loopback: bool,
) -> Result<MetricsRequest, RequestRefusal> {
    let named = |name: &'static str| {
        let headers =
            request.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        headers.map(|header| header.value)
    };
    let mut hosts = named("host");
    // A foreign DNS name that resolves to this machine appears in `Host`.
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host,
        (None, _) if request.version == Some(0) => b"localhost",
        _ => return Err(BAD),
    };
    if is_loopback && !is_own(host) {
        return Err(MISDIRECTED);
    }
    // No scraper sends these. A foreign web page must not even learn that this server exists.
    let is_foreign = |site: &[u8]| matches!(site, b"cross-site" | b"same-site");
    if named("origin").next().is_some() || named("sec-fetch-site").any(is_foreign) {
        return Err(FOREIGN);
    }
    let path = request.path.unwrap_or_default();
    if path.split('?').next() != Some("/metrics") {
        return Err(ABSENT);
    }
    match request.method {
        Some("GET") => Ok(MetricsRequest { head_only: false }),
        Some("HEAD") => Ok(MetricsRequest { head_only: true }),
        _ => Err(METHOD),
    }
}

/// Whether a host is a name or address of this machine that no one else can redirect. Any port is
/// allowed, because a tunnel has another one.
fn is_own(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = without_port.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address: Option<std::net::IpAddr> = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().map(Into::into).ok(),
        None => without_port.parse::<std::net::Ipv4Addr>().map(Into::into).ok(),
    };
    let is_loopback = |addr: std::net::IpAddr| addr.to_canonical().is_loopback();
    without_port.eq_ignore_ascii_case("localhost") || address.is_some_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str) -> Option<Result<MetricsRequest, &'static str>> {
        let read = read(format!("{head}\r\n\r\n").as_bytes(), true);
        read.map(|result| result.map_err(|refusal| &refusal.status[..3]))
    }

    #[test]
    fn metrics_are_all_that_there_is() {
        let get = |path: &str| asked(&format!("GET {path} HTTP/1.1\r\nHost: localhost:1")).unwrap();
        assert_eq!(get("/metrics"), Ok(MetricsRequest { head_only: false }));
        assert_eq!(get("/metrics?name[]=up"), Ok(MetricsRequest { head_only: false }));
        assert_eq!(get("/"), Err("404"));
        assert_eq!(get("/metrics/../../etc/passwd"), Err("404"));
        let head = asked("HEAD /metrics HTTP/1.1\r\nhost: [::1]:9464").unwrap();
        assert_eq!(head, Ok(MetricsRequest { head_only: true }));
        assert_eq!(asked("POST /metrics HTTP/1.1\r\nHost: 127.0.0.1").unwrap(), Err("405"));
        assert_eq!(asked("GET /metrics HTTP/1.0"), Some(Ok(MetricsRequest { head_only: false })));
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        let of_host = |host: &str| asked(&format!("GET /metrics HTTP/1.1\r\nHost: {host}"));
        for own in ["localhost", "LOCALHOST:8080", "127.0.0.1:9464", "127.9.8.7", "[::1]"] {
            assert!(of_host(own).unwrap().is_ok(), "{own}");
        }
        for other in
            ["evil.example:9464", "127.0.0.1.evil.example", "10.0.0.1", "[::2]:1", "", "::1"]
        {
            assert_eq!(of_host(other).unwrap(), Err("421"), "{other}");
        }
        let two = asked("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: localhost");
        assert_eq!(two.unwrap(), Err("400"));
        assert_eq!(asked("GET /metrics HTTP/1.1").unwrap(), Err("400"));
        let anywhere = read(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", false);
        assert!(anywhere.unwrap().is_ok(), "the name of this machine is not known");
    }

    #[test]
    fn pages_of_others_are_not_answered() {
        let with = |header: &str| {
            asked(&format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{header}")).unwrap()
        };
        assert_eq!(with("Origin: http://evil.example"), Err("403"));
        assert_eq!(with("Origin: null"), Err("403"));
        assert_eq!(with("Sec-Fetch-Site: cross-site"), Err("403"));
        assert!(with("Sec-Fetch-Site: none").is_ok(), "somebody typed the address");
    }

    #[test]
    fn what_is_too_large_or_no_request_is_refused() {
        assert_eq!(read(b"GET /metrics HT", true), None);
        assert_eq!(read(b"\x16\x03\x01\x02\x00\x01", true), Some(Err(BAD)));
        let many = "a: b\r\n".repeat(MAX_HEADERS + 1);
        let many = asked(&format!("GET /metrics HTTP/1.1\r\n{many}Host: localhost"));
        assert_eq!(many, Some(Err("431")));
        let endless = format!("GET /metrics HTTP/1.1\r\nx: {}", "y".repeat(MAX_HEAD_BYTES));
        assert_eq!(read(endless.as_bytes(), true), Some(Err(LARGE)));
    }
}
