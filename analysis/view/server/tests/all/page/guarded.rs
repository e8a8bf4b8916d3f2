//! Access of foreign pages in a real browser.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{shop, shown};

/// A foreign page on this machine that has the token.
fn other_page(html: String) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // It ends with the tests.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{html}", html.len());
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_page_of_somebody_else_reads_nothing() {
    let (bytes, _) = shop(&Shop { frames: 900, threads: 2, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::empty(800, 600) else { return };
    let (to, token) = (shown.server.address(), shown.server.token().text().to_owned());
    for host in ["127.0.0.1", "rebound.test"] {
        let html = format!(
            "<!doctype html><script>
            const to = 'http://{host}:{port}', headers = {{ authorization: 'Bearer {token}' }};
            const outcome = (answer) => answer.then((it) => `read: ${{it.status ?? 'loaded'}}`, () => 'nothing');
            const loaded = (tag, name) => new Promise((done, failed) => {{
                const node = Object.assign(document.createElement(tag), {{ onload: done, onerror: failed }});
                node[name] = to + (tag === 'script' ? '/m/text.js' : tag === 'link' ? '/view.css' : '/icon.svg');
                node.rel = 'stylesheet';
                document.head.append(node);
            }});
            const open = (make) => new Promise((done, failed) => Object.assign(make(), {{ onopen: done, onerror: failed }}));
            window.answers = Promise.all([
                outcome(fetch(to + '/v1/about', {{ headers }})),
                outcome(fetch(to + '/v1/about')),
                outcome(fetch(to + '/')),
                outcome(fetch(to + '/v1/sql', {{ method: 'POST', headers, body: '{{\"sql\":\"SELECT 1\"}}' }})),
                outcome(fetch(to + '/v1/sql', {{ method: 'POST', body: '{{\"sql\":\"SELECT 1\"}}' }})),
                outcome(import(to + '/m/text.js')),
                outcome(loaded('script', 'src')), outcome(loaded('img', 'src')), outcome(loaded('link', 'href')),
                outcome(open(() => new EventSource(to + '/v1/events'))),
                outcome(open(() => new WebSocket(to.replace('http', 'ws') + '/v1/events'))),
            ]);
            const frame = document.createElement('iframe');
            frame.src = to + '/';
            addEventListener('load', () => document.body.append(frame));
            </script><body>",
            port = to.port()
        );
        browser.navigate(&other_page(html));
        browser.wait_for("document.querySelector('iframe') !== null");
        let answers = browser.value("window.answers");
        assert_eq!(answers, serde_json::json!(vec!["nothing"; 11]), "{host}");
        browser.wait_for("document.querySelector('iframe').contentDocument === null");
    }
    assert!(
        browser.complaints.iter().any(|one| one.contains("frame-ancestors")),
        "{:?}",
        browser.complaints
    );
    // The page itself reads all of it.
    let mut own = Browser::open(&shown.server.url(), 800, 600).unwrap();
    let headers = format!("{{ headers: {{ authorization: 'Bearer {token}' }} }}");
    assert_eq!(own.value(&format!("fetch('/v1/about', {headers}).then((it) => it.status)")), 200);
}

/// A foreign name that points to this machine (DNS rebinding).
#[test]
fn another_name_of_this_machine_is_refused() {
    let (bytes, _) = shop(&Shop { frames: 900, threads: 2, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::empty(800, 600) else { return };
    let (port, token) = (shown.server.address().port(), shown.server.token().text().to_owned());
    browser.navigate(&format!("http://rebound.test:{port}/#token={token}"));
    browser.wait_for("location.hostname === 'rebound.test' && document.readyState === 'complete'");
    let said = browser.text("document.body.innerText");
    assert!(said.contains("this server answers to 127.0.0.1 and localhost only"), "{said}");
    let headers = format!("{{ headers: {{ authorization: 'Bearer {token}' }} }}");
    for path in ["/v1/about", "/", "/m/main.js"] {
        let status = browser.value(&format!("fetch('{path}', {headers}).then((it) => it.status)"));
        assert_eq!(status, 421, "{path}");
    }
}
