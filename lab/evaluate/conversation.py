"""The packets of one TCP connection, from captures at both of its ends."""
import numpy as np

from .tap import ACK, FIN, SYN


def ahead(seq: np.ndarray, start: int) -> np.ndarray:
    """Sequence numbers as distance from a first one, so that they do not wrap (a flow is shorter than 2 GiB)."""
    return (seq.astype(np.int64) - start + (1 << 31)) % (1 << 32) - (1 << 31)


def match(sent: np.ndarray, arrived: np.ndarray) -> np.ndarray:
    """For each packet sent, the row of `arrived` that is the same packet, or −1."""
    key = lambda p: p["ip_id"].astype(np.uint64) << np.uint64(32) | p["seq"]
    found = np.full(len(sent), -1)
    _, a, b = np.intersect1d(key(sent), key(arrived), return_indices=True)
    found[a] = b
    return found


class Conversation:
    """One connection's packets, as four arrays in order of time. `listener`: address and port of the end to which data
    go; taps are those of the end that sends and of the one that receives.
    """

    def __init__(self, packets: np.ndarray, sender_tap: int, receiver_tap: int, listener: tuple[int, int]):
        to_listener = (packets["destination"] == listener[0]) & (packets["destination_port"] == listener[1])
        at_sender = packets["tap"] == sender_tap
        data = to_listener & (packets["payload_bytes"] > 0)
        self.sent = packets[data & at_sender & (packets["sent"] == 1)]
        self.arrived = packets[data & (packets["tap"] == receiver_tap) & (packets["sent"] == 0)]
        self.acks = packets[~to_listener & at_sender & (packets["sent"] == 0) & (packets["flags"] & ACK > 0)]
        self.answers = packets[~to_listener & (packets["tap"] == receiver_tap) & (packets["sent"] == 1) &
                               (packets["flags"] & ACK > 0)]
        syn = packets[to_listener & at_sender & (packets["flags"] & SYN > 0)]
        self.open_ns, self.first_seq = (int(syn["t_ns"][0]), (int(syn["seq"][0]) + 1) %
                                        (1 << 32)) if len(syn) else (None, None)
        self.where = match(self.sent, self.arrived)

    def delays(self) -> tuple[np.ndarray, np.ndarray]:
        """(time sent, delay) of the packets that arrived, in order of arrival."""
        came = self.where >= 0
        arrival = self.arrived["t_ns"][self.where[came]]
        order = np.argsort(arrival, kind="stable")
        sent = self.sent["t_ns"][came][order]
        return sent, (arrival[order] - sent).astype(np.int64)

    def retransmitted(self) -> np.ndarray:
        """Which of the packets sent carry sequence space that was sent before."""
        if not len(self.sent):
            return np.zeros(0, bool)
        begin = ahead(self.sent["seq"], self.first_seq or 0)
        highest = np.maximum.accumulate(begin + self.sent["payload_bytes"])
        return np.concatenate([[False], begin[1:] < highest[:-1]])

    def round_trips(self) -> tuple[np.ndarray, np.ndarray]:
        """(time of the data packet, round trip) of acknowledgements of the packet that arrived last before them."""
        return self.round_trips_of()[1:]

    def round_trips_of(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row of the data packet in `sent`, its time, and the round trip."""
        if not len(self.answers) or not len(self.arrived) or not len(self.acks):
            return np.zeros(0, int), np.zeros(0, np.uint64), np.zeros(0, np.int64)
        last = np.searchsorted(self.arrived["t_ns"], self.answers["t_ns"], side="right") - 1
        end = (self.arrived["seq"].astype(np.int64) + self.arrived["payload_bytes"]) % (1 << 32)
        row_sent = np.full(len(self.arrived), -1)
        row_sent[self.where[self.where >= 0]] = np.nonzero(self.where >= 0)[0]
        back = match(self.answers, self.acks)
        good = (last >= 0) & (back >= 0)
        good[good] &= (end[last[good]] == self.answers["ack"][good]) & (row_sent[last[good]] >= 0)
        # duplicates say nothing of a packet
        new = np.concatenate([[True], np.diff(self.answers["ack"].astype(np.int64)) != 0])
        good &= new
        rows = row_sent[last[good]]
        sent = self.sent["t_ns"][rows]
        return rows, sent, (self.acks["t_ns"][back[good]] - sent).astype(np.int64)

    def ack_delays(self) -> tuple[np.ndarray, np.ndarray]:
        """(time sent, delay) of acknowledgements that came to the sender."""
        back = match(self.answers, self.acks)
        came = back >= 0
        sent = self.answers["t_ns"][came]
        return sent, (self.acks["t_ns"][back[came]] - sent).astype(np.int64)

    def duplicates(self) -> np.ndarray:
        """Which of `acks` acknowledge what the one before did, and carry neither data, SYN nor FIN."""
        if not len(self.acks):
            return np.zeros(0, bool)
        same = np.concatenate([[False], np.diff(self.acks["ack"].astype(np.int64)) == 0])
        return same & (self.acks["payload_bytes"] == 0) & (self.acks["flags"] & (SYN | FIN) == 0)

    def acknowledged(self, t_ns: float) -> int:
        """Bytes acknowledged to the sender by a time."""
        n = np.searchsorted(self.acks["t_ns"], t_ns, side="right")
        return int(max(0, ahead(self.acks["ack"][:n], self.first_seq).max())) if n and self.first_seq is not None else 0

    def completed(self, size: int) -> float | None:
        """Of a transfer that is the connection's only one: ms from its begin until so many bytes were acknowledged;
        None where they never were.
        """
        done = self.acks["t_ns"][ahead(self.acks["ack"], self.first_seq) >= size]
        return (int(done[0]) - self.open_ns) / 1e6 if len(done) else None

    def bursts(self, size: int) -> list[tuple[int, float | None]]:
        """(begin in ns, ms until it was acknowledged or None) of bursts of so many bytes, one after the other."""
        if self.first_seq is None or not len(self.sent):
            return []
        last = ahead(self.sent["seq"], self.first_seq) + self.sent["payload_bytes"]
        acked, found = ahead(self.acks["ack"], self.first_seq), []
        for n in range(int(-(-last.max() // size))):
            first_ns = int(self.sent["t_ns"][last > n * size][0])
            done = self.acks["t_ns"][acked >= (n + 1) * size]
            found.append((first_ns, (int(done[0]) - first_ns) / 1e6 if len(done) else None))
        return found
