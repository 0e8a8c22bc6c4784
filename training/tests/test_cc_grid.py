"""Sessions that the lab played on its grid, as if a host had had them: what its one tree brings on paths that it did
not see. In the policy's page.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from oal_training.cc_select import command, gate, record
from oal_training.cc_select import experiment as experiments
from test_cc_sessions import found, row

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ROOT / "lab/evaluate/results/cc-select/sessions.parquet"
NUMBERS = {"cubic": 1, "reno": 2, "bbr": 3, "vegas": 4, "westwood": 5, "illinois": 6}


@pytest.fixture(scope="module")
def played():
    """Of drop-tail paths, each a network of its own; two sessions of each congestion control, minutes apart."""
    kept = pd.read_parquet(SESSIONS)
    kept = kept[kept.queue == "fifo"]
    kept["network"], rows = kept.groupby("condition").ngroup(), []
    for n, s in enumerate(kept.to_dict("records")):
        rows.append(row(
            n / 1000, NUMBERS[s["cc"]], prefix=s["network"], rtt_mean_us=round(s["rtt_us_mean"]),
            rtt_p95_us=round(s["rtt_us_p95"]), rttvar_us=round(s["rttvar_us_mean"]),
            delivery_rate_bps=round(8 * s["delivery_rate_bytes_p95"]),
            cwnd_bytes=round(s["cwnd_pkts_mean"] * s["mss_bytes"]), busy_us=int(s["seen_us"]),
            **{name: int(s[name]) for name in ("seen_us", "bytes_acked", "data_segs_out", "retrans_pkts", "min_rtt_us",
                                               "reordering_pkts", "mss_bytes")},
        ))
    return found(rows)


@pytest.mark.parametrize(("utility", "words"), [("queue", "with a price"), ("speed", "for speed alone")])
def test_what_the_page_says_of_the_grid(played, utility, words):
    made = command.fit(played, experiments.load().changed(utility=utility, least_sessions=1, min_bytes=0),
                       log=lambda _line: None)
    gain = made.judged.over_best_fixed
    assert experiments.name_of(experiments.candidates()[made.judged.fixed]) == "bbr"
    page = " ".join((ROOT / "policies/cc-select/README.md").read_text().split())
    assert f"{words} {gain.percent:+.1f} % [{gain.low:+.1f}, {gain.high:+.1f}] over BBR for all" in page
    assert bool(gate.judge(record.figures(made), gate.rules("cc-select")).refused) == (utility == "speed")
    assert made.networks == 285 and made.judged.over_same.percent > 30
