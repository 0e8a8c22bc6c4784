"""Some 25 s of an access point, encoded once and played as often as wanted: each time with a header and instants of its
own. So thousands of batches a second cost little, and every row of each is known.

The tape is of VirtualAp (../virtual_ap.py), with a decision at every instant as the contract's reference interpreter
computes its features, so the job must find features that match. It is a multiple of 6.3 s long: batches of 252 ms and
decisions every 100 ms then begin the tape anew together. Played again, its counters start again from their first
values, as the contract allows; from the second time on the features of a tape repeat.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from functools import lru_cache
from math import lcm
from pathlib import Path

from oal_schema import mac
from oal_schema.codec import HEADER_FIXED, _encode_table, contract, decode
from oal_schema.features import Interpreter
from oal_schema.program_file import program_hash
from oal_schema.wire import fields, get_varint, put_bytes, put_fixed64, put_uint
from virtual_ap import TOPICS, VirtualAp

ROOT = Path(__file__).resolve().parents[2]
SITE = "soak"
FNV_OFFSET, FNV_PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
CLASS, CONFIDENCE, CONGESTED = 0, 800, 100  # what every decision says


def vector_hash(values: list[int]) -> int:
    """As decision.features_hash: 64-bit FNV-1a over big-endian values, without the highest bit."""
    h = FNV_OFFSET
    for byte in struct.pack(f">{len(values)}q", *values):
        h = (h ^ byte) * FNV_PRIME & MASK
    return h & MASK >> 1


def words() -> list[tuple[int, ...]]:
    """rwnd-fair's feature program."""
    first = json.loads((ROOT / "schema/generated/policies.json").read_text())["policies"][0]
    return [tuple(row) for row in first["words"]]


class Tape:
    """`intervals` of one AP; interval i of a play is interval i modulo that."""

    def __init__(self, rounds: int = 10, stations: int = 3, packets: int = 48, seed: int = 7):
        s = contract().settings
        self.interval_us = s["tick_us"] * s["batch_ticks"]
        self.step_us = s["decision_interval_us"]
        self.intervals = rounds * lcm(self.interval_us, self.step_us) // self.interval_us
        self.length_us = self.intervals * self.interval_us
        self.bodies: list[list[bytes]] = []  # [interval][topic], without header
        self.rows: list[Counter] = []  # by table
        self.heads: list[bytes] = []  # [interval]: what each header has in common
        ap = VirtualAp("tape", seed, stations, packets)
        self.program = words()
        self.feature_hash = int.from_bytes(program_hash(self.program, self.step_us)[:8], "big")
        interpreter = Interpreter(self.program)
        batches = []
        for i in range(self.intervals):
            records = [record for _, record in ap.interval(i * self.interval_us + self.length_us)]
            self._keep(records, i, ap)
            batches.append([decode(topic, record, "tape") for topic, record in enumerate(records[:2])])
        #: of each instant of the first play, the second, and all later ones
        self.hashes = [self._play(interpreter, batches, play) for play in range(3)]
        again = self._play(interpreter, batches, 3)
        if again != self.hashes[2]:
            raise ValueError("the features of a tape do not repeat")

    def _keep(self, records: list[bytes], i: int, ap: VirtualAp) -> None:
        bodies = []
        for record in records:
            # The header is the first field.
            length, start = get_varint(record, 1, len(record))
            bodies.append(record[start + length:])
        if not self.heads:
            by_number = {number: name for name, number, _ in contract().header}
            length, start = get_varint(records[0], 1, len(records[0]))
            kept = bytearray()
            for number, kind, a, b in fields(records[0], start, start + length):
                name = by_number[number]
                if name in ("ap_id", "site", "t0_us", "seq") or name in HEADER_FIXED:
                    continue
                if kind == 2:
                    put_bytes(kept, number, records[0][a:b])
                else:
                    put_uint(kept, number, get_varint(records[0], a, b)[0])
            self.heads.append(bytes(kept))
        self.bodies.append(bodies)
        self.rows.append(Counter({name: n for (name, _, seq), n in ap.ledger.items() if seq == i and name != "batch"}))

    def _play(self, interpreter: Interpreter, batches: list, play: int) -> dict[int, int]:
        """Hash of the vector by instant, µs since the play's start."""
        out = {}
        shift = (play + 1) * self.length_us
        for i, pair in enumerate(batches):
            for b in pair:
                b.header["t0_us"] = shift + i * self.interval_us
            for instant, values in interpreter.feed(*pair):
                out[instant - shift] = vector_hash(values)
        return out

    def hash_of(self, since_start_us: int) -> int | None:
        """Of the vector at that instant of a play from the start, when it is known."""
        # An instant of a play's last batch is evaluated when the next play begins: at or before 0 of that one.
        play, at = divmod(since_start_us, self.length_us)
        for number, instant in ((play, at), (play + 1, at - self.length_us)):
            found = self.hashes[min(number, 2)].get(instant)
            if found is not None:
                return found
        return None


