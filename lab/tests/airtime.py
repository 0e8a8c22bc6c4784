"""The medium's arithmetic, written down again from the standard and independent of medium/timing.h. Microseconds, bits.

802.11-2020: OFDM timing table 17-21 (slot 9, SIFS 16), EDCA 10.23.2 (AIFS = SIFS + AIFSN slots), A-MPDU 9.7, VHT PHY
21.3.
Contention: G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3),
2000, eqs. 7-13.
"""
import math

SLOT, SIFS, AIFSN_BE, CW_MIN, CW_MAX = 9.0, 16.0, 3, 15, 1023
AIFS = SIFS + AIFSN_BE * SLOT
DATAGRAM = 1472  # UDP payload
MPDU = 26 + 8 + 8 + 20 + 8 + DATAGRAM + 8 + 4  # QoS header, CCMP, LLC, IP, UDP, payload, MIC, FCS
SUBFRAME = 4 + math.ceil(MPDU / 4) * 4  # delimiter, padding


def legacy(mbps: float, octets: int) -> float:
    return 20 + 4 * math.ceil((22 + 8 * octets) / (4 * mbps))


def ppdu(mbps: float, octets: int, streams: int) -> float:
    return 36 + 4 * streams + 4 * math.ceil((22 + 8 * octets) / (4 * mbps))


def frames_in_ampdu(mbps: float, streams: int, limit_us: float = 4000, limit_octets: int = 65535) -> int:
    n = 1
    while n < 64 and (n + 1) * SUBFRAME <= limit_octets and ppdu(mbps, (n + 1) * SUBFRAME, streams) <= limit_us:
        n += 1
    return n


def exchange(mbps: float, streams: int, frames: int) -> float:
    """RTS, CTS, A-MPDU, block ACK with their SIFS; RTS only above 1 ms."""
    data = ppdu(mbps, frames * SUBFRAME, streams)
    protection = legacy(24, 20) + SIFS + legacy(24, 14) + SIFS if data > 1000 else 0
    return protection + data + SIFS + legacy(24, 32)


def alone_mbps(mbps: float, streams: int) -> float:
    """UDP goodput of one saturated station: each A-MPDU costs AIFS, the mean backoff and its exchange."""
    n = frames_in_ampdu(mbps, streams)
    return n * 8 * DATAGRAM / (AIFS + CW_MIN / 2 * SLOT + exchange(mbps, streams, n))


def bianchi(stations: int) -> tuple[float, float]:
    """(tau, p): chance that a station transmits in a slot, and that such a transmission collides."""
    window, stages = CW_MIN + 1, round(math.log2((CW_MAX + 1) / (CW_MIN + 1)))
    low, high = 0.0, 1.0
    for _ in range(100):
        p = (low + high) / 2
        tau = 2 * (1 - 2 * p) / ((1 - 2 * p) * (window + 1) + p * window * (1 - (2 * p) ** stages)) if p != 0.5 else \
            2 / (1 + window + window * stages / 2)
        low, high = (p, high) if 1 - (1 - tau) ** (stations - 1) > p else (low, p)
    return tau, p


def contended_mbps(stations: int, mbps: float, streams: int) -> tuple[float, float]:
    """(UDP goodput of all together, twice the collisions per transmission). Here a collision costs an RTS and the CTS
    that does not come.

    The second is what the medium counts, collisions and not their participants: a little below Bianchi's p, because
    three may collide.
    """
    tau, _ = bianchi(stations)
    n = frames_in_ampdu(mbps, streams)
    some = 1 - (1 - tau) ** stations
    one = stations * tau * (1 - tau) ** (stations - 1)
    success = AIFS + exchange(mbps, streams, n)
    collision = AIFS + legacy(24, 20) + SIFS + legacy(24, 14)
    slot = (1 - some) * SLOT + one * success + (some - one) * collision
    return one * n * 8 * DATAGRAM / slot, 2 * (some - one) / (stations * tau)
