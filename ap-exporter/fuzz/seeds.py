"""Write the seeds of the data path's fuzz targets: python3 fuzz/seeds.py (from ap-exporter/). The results are
committed."""

import base64
import json
import pathlib
import struct
import zlib

GOLDEN = pathlib.Path("../schema/golden")
CORPUS = pathlib.Path("fuzz/corpus")


def put(target: str, name: str, data: bytes) -> None:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def records(path: pathlib.Path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        topic, size = data[at], int.from_bytes(data[at + 1:at + 5], "little")
        yield topic, data[at + 5:at + 5 + size]
        at += 5 + size


def tcp(options: bytes, flags: int, payload: int, version: int = 4) -> bytes:
    header = (
        struct.pack(">HHIIBBHHH", 5000, 443, 1, 2, (20 + len(options)) // 4 << 4, flags, 1234, 0, 0)
        + options
        + b"x" * payload
    )
    if version == 4:
        return (
            struct.pack(">BBHHHBBHII", 0x45, 2, 20 + len(header), 1, 0x4000, 64, 6, 0, 0x0A000001, 0xC0000207) + header
        )
    return struct.pack(">IHBB", 0x60300000, 8 + len(header), 60, 64) + bytes(32) + b"\x06\x00\x01\x04\0\0\0\0" + header


SYN = bytes.fromhex("020405b4 0402 080a 00000102 00000304 01 030307")
SACK = bytes.fromhex("0101 080a 00000001 00000002 0101 0512 00000001 00000002 00000003 00000004")
ETHERNET = bytes.fromhex("020000000100 020000000101")


def main() -> None:
    key = base64.b64encode(bytes(range(32)))
    put("fuzz_mac_keys", "one", b"ap-1 lab 1 " + key + b"\n")
    put(
        "fuzz_mac_keys",
        "several",
        b"# comment\r\nap-1 - 2 " + key + b" # old\nap-1 lab 255 " + key + b"\n\nap-2 lab 1 " + key,
    )
    certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    ticket = {
        "v": 1,
        "url": "https://push.example.net:8444",
        "ap_id": "ap-1",
        "site": "lab",
        "token": "secret",
        "ca": certificate,
    }
    put("fuzz_enrol", "ticket", base64.urlsafe_b64encode(json.dumps(ticket).encode()).rstrip(b"="))
    put(
        "fuzz_enrol",
        "answer",
        json.dumps(
            {
                "ap_id": "ap-1",
                "site": "lab",
                "certificate": certificate,
                "ca": certificate,
                "mac_keys": f"ap-1 lab 1 {key.decode()}\n",
                "trusted_keys": f"ed25519 {key.decode()} test role=trainer scope=site/lab max_mode=shadow\n",
                "not_after_us": 1,
            }
        ).encode(),
    )
    for name, line in (
        ("set4", "set 10.0.0.1:5000 192.0.2.7:443 65536 500 7 1448"),
        ("set6", "set [2001:db8::1]:5000 [2001:db8::2]:443 1 1000"),
        ("release", "release 10.0.0.1:5000 192.0.2.7:443"),
        ("all", "release all"),
        ("sleep", "sleep 20"),
        ("stats", "stats"),
    ):
        put("fuzz_rwnd_command", name, line.encode())
    hello = "06000010 00000001 0001 0008 0000007e"
    error = "0401002c 00000007 0002 0004 040e005800000007 4f414c72776e6400 ffffffffffffffff ff03000000000000"
    removed = (
        "040b0038 00000000 4f414c72776e6400 ea60 01 00 00000001 00000000 0000 0001 0000000000000102 "
        "0000000000009999 0001000400000000"
    )
    count = "04130028 00000006 0002 0000 00000000 0000000000000304 0000000000009999 00000002 00000000"
    for name, words in (
        ("hello", hello),
        ("error", error),
        ("removed", removed),
        ("count", count),
        ("old", "01000008 00000001"),
        (
            "talk",
            hello
            + "04150008 00000005"
            + "04020008 00000000"
            + removed
            + count
            + "040c1000 00000000"
            + "00" * 4088
            + error,
        ),
    ):
        put("fuzz_openflow", name, bytes.fromhex(words))
    frames = [
        ETHERNET + b"\x08\x00" + tcp(SYN, 2, 0),
        ETHERNET + b"\x08\x00" + tcp(SACK, 16, 0),
        ETHERNET + b"\x86\xdd" + tcp(SYN, 18, 4, 6),
        ETHERNET + b"\x81\x00\x00\x05\x08\x00" + tcp(b"", 24, 30),
        ETHERNET + b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00" + tcp(b"", 17, 0),
    ]
    for i, f in enumerate(frames):
        put("fuzz_packet", f"frame{i}", bytes([0, len(f), 0]) + f)
    put("fuzz_packet", "flow", b"".join(bytes([d, len(f), 40]) + f for f in frames for d in (0, 4, 0)))
    small = [(t, b) for t, b in records(GOLDEN / "extremes.bin") if len(b) < 9000] + [
        (t, b) for t, b in records(GOLDEN / "refused.bin") if len(b) < 2000
    ]
    for i, (topic, batch) in enumerate(small):
        put("fuzz_batch", f"record{i}", bytes([topic]) + batch)
    for i, (topic, batch) in enumerate(records(GOLDEN / "actions.bin")):
        put("fuzz_batch", f"action{i}", bytes([topic]) + batch)
    capture = b"OALCAP\1\0"
    for topic, batch in small[:2]:
        head = bytes([topic, 0, 0, 0]) + struct.pack("<IQ", len(batch), 1)
        capture += b"OALr" + head + struct.pack("<I", zlib.crc32(head + batch)) + batch
    put("fuzz_capture", "whole", capture)
    put("fuzz_capture", "damaged", capture[:500] + b"?" + capture[501:])
    ap = (
        '{"ap_id":"%s","stations":3,"tx_kbps":9000,"tx_airtime_permille":410,"busy_permille":700,'
        '"loss_permille":12,"backlog_bytes":30000,"age_ms":1200}'
    )
    for name, aps in (
        ("none", ""),
        ("two", ap % "ap-1" + "," + ap % "b"),
        ("itself", ap % "me"),
        ("more", ap.replace("{", '{"new":[{"x":"\\u00e9\\ud83d\\ude00"},-1.5e3,true,null],', 1) % "c"),
    ):
        put(
            "fuzz_peers",
            name,
            ('{"site":"lab","frequency_mhz":5180,"t_us":1800000000000000,"aps":[' + aps + "]}").encode(),
        )
    for order, name in (("<", "little"), (">", "big")):
        classic = struct.pack(order + "IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1)
        section = struct.pack(order + "IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
        ng = section + struct.pack(
            order + "IIHHIHHIHHI", 1, 32, 1, 0, 0, 9, 1, 9 if order == "<" else 9 << 24, 0, 0, 32
        )
        for f in frames:
            classic += struct.pack(order + "IIII", 1, 2, len(f), len(f)) + f
            padded = f + bytes(-len(f) % 4)
            ng += (
                struct.pack(order + "IIIIIII", 6, 32 + len(padded), 0, 1, 2, len(f), len(f))
                + padded
                + struct.pack(order + "I", 32 + len(padded))
            )
        put("fuzz_pcap", f"classic_{name}", classic)
        put("fuzz_pcap", f"ng_{name}", ng)
    for listing, prefix in (("bundles", ""), ("bundles2", "2_")):
        names = [line.split()[0] for line in (GOLDEN / f"{listing}.txt").read_text().splitlines()]
        for name, (_, signed) in zip(names, records(GOLDEN / f"{listing}.bin")):
            if len(signed) < 5000 and not name.startswith(("bad_signature", "unknown_key", "replayed")):
                put("fuzz_bundle", prefix + name, signed)
    put("fuzz_feature", "operators", (GOLDEN / "operators.oalf").read_bytes())
    put("fuzz_feature", "congestion", pathlib.Path("../schema/generated/features/congestion.oalf").read_bytes())


if __name__ == "__main__":
    main()