@lru_cache(maxsize=4)
def tape(rounds: int = 4, stations: int = 2, packets: int = 24) -> Tape:
    return Tape(rounds, stations, packets)


class PlayedAp:
    """One access point that plays a tape. `ledger` is by (table, boot_id, seq)."""

    def __init__(self, ap_id: str, boot_id: int, of: Tape, start_us: int, key_id: int, master: bytes):
        self.ap_id, self.boot_id, self.tape = ap_id, boot_id, of
        self.start_us = -(-start_us // of.step_us) * of.step_us
        self.seq = 0
        self.ledger: Counter = Counter()
        self.decisions = 0
        numbers = {name: number for name, number, _ in contract().header}
        head = bytearray()
        put_bytes(head, numbers["ap_id"], ap_id.encode())
        put_bytes(head, numbers["site"], SITE.encode())
        put_fixed64(head, numbers["boot_id"], boot_id)
        put_fixed64(head, numbers["feature_hash"], of.feature_hash)
        self._head = bytes(head) + of.heads[0]
        self._t0, self._seq = numbers["t0_us"], numbers["seq"]
        self._key_id, self._key = key_id, mac.ap_key(master, ap_id, SITE)
        self._decision = contract().table("decision")

    @property
    def next_us(self) -> int:
        """Start of the next interval."""
        return self.start_us + self.seq * self.tape.interval_us

    def interval(self) -> list[tuple[str, bytes, list[tuple[str, bytes]]]]:
        """The next interval: (topic, record, headers)."""
        t0, tape = self.next_us, self.tape
        head = bytearray(self._head)
        put_uint(head, self._t0, t0)
        put_uint(head, self._seq, self.seq)
        prefix = bytearray()
        put_bytes(prefix, 1, bytes(head))
        i = self.seq % tape.intervals
        decisions = self._decisions(t0)
        out = []
        for number, topic in enumerate(TOPICS):
            record = bytes(prefix) + tape.bodies[i][number]
            if number == 2 and decisions:
                out_rows = bytearray()
                put_bytes(out_rows, self._decision.field, _encode_table(self._decision, decisions))
                record += bytes(out_rows)
            out.append((topic, record, [(mac.HEADER, mac.header(self._key_id, self._key, topic, record))]))
        for name, n in tape.rows[i].items():
            self.ledger[name, self.boot_id, self.seq] = n
        self.ledger["batch", self.boot_id, self.seq] = len(TOPICS)
        if decisions:
            self.ledger["decision", self.boot_id, self.seq] = len(decisions)
            self.decisions += len(decisions)
        self.seq += 1
        return out

    def _decisions(self, t0: int) -> list[dict]:
        """Of the instants within this interval."""
        tick_us = contract().settings["tick_us"]
        out = []
        for instant in range(-(-t0 // self.tape.step_us) * self.tape.step_us, t0 + self.tape.interval_us,
                             self.tape.step_us):
            found = self.tape.hash_of(instant - self.start_us)
            if found is None:
                continue
            out.append({
                "absent": 0, "bundle": 1, "source": 1, "version": 1,
                "tick": min(-(-(instant - t0) // tick_us), contract().settings["batch_ticks"] - 1),
                "instant_us": instant, "class": CLASS, "confidence_permille": CONFIDENCE,
                "congested_permille": CONGESTED, "leaf": 0, "features_hash": found, "features_missing": 0,
                "eval_ns": 1000
            })
        return out
