"""What a session says of its path: columns of sender_session, as numbers that trees take.

Rates are per second and counts are shares, so that none depends on how long the session was.
"""
from __future__ import annotations

import numpy as np
import pandas as pd

#: What the paper's trees see: delay, ACKs (here a second), share sent again.
PAPER = ("rtt_mean_us", "acks_per_s", "retrans_ratio")
#: BBR hides loss and queue: these it does not.
MORE = ("min_rtt_us", "rttvar_us", "delivery_mbps")
#: What else a sender's kernel has.
ALL = (*PAPER, *MORE, "rtt_p95_us", "queueing_p95_us", "rttvar_share", "delivery_mean_mbps", "speed_mbps",
       "dsack_ratio", "reorderings_per_s", "reordering_pkts", "cwnd_mean_pkts", "product_pkts")


def share(of: pd.Series, whole: pd.Series) -> np.ndarray:
    """Of a count; 0 where there is no whole: nothing was sent, so nothing was sent again."""
    return np.divide(of, whole, out=np.zeros(len(of)), where=np.asarray(whole) > 0)


def speed_mbps(sessions: pd.DataFrame) -> pd.Series:
    """What arrived, by the whole time of the session, its beginning included."""
    return sessions.bytes_acked * 8 / sessions.seen_us


def queueing_p95_us(sessions: pd.DataFrame) -> pd.Series:
    """As a sender knows it: smoothed round trips above the smallest one."""
    return (sessions.rtt_us_p95 - sessions.min_rtt_us).clip(lower=0)


def statistics(sessions: pd.DataFrame) -> pd.DataFrame:
    """ALL of each session."""
    seconds = sessions.seen_us / 1e6
    return pd.DataFrame({
        "rtt_mean_us": sessions.rtt_us_mean, "acks_per_s": sessions.segs_in / seconds,
        "retrans_ratio": share(sessions.retrans_pkts, sessions.data_segs_out), "min_rtt_us": sessions.min_rtt_us,
        "rttvar_us": sessions.rttvar_us_mean, "delivery_mbps": sessions.delivery_rate_bytes_p95 * 8e-6,
        "rtt_p95_us": sessions.rtt_us_p95, "queueing_p95_us": queueing_p95_us(sessions),
        "rttvar_share": share(sessions.rttvar_us_mean, sessions.min_rtt_us),
        "delivery_mean_mbps": sessions.delivery_rate_bytes_mean * 8e-6, "speed_mbps": speed_mbps(sessions),
        "dsack_ratio": share(sessions.dsack_dups, sessions.data_segs_out),
        "reorderings_per_s": sessions.reorderings / seconds, "reordering_pkts": sessions.reordering_pkts,
        "cwnd_mean_pkts": sessions.cwnd_pkts_mean,
        "product_pkts": sessions.delivery_rate_bytes_p95 * sessions.min_rtt_us / 1e6 / sessions.mss_bytes
    })[list(ALL)]
