//! A connection that breaks and returns, as with `ssh -L`.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::browser::Browser;
use crate::made::Shop;
use crate::page::shown::{shop, shown};

/// A tunnel to a server from the same port of another address, which the browser resolves as `localhost`.
struct Tunnel {
    streams: Arc<Mutex<Vec<TcpStream>>>,
    is_cut: Arc<AtomicBool>,
    address: SocketAddr,
    listening: Option<JoinHandle<()>>,
}

impl Tunnel {
    fn open(to: SocketAddr) -> Tunnel {
        let listener = TcpListener::bind(("127.0.0.2", to.port())).unwrap();
        let address = listener.local_addr().unwrap();
        let (streams, is_cut) =
            (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (kept, cut) = (Arc::clone(&streams), Arc::clone(&is_cut));
        let listening = std::thread::spawn(move || {
            for near in listener.incoming().map(Result::unwrap) {
                if cut.load(Ordering::Relaxed) {
                    return;
                }
                let far = TcpStream::connect(to).unwrap();
                let both = [near.try_clone().unwrap(), far.try_clone().unwrap()];
                kept.lock().unwrap().extend(both);
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                for (from, to) in [(near, far), back] {
                    std::thread::spawn(move || copy(from, to));
                }
            }
        });
        Tunnel { streams, is_cut, address, listening: Some(listening) }
    }
}

/// Copies bytes as they arrive.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.is_cut.store(true, Ordering::Relaxed);
        // Wakes it.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            listening.join().unwrap();
        }
        for stream in self.streams.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn a_page_says_that_the_server_is_gone_and_continues_when_it_is_back() {
    let (bytes, captured) = shop(&Shop { frames: 6000, threads: 2, ..Shop::default() });
    let shown = shown(&bytes[..bytes.len() / 2]);
    let address = shown.server.address();
    let tunnel = Tunnel::open(address);
    let url = shown.server.url().replace("127.0.0.1", "localhost");
    let Some(mut browser) = Browser::open(&url, 1280, 800) else { return };
    assert_eq!(browser.text("location.hostname"), "localhost");
    let frames = "document.body.dataset.frames";
    let before = browser.text(frames);
    assert_ne!(before, captured.to_string());
    drop(tunnel);
    let notice = "document.getElementById('notice').innerText";
    browser.wait_for(&format!("{notice}.includes('The server has ended')"));
    // The page keeps its content and handles keys.
    assert_eq!(browser.text(frames), before);
    let seen = "document.getElementById('overview').getAttribute('aria-valuetext')";
    let whole = browser.text(seen);
    browser.press("w");
    browser.wait_for(&format!("{seen} !== '{whole}'"));
    // The capture continues and ends during the outage.
    let path = shown.folder.path().join("shop.bin");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(&bytes[bytes.len() / 2..]).unwrap();
    let _tunnel = Tunnel::open(address);
    browser.wait_for(&format!("{frames} === '{captured}'"));
    browser.wait_for(&format!("{notice} === ''"));
}
