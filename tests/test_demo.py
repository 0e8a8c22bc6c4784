"""The demo's path in small: the real exporter replays the committed captures as three APs; every stage moves and
nothing is lost.
"""

from __future__ import annotations

import subprocess
import time

from flow import until
from oal_local import demo
from oal_local.stages import Stages, verdict


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
    assert abs(last["congestion_lost_pkts"] - last["queue_drop_pkts"]) <= 0.1 * last["queue_drop_pkts"]
