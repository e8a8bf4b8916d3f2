//! Packets become frames with the values that scapy reads.

use std::path::Path;
use std::process::Command;

use ppt_import::{ImportError, pcap};
use serde_json::{Value, json};

use crate::support::{File, captured, schema};

const ALL: &str = "
    option time ns realtime;
    frame packet {
        time when;
        u32 interface; i32 link; u32 len; u32 caplen; u16 ethertype; u16 vlan;
        char src_mac[17]; char dst_mac[17]; char src[39]; char dst[39];
        u8 proto; u8 ttl; u16 src_port; u16 dst_port;
        u32 tcp_seq; u32 tcp_ack; u8 tcp_flags; u16 tcp_window;
        u32 payload_len; bytes payload[16];
    }";

fn imported(file: &str, bytes: &[u8]) -> Result<(File, pcap::Imported), ImportError> {
    let schema = schema(file);
    let mut imported = pcap::Imported::default();
    let capture = captured(&schema, |recording| {
        imported = pcap::import(bytes, &schema, recording)?;
        Ok(())
    })?;
    Ok((File::new(&capture), imported))
}

#[test]
fn frames_hold_what_scapy_reads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/oracles/bin/python");
    let there = Command::new(&python).args(["-c", "import scapy"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: scapy is not installed (analysis/oracles/install)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(python)
        .arg(root.join("analysis/oracles/packets.py"))
        .arg(folder.path())
        .arg(std::process::id().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let files: serde_json::Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(files.len(), 7);
    for (name, packets) in files {
        let bytes = std::fs::read(folder.path().join(&name)).unwrap();
        let (file, imported) = imported(ALL, &bytes).unwrap();
        let packets = packets.as_array().unwrap();
        assert_eq!(imported.packets, packets.len() as u64, "{name}");
        let rows = file.rows();
        assert_eq!(rows.len(), packets.len(), "{name}");
        for (number, (row, packet)) in rows.iter().zip(packets).enumerate() {
            for (key, expected) in packet.as_object().unwrap() {
                if expected.is_null() {
                    continue;
                }
                let found = match key.as_str() {
                    "ns" => row["when"].clone(),
                    key => row[key].clone(),
                };
                assert_eq!(&found, expected, "{name}, packet {number}: {key}\n{packet}\n{row}");
            }
        }
    }
}

/// A pcap file of `packets`, by microseconds.
fn file(link: u32, packets: &[(u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let words = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, link];
    words.iter().for_each(|word: &u32| bytes.extend(word.to_le_bytes()));
    for (second, packet) in packets {
        let len = packet.len() as u32;
        [*second, 5, len, len].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(*packet);
    }
    bytes
}

/// A UDP datagram of IPv4 from port 7 to port 9.
fn udp(payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend((28 + len).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9]);
    bytes.extend((8 + len).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

#[test]
fn frames_take_the_packets_of_their_layer() {
    let tcp_syn = {
        let mut bytes = udp(&[0; 12]);
        bytes[9] = 6;
        bytes[32] = 5 << 4;
        bytes[33] = 2;
        bytes
    };
    let packets = [(3, &udp(b"abc")[..]), (4, &tcp_syn), (5, b"no IP")];
    let bytes = file(101, &packets);
    let two = "option time ns realtime;
        frame udp { time t; u16 src_port; bytes payload[4]; } frame tcp { time t; u8 tcp_flags; }";
    let (found, imported) = imported(two, &bytes).unwrap();
    assert_eq!(imported, pcap::Imported { packets: 3, untaken: 1, cut: None });
    let rows = found.rows();
    assert_eq!((&rows[0]["frame"], &rows[1]["frame"]), (&json!("udp"), &json!("tcp")));
    assert_eq!((&rows[0]["payload"], &rows[1]["tcp_flags"]), (&json!("61626300"), &json!(2)));
    assert_eq!(rows[0]["t"], json!(3_000_005_000i64));
    let (found, imported) =
        self::imported(&format!("{two} frame packet {{ u32 len; }}"), &bytes).unwrap();
    assert_eq!((imported.untaken, found.rows().len()), (0, 3));
}

#[test]
fn a_file_that_is_cut_off_is_read_up_to_there() {
    let bytes = file(101, &[(3, &udp(b"abc")), (4, &udp(b"defg"))]);
    for len in 24..bytes.len() {
        let (found, imported) = imported(ALL, &bytes[..len]).unwrap();
        let whole = if len < 24 + 16 + 31 { 0 } else { 1 };
        assert_eq!((imported.packets, found.rows().len()), (whole, whole as usize), "{len}");
        let is_between = len == 24 || len == 24 + 16 + 31;
        assert_eq!(imported.cut.is_none(), is_between, "{len}");
    }
    assert!(matches!(imported(ALL, &bytes[..20]), Err(ImportError::Format(_))));
}

#[test]
fn no_bytes_are_trusted() {
    let bytes = file(1, &[(3, &udp(b"abc")), (4, &udp(b"defg")), (5, &[0xff; 60])]);
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        if let Ok((found, _)) = imported(ALL, &bytes) {
            found.info();
        }
    }
    assert!(matches!(imported(ALL, b""), Err(ImportError::Format(_))));
    assert!(matches!(imported(ALL, b"a,b\n1,2\n"), Err(ImportError::Format(_))));
}

#[test]
fn an_input_may_come_byte_by_byte() {
    struct Drip<'a>(&'a [u8]);
    impl std::io::Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }
    let bytes = file(101, &[(3, &udp(b"abc")), (4, &udp(b"defg"))]);
    let schema = schema(ALL);
    let mut imported = pcap::Imported::default();
    let capture = captured(&schema, |recording| {
        imported = pcap::import(Drip(&bytes), &schema, recording)?;
        Ok(())
    });
    assert_eq!((imported.packets, File::new(&capture.unwrap()).rows().len()), (2, 2));
}

#[test]
fn fields_that_no_packet_fills_are_said() {
    let bytes = file(101, &[(3, &udp(b"abc"))]);
    let said = |fields: &str| {
        let file = format!("option time ns realtime; {fields}");
        imported(&file, &bytes).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(
        said("frame p { u16 sport; }").contains("p.sport"),
        "{}",
        said("frame p { u16 sport; }")
    );
    assert!(said("frame p { u16 src_prt; }").contains("did you mean `src_port`?"));
    assert!(said("frame p { u8 src_port; }").contains("16 bits or more"));
    assert!(said("frame p { u16 len; }").contains("32 bits or more"));
    assert!(said("frame p { char src[20]; }").contains("char[39]"));
    assert!(said("frame p { u8 payload[4]; }").contains("bytes[N]"));
    assert!(said("frame p { time when @clock(monotonic); }").contains("realtime"));
    assert!(said("frame udp { u16 src_port; } frame job { u16 len; }").contains("job"));
}
