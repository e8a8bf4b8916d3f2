//! A capture and the page that shows it.

use ppt_view_server::{Captures, ServeOptions, ViewServer};

use crate::browser::Browser;
use crate::made::{self, Shop};

pub const HOSTILE: &str =
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u{202e}";

pub struct ServedPage {
    pub server: ViewServer,
    pub folder: tempfile::TempDir,
}

/// Many captures at once.
pub fn shown_together(all: &[Vec<u8>]) -> ServedPage {
    let folder = tempfile::tempdir().unwrap();
    let put = |(number, bytes): (usize, &Vec<u8>)| {
        let path = folder.path().join(format!("{number}.bin"));
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let paths = all.iter().enumerate().map(put).collect();
    let captures = Captures { paths, threads: 2, ..Captures::default() };
    let options = ServeOptions { captures, ..ServeOptions::default() };
    ServedPage { server: ViewServer::start(options).unwrap(), folder }
}

pub fn shown(bytes: &[u8]) -> ServedPage {
    shown_beside(bytes, None)
}

pub fn shown_beside(bytes: &[u8], second: Option<&[u8]>) -> ServedPage {
    let folder = tempfile::tempdir().unwrap();
    let captures = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Captures { paths: vec![path], threads: 2, ..Captures::default() }
    };
    let second = second.map(|bytes| captures("after.bin", bytes));
    let captures = captures("shop.bin", bytes);
    let options = ServeOptions { captures, second, ..ServeOptions::default() };
    ServedPage { server: ViewServer::start(options).unwrap(), folder }
}

/// The answer of a route to a request of the page.
pub fn asked(browser: &mut Browser, path: &str, body: &serde_json::Value) -> serde_json::Value {
    browser.value(&format!(
        "fetch('{path}', {{ method: 'POST', body: JSON.stringify({body}), headers: {{
            authorization: `Bearer ${{sessionStorage.getItem('ppt-view-token')}}` }} }})
            .then((answer) => answer.json())"
    ))
}

/// The cells of a table of the page.
pub fn cells(browser: &mut Browser, place: &str) -> Vec<Vec<String>> {
    let rows = browser.value(&format!(
        "[...document.querySelectorAll('{place} tr')].slice(1)
            .map((row) => [...row.cells].map((cell) => cell.textContent))"
    ));
    serde_json::from_value(rows).unwrap()
}

pub fn shop(shop: &Shop) -> (Vec<u8>, u64) {
    let mut bytes = Vec::new();
    let captured = made::write(shop, &mut bytes);
    (bytes, captured)
}

pub const ROWS: &str = "document.getElementById('labels').innerText";
