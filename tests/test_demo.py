"""The demo's path in small: the real exporter replays the committed captures as three APs; every stage moves and
nothing is lost.
"""

from __future__ import annotations

import subprocess
import time

from flow import until
from oal_local import demo
from oal_local.clickhouse import since
from oal_local.stages import Stages, verdict


def edges(platform, since_us: int) -> int:
    """Packets that only one of the two counts can have: a queue's drop shows in sequence space when it is sent again,
    up to a second later. Dropped in an access point's last second, or sent again in its first.
    """
    query = f"""SELECT sum(lost + dropped) FROM (
        SELECT argMin(congestion_lost_pkts, ts) AS lost, argMax(queue_drop_pkts, ts) AS dropped FROM oal.label
        WHERE {since(since_us)} AND toUnixTimestamp64Micro(ts) % 1000000 = 0 GROUP BY site, ap_id)"""
    return int(platform.clickhouse.query(query))


def test_replayed_captures_arrive_whole_and_the_two_counts_of_loss_agree(platform, tmp_path):
    stages = Stages(platform, int(time.time() * 1e6))
    source = demo.Replay(platform, tmp_path, 3)
    source.start()
    try:
        until("labels of several seconds and items are there", lambda:
              (s := stages.read())["label_windows"] >= 3 * 100 and s["items"] >= 3 * 80)
    finally:
        counted, let_go = source.stop()
    last = demo.drain(stages, counted)
    stages.close()
    at_the_edges = edges(platform, stages.since_us)
    assert verdict(last, counted, 3, let_go) == []
    answer = subprocess.run(["bash", "-c", demo.example_query(platform)], capture_output=True, text=True,
                            check=True).stdout
    print(answer)
    assert "ap-congested" in answer, f"the query that the demo prints says: {answer}"
    print(
        f"\n  congestion lost {last['congestion_lost_pkts']} by sequence space, {last['queue_drop_pkts']} by the"
        " kernel's queues"
    )
    assert last["queue_drop_pkts"] > 100, "the captures hold a congested access point"
    slack = 0.1 * last["queue_drop_pkts"] + at_the_edges
    assert abs(last["congestion_lost_pkts"] - last["queue_drop_pkts"]) <= slack, f"{at_the_edges} at the edges"
