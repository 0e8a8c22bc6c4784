"""What Lin and Jiang (2020) report, and which of our columns measures the same.

Its data were never published: 16 access points, three months. Ours stand beside it; they do not repeat it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Factor:
    """A row of Table 2. name: the paper's; tau, gain: its Kendall's tau and information gain with the congestion loss
    ratio; columns: features that measure it, the nearest first; none where an access point of ours has nothing alike.
    """

    name: str
    tau: float
    gain: float
    columns: tuple[str, ...]


#: Queue 3 is best effort. Its own columns first, where the items have them and they vary; those over all queues after;
#: then the qdisc's, which is the queue of an access point without queues a station (behind it those are always empty).
TABLE_2 = (
    Factor("backlog of queue 3", 0.331, 0.141, ("be_backlog_bytes", "backlog_bytes", "qdisc_backlog_bytes")),
    Factor("channel utilisation", 0.541, 0.169, ("channel_busy_ms",)),
    Factor("dropped in all queues", 0.311, 0.184, ("txq_drops_1s", "qdisc_drops_1s")),
    Factor("dropped in queue 3", 0.306, 0.182, ("be_drops_1s",)),
    Factor("arriving bytes of queue 3", 0.408, 0.150, ("down_bytes_1s",)),
    Factor("arriving packets of queue 5", 0.014, 0.140, ()),
    Factor("requeues of queue 3", 0.313, 0.087, ("qdisc_requeues_1s",)),
    Factor("retries over the links", -0.020, 0.016, ("tx_retries_1s",)),
    Factor("sent bytes", 0.290, 0.009, ("tx_rate_bps",)),
    Factor("received bytes", 0.256, 0.006, ("rx_bytes_1s",)),
    Factor("sending failed", -0.007, 0.003, ("tx_failed_1s",)),
    Factor("noise", -0.139, 0.003, ("noise_dbm",)),
    Factor("data rate in the data path", 0.8, 0.0, ("delivery_kbps",)),
)


@dataclass(frozen=True)
class Panel:
    """One of the nine distributions of Fig. 5. title: the paper's metric; columns: as in `Factor`."""

    title: str
    columns: tuple[str, ...]


FIG_5 = (
    Panel("arriving rate, queue 3", ("down_bytes_1s",)),
    Panel("arriving rate, queue 5", ()),
    Panel("data rate", ("delivery_kbps",)),
    Panel("backlog, queue 3", ("be_backlog_bytes", "backlog_bytes", "qdisc_backlog_bytes")),
    Panel("drop rate, queue 3", ("be_drops_1s", "txq_drops_1s", "qdisc_drops_1s")),
    Panel("retransmission rate", ("retry_permille_1s",)),
    Panel("requeues, queue 5", ("qdisc_requeues_1s",)),
    Panel("channel utilisation", ("channel_busy_ms",)),
    Panel("transmit utilisation", ("channel_tx_ms",)),
)

#: Section "measurement" and Fig. 4, of its windows: ratios.
LOSS_MEAN = 0.0677
LOSS_PERCENTILES = {50: 0.0357, 90: 0.33, 99: 0.77}

#: Columns that count losses, so their correlation with the loss ratio is no finding about a cause: a loss is stamped
#: when a queue dropped the packet, so drops are the losses themselves.
COUNTS_LOSSES = frozenset(
    ("retrans_pkts", "retrans_pkts_1s", "dup_acks", "loss_permille_1s", "loss_500ms_ago", "top_flow_retrans_1s",
     "txq_drops", "txq_drops_1s", "qdisc_drops_1s", "be_drops_1s", "vi_drops_1s", "txq_drop_permille_1s",
     "qdisc_drop_permille_1s")
)  # fmt: skip


def column(wanted: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    """The first of `wanted` that is among the features `names`, or None."""
    return next((name for name in wanted if name in names), None)
