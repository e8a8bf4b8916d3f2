//! More pages than connections.

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{shop, shown};

/// A browser has six connections to a server, and each page listens. Ten tabs, or fifty with PPT_LONG=1.
#[test]
fn more_tabs_than_connections_are_answered() {
    let (bytes, captured) = shop(&Shop { frames: 900, threads: 2, ..Shop::default() });
    let shown = shown(&bytes);
    let Some(mut browser) = Browser::open(&shown.server.url(), 800, 600) else { return };
    let tabs = if std::env::var_os("PPT_LONG").is_some() { 50 } else { 10 };
    for _ in 1..tabs {
        browser.another(&shown.server.url());
        assert_eq!(browser.text("document.body.dataset.frames"), captured.to_string());
        browser.value("document.getElementById('tab-slowest').click()");
        browser.wait_for("document.querySelectorAll('#panel td button').length === 20");
    }
}
