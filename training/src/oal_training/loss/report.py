"""What a fit says, for people and for MLflow."""

from __future__ import annotations

from oal_training.loss.clusters import Clusters


def figures(fitted: Clusters) -> dict[str, float]:
    """Metrics of a run."""
    air, queue = fitted.centres()
    return {
        "silhouette": fitted.silhouette,
        "rtt_ratio": fitted.rtt_ratio,
        "usable": float(not fitted.refused),
        "points": float(fitted.points),
        "air_cwnd_pkts": float(air[0]),
        "air_rtt_us": float(air[1]),
        "queue_cwnd_pkts": float(queue[0]),
        "queue_rtt_us": float(queue[1]),
    }


def markdown(fitted: Clusters, connections: int) -> str:
    """The page."""
    air, queue = fitted.centres()
    names = ("air", "congestion") if fitted.agree else ("one", "the other")
    lines = [
        f"{fitted.points} points of {connections} connections; silhouette {fitted.silhouette:.2f}, round trips of the"
        f" centres differ {fitted.rtt_ratio:.2f} times.",
        "",
        "| cluster | window, segments | round trip, ms |",
        "|---|--:|--:|",
        f"| {names[0]} | {air[0]:.0f} | {air[1] / 1000:.0f} |",
        f"| {names[1]} | {queue[0]:.0f} | {queue[1] / 1000:.0f} |",
        "",
        "The clusters are used.",
    ]
    if fitted.refused:
        lines[-1] = f"Not used, each loss is congestion: {'; '.join(fitted.refused)}."
    return "\n".join(lines) + "\n"
