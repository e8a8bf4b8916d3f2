"""Makes pcap files with scapy, and says what scapy reads in them, as JSON.

    packets.py FOLDER SEED

The answer is {file: [packet, …]}. Numbers are numbers, and what a packet does not have is 0, "" or
zeros, as in a frame.
"""

import json
import pathlib
import random
import sys

from scapy.all import (ARP, IP, TCP, UDP, CookedLinux, CookedLinuxV2, Dot1Q, Ether, ICMP, IPv6,
                       Loopback, Raw, RawPcapNgWriter, raw, rdpcap, wrpcap)

PAYLOAD = 16


def layers(dice, payload):
    data = Raw(payload)
    four = IP(src=f"10.0.{dice.randrange(256)}.1", dst="192.168.7.9", ttl=dice.randrange(1, 256))
    six = IPv6(src="2001:db8::7", dst=f"fe80::{dice.randrange(1, 9999):x}", hlim=dice.randrange(256))
    udp = UDP(sport=dice.randrange(1 << 16), dport=dice.randrange(1 << 16))
    tcp = TCP(sport=dice.randrange(1 << 16), dport=dice.randrange(1 << 16), seq=dice.randrange(1 << 32),
              ack=dice.randrange(1 << 32), flags=dice.randrange(256), window=dice.randrange(1 << 16))
    options = TCP(sport=5, dport=6, flags="S", options=[("MSS", 1460), ("NOP", None), ("WScale", 7)])
    return dice.choice([four / udp / data, four / tcp / data, six / udp / data, six / tcp / data,
                        four / options, four / ICMP() / data])


def ether(dice, above):
    link = Ether(src="02:00:00:00:00:01", dst=f"02:00:00:00:00:{dice.randrange(256):02x}")
    return link / Dot1Q(vlan=dice.randrange(4096)) / above if dice.random() < 0.3 else link / above


def made(dice, kind, count):
    packets = []
    for at in range(count):
        above = layers(dice, bytes(dice.randrange(256) for _ in range(dice.randrange(40))))
        if kind == "ether":
            packet = ether(dice, ARP(pdst="10.0.0.1") if dice.random() < 0.1 else above)
        elif kind == "sll":
            packet = CookedLinux(proto=0x86DD if IPv6 in above else 0x800) / above
        elif kind == "sll2":
            packet = CookedLinuxV2(proto=0x86DD if IPv6 in above else 0x800) / above
        elif kind == "null":
            packet = Loopback(type=10 if IPv6 in above else 2) / above
        else:
            packet = above
        # Built once, so that lengths and checksums are in its bytes.
        packet = packet.__class__(raw(packet))
        packet.time = 1_700_000_000 + at + dice.randrange(1_000_000) / 1_000_000
        packets.append(packet)
    return packets


def said(packet, interface=0):
    found = {"caplen": len(raw(packet)), "len": packet.wirelen or len(raw(packet)), "interface": interface}
    found["ns"] = round(packet.time * 1_000_000_000)
    ip = packet.getlayer(IP) or packet.getlayer(IPv6)
    found["src"], found["dst"] = (ip.src, ip.dst) if ip else ("", "")
    found["ttl"] = 0 if not ip else ip.ttl if IP in packet else ip.hlim
    found["proto"] = 0 if not ip else ip.proto if IP in packet else ip.nh
    link = packet.getlayer(Ether)
    found["src_mac"], found["dst_mac"] = (link.src, link.dst) if link else ("", "")
    found["vlan"] = packet[Dot1Q].vlan if Dot1Q in packet else 0
    above = packet.getlayer(UDP) or packet.getlayer(TCP)
    found["src_port"], found["dst_port"] = (above.sport, above.dport) if above else (0, 0)
    tcp = packet.getlayer(TCP)
    found["tcp_seq"], found["tcp_ack"] = (tcp.seq, tcp.ack) if tcp else (0, 0)
    found["tcp_flags"], found["tcp_window"] = (int(tcp.flags), tcp.window) if tcp else (0, 0)
    # What scapy read as the payload of UDP and TCP, without what pads a frame of Ethernet.
    payload = raw(above.payload) if above else b""
    padding = packet.getlayer("Padding")
    if padding and above:
        payload = payload[: len(payload) - len(raw(padding))]
    found["payload"] = payload[:PAYLOAD].ljust(PAYLOAD, b"\0").hex()
    whole = len(raw(packet)) >= found["len"]
    found["payload_len"] = (len(payload) if whole else None) if above else 0
    return found


def main(folder, seed):
    folder, dice, answer = pathlib.Path(folder), random.Random(seed), {}
    for kind in ["ether", "sll", "sll2", "null", "raw"]:
        name = f"{kind}.pcap"
        packets = made(dice, kind, 60)
        linktype = {"ether": 1, "sll": 113, "sll2": 276, "null": 0, "raw": 101}[kind]
        options = {"endianness": ">"} if kind == "sll" else {}
        wrpcap(str(folder / name), packets, linktype=linktype, nano=kind == "ether", **options)
        answer[name] = [said(it) for it in rdpcap(str(folder / name))]
    # Only the first bytes of each packet.
    packets = made(dice, "ether", 60)
    for packet in packets:
        packet.wirelen = len(raw(packet))
    wire = [(len(raw(it)), raw(it)[:70], it.time) for it in packets]
    from scapy.utils import PcapWriter
    with PcapWriter(str(folder / "short.pcap"), linktype=1, sync=True) as writer:
        writer.write_header(None)
        for length, head, time in wire:
            sec = int(time)
            writer.write_packet(head, sec=sec, usec=round((time - sec) * 1_000_000), wirelen=length)
    answer["short.pcap"] = [said(it) for it in rdpcap(str(folder / "short.pcap"))]
    packets = made(dice, "ether", 60)
    with RawPcapNgWriter(str(folder / "ether.pcapng")) as writer:
        for packet in packets:
            packet.sniffed_on = "eth0"
            writer.write(packet)
    # scapy describes an interface of its own before eth0, and does not say which number that has.
    answer["ether.pcapng"] = [said(it, None) for it in rdpcap(str(folder / "ether.pcapng"))]
    print(json.dumps(answer))


main(sys.argv[1], int(sys.argv[2]))
