//! Times of nginx's requests, compared with the packets that tcpdump captured of the same requests.

use crate::fixtures::preloaded::Requests;
use crate::fixtures::support::{Attach, Bench, available, rounds, wait_until};

use super::servers::{ask, free_port, output, start};

const SCHEMA: &str = "buffer wire;\noption time ns realtime;\n\
                      frame tcp { time at; u16 src_port; u16 dst_port; u32 payload_len; }\n";
/// 100 us.
const TOLERANCE_NS: i64 = 100_000;

/// When the first packet of a request and the last packet of its answer were on the wire, ns.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    asked: i64,
    answered: i64,
}

/// The requests of a connection in their order.
fn exchanges(bench: &Bench, server: u16) -> Vec<Exchange> {
    let table = bench.table("wire.bin", &["--frame", "tcp"]);
    let columns = ["at", "dst_port", "payload_len"].map(|name| table.numbers(name));
    let [at, to, bytes] = columns;
    let mut all: Vec<Exchange> = Vec::new();
    for row in (0..at.len()).filter(|&row| bytes[row] > 0) {
        if to[row] == i64::from(server) {
            all.push(Exchange { asked: at[row], answered: 0 });
        } else {
            all.last_mut().expect("an answer follows its request").answered = at[row];
        }
    }
    all
}

/// The value at this share of all values.
fn quantile(mut values: Vec<i64>, share: f64) -> i64 {
    values.sort_unstable();
    values[((values.len() - 1) as f64 * share) as usize]
}

/// A proxy's request begins after its packet has come in and ends after the packet of the answer went
/// out. ppt reports the times of the wire, except for the time until nginx reads.
#[test]
fn times_of_a_proxy_are_those_of_the_wire() {
    if !available("nginx") || !available("tcpdump") || !nix::unistd::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    let (front, back) = (free_port(), free_port());
    bench.write("nginx.conf", &super::servers::proxy(front, back));
    let folder = bench.path("").display().to_string();
    let nginx = ["nginx", "-p", &folder, "-c", "nginx.conf", "-e", "errors"];
    let mut target = start(&bench, &nginx, back);
    let mut command = bench.command("tcpdump");
    command.args(["-i", "lo", "-n", "-U", "-Z", "root", "--immediate-mode", "-B", "65536"]);
    command.args(["-w", "wire.pcap", "tcp", "port", &front.to_string()]);
    let capture = Attach::spawn(command);
    capture.stderr.wait_for("tcpdump: listening on");

    let count = rounds(1_000, 100_000);
    assert_eq!(ask(front, count), count);
    output(&bench, "nginx", &[&nginx[1..], &["-s", "quit"]].concat());
    assert!(target.wait().success());
    // The packets of the last answers have been written to the file.
    wait_until("tcpdump has the last packet", || packets(&bench) >= 2 * count);
    let said = capture.stop();
    assert!(said.contains("\n0 packets dropped by kernel"), "{said}");

    bench.write("wire.frame", SCHEMA);
    let ran = bench.ppt(&["import", "wire.pcap", "--schema", "wire.frame", "-o", "wire.bin"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let wire = exchanges(&bench, front);
    let requests = Requests::of(&bench, "out.bin");
    let of_front = requests.served.iter().filter(|request| request.port == u64::from(front));
    let mut served: Vec<(i64, i64)> =
        of_front.map(|request| (request.start, request.end)).collect();
    served.sort_unstable();
    assert_eq!((wire.len(), served.len()), (count, count));
    let by_wire: Vec<i64> = wire.iter().map(|request| request.answered - request.asked).collect();
    let by_ppt: Vec<i64> = served.iter().map(|(start, end)| end - start).collect();
    let differences = by_wire.iter().zip(&by_ppt).map(|(wire, ppt)| (wire - ppt).abs()).collect();
    let quantiles = |values: &[i64]| [0.5, 0.99].map(|share| quantile(values.to_vec(), share));
    let (wire, ppt) = (quantiles(&by_wire), quantiles(&by_ppt));
    eprintln!("p50 and p99 of the wire {wire:?} ns, of ppt {ppt:?} ns");
    // On a busy machine, a request waits until nginx runs: only the wire has that time.
    assert!(quantile(differences, 0.1) <= TOLERANCE_NS, "{wire:?} {ppt:?}");
    for (wire, ppt) in wire.into_iter().zip(ppt) {
        assert!(ppt <= wire + TOLERANCE_NS, "{ppt} ns are more than {wire} ns on the wire");
    }
}

/// Packets in the file so far.
fn packets(bench: &Bench) -> usize {
    let all = std::fs::read(bench.path("wire.pcap")).unwrap_or_default();
    let (mut at, mut count) = (24, 0);
    while let Some(len) = all.get(at + 8..at + 12) {
        at += 16 + u32::from_le_bytes(len.try_into().unwrap()) as usize;
        count += usize::from(at <= all.len());
    }
    count
}
