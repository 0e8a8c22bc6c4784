"""What a sender alone can say of a loss, from rows of `sender_tcp`: the rivals of a diagnosis at the access point.

`kmeans` is the published way (Moriyama and others, policies/loss-cause): of each connection, points of congestion
window and round trip, means of three; two clusters; a loss is of the queue where the newest point before it is in the
cluster of large windows and round trips. What the paper leaves open is as the policy has it (kmeans.yaml): logarithms,
z-scores; where the centres' signs disagree, always the queue. `kmeans_gated` calls all of a connection's losses the
queue's, too, where the clusters are none. `kmeans_rtt` has round trips alone."""
import bisect
import collections

import numpy as np
import yaml
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from .methods import POLICIES

CLASSES = ("kmeans", "kmeans_gated", "kmeans_rtt")
COLUMNS = ("cwnd_pkts", "rtt_us", "min_rtt_us", *CLASSES)
SAYS = yaml.safe_load((POLICIES / "loss-cause/kmeans.yaml").read_text(encoding="utf-8"))
SILHOUETTE_POINTS = 600  # of a connection, evenly spread


class Clusters:
    """Two of a sender's points; `queue`: which is congestion, None where nothing says."""

    def __init__(self, points: np.ndarray, gated: bool = False):
        logs = np.log1p(points)
        self.mean, self.scale = logs.mean(axis=0), logs.std(axis=0)
        self.scale[self.scale == 0] = 1
        at = (logs - self.mean) / self.scale
        self.queue = None
        if len(np.unique(at, axis=0)) < 2:
            return
        self.fitted = KMeans(2, n_init=SAYS["n_init"], max_iter=SAYS["max_iter"], random_state=0).fit(at)
        centres = self.fitted.cluster_centers_
        high = centres > centres[::-1]
        if high[0].all() != high[1].all():
            self.queue = int(high[1].all())
        if gated and self.queue is not None:
            few = np.linspace(0, len(at) - 1, min(len(at), SILHOUETTE_POINTS)).astype(int)
            labels = self.fitted.labels_[few]
            apart = silhouette_score(at[few], labels) if 1 < len(set(labels)) else 0
            rtt = np.expm1(centres[:, -1] * self.scale[-1] + self.mean[-1])
            if apart < SAYS["min_silhouette"] or rtt.max() < SAYS["min_rtt_ratio"] * rtt.min():
                self.queue = None

    def of(self, point: np.ndarray) -> str:
        """queue or air."""
        if self.queue is None:
            return "queue"
        at = (np.log1p(point) - self.mean) / self.scale
        return "queue" if int(self.fitted.predict(at[None])[0]) == self.queue else "air"


class Sender:
    """One connection's samples that came before its losses: those with nothing taken for lost."""

    def __init__(self, rows: list[dict]):
        calm = [row for row in rows if row["lost_pkts"] == 0 and row["rtt_us"] > 0]
        self.us = [row["ts"] - row["clock_offset_us"] * (row["clock_offset_error_us"] < 0xFFFFFFFF) for row in calm]
        self.least = [row["min_rtt_us"] for row in calm]
        raw = np.array([(row["cwnd_bytes"] / row["mss_bytes"], row["rtt_us"]) for row in calm], float).reshape(-1, 2)
        self.points = np.array([raw[max(0, n - SAYS["points_mean"] + 1):n + 1].mean(axis=0) for n in range(len(raw))])

    def at(self, us: float) -> int | None:
        """The newest point before a time."""
        n = bisect.bisect_right(self.us, us) - 1
        return n if n >= 0 else None


def add(lines: list[dict], rows: list[dict], one_way_us: float) -> None:
    """COLUMNS of lines of lost packets (diagnosis.py), by what their sender knew when it sent them again: None where
    they were not, or the connection has no sample. `one_way_us`: from the sender to the access point.
    """
    of_flow = collections.defaultdict(list)
    for row in rows:
        of_flow[row["flow_id"]].append(row)
    senders = {flow: sender for flow, mine in of_flow.items() if len((sender := Sender(mine)).points)}
    every = np.concatenate([sender.points for sender in senders.values()]) if senders else np.zeros((0, 2))
    fitted: dict = {}  # connections with few points have those of all connections of the run

    def clusters(flow: int, name: str) -> Clusters:
        own = senders[flow].points
        key = (flow if len(own) >= SAYS["min_points"] else None, name)
        if key not in fitted:
            points = own if key[0] is not None else every
            fitted[key] = Clusters(points[:, 1:] if name == "kmeans_rtt" else points, name == "kmeans_gated")
        return fitted[key]

    for one in lines:
        one.update(dict.fromkeys(COLUMNS))
        sender = senders.get(one["flow"])
        n = sender.at(one["resent_us"] - one_way_us) if sender and one["resent_us"] else None
        if n is None:
            continue
        point = sender.points[n]
        one.update(cwnd_pkts=round(float(point[0]), 1), rtt_us=round(float(point[1])), min_rtt_us=sender.least[n])
        for name in CLASSES:
            one[name] = clusters(one["flow"], name).of(point[1:] if name == "kmeans_rtt" else point)
