//! Tracy, on demand: what a zone with the payload in its text costs while no viewer is connected.

use peer_serve::{Nothing, Way, serve};
use tracy_client::{Client, span};

const WAYS: &[Way] = &[("stamped", zones)];

#[inline(never)]
fn zone(i: u64) {
    let zone = span!("payload");
    zone.emit_value(i);
}

fn zones(from: u64, to: u64) {
    (from..to).for_each(zone);
}

fn main() {
    let _client = Client::start();
    serve(WAYS, Nothing);
}
