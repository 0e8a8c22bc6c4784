"""Samples of the capacity forecast: a station at a decision instant, what the access point knows of it, and what it
carried in the time that follows while data waited for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from oal_training.capacity import rows
from oal_training.errors import TrainingError
from oal_training.window import capture
from oal_training.window.dataset import as_of, by_flow

STEP_US = 100_000  # a decision interval
HORIZONS_US = (100_000, 200_000, 500_000)
PAST = (1, 2, 5, 10)  # steps over which rates are taken
WAITS_BYTES = 6_000  # on its way at the access point: less, and the sender may be what limits the station
STALE_US = 2_000_000  # a station without a row for so long is gone (a batch brings each that is there: 252 ms)
FLOOR_KBPS = 64.0  # rates below count as this: a ratio to nothing says nothing
MOVED = 0.25  # of the PHY rate within a second: the link moves

STATION = ("mac", "tx_bytes", "tx_pkts", "tx_retries", "tx_failed", "tx_airtime_us", "tx_bitrate_kbps",
           "signal_avg_dbm")
INPUTS = (
    *(f"rate_{n}00ms_kbps" for n in PAST), *(f"air_{n}00ms" for n in PAST), *(f"ap_air_{n}00ms" for n in PAST),
    *(f"retry_{n}00ms" for n in PAST), *(f"busy_{n}00ms" for n in PAST), "failed_1s", "rate_ewma_400ms_kbps",
    "rate_ewma_1s_kbps", "phy_kbps", "phy_change", "phy_least_1s", "signal_dbm", "backlog_bytes", "ap_backlog_bytes",
    "unacked_bytes", "ap_unacked_bytes", "active_stations", "flows", "ap_flows", "yield_1s"
)


@dataclass(frozen=True, eq=False)
class Samples:
    """m samples.

    x      float64[m, k], columns INPUTS, NaN where the access point does not know
    y      {horizon_us: float64[m]}: kbit/s that the station carried; NaN where data did not wait throughout
    site   str[m]; part str[m], of the corpus; ap_run str[m]; mac int64[m]
    new    bool[m]: nothing on its way half a second before; moving bool[m]: its PHY rate moved within a second
    """

    x: np.ndarray
    y: dict[int, np.ndarray]
    site: np.ndarray
    part: np.ndarray
    ap_run: np.ndarray
    mac: np.ndarray
    new: np.ndarray
    moving: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, keep) -> Samples:
        return replace(self, y={h: v[keep] for h, v in self.y.items()},
                       **{f.name: getattr(self, f.name)[keep] for f in fields(self) if f.name != "y"})

    def column(self, name: str) -> np.ndarray:
        return self.x[:, INPUTS.index(name)]


def back(values: np.ndarray, steps: int) -> np.ndarray:
    """Increase over the last steps along the last axis; NaN where there is no such past."""
    out = np.full(values.shape, np.nan)
    out[..., steps:] = values[..., steps:] - values[..., :-steps]
    return np.where(out >= 0, out, np.nan)  # a counter that went back is a station that came back


def smoothed(rate: np.ndarray, tau_us: int) -> np.ndarray:
    """As the control law smooths, at decision instants: weight step/tau, from the first known value on."""
    out, mean, weight = np.full(rate.shape, np.nan), np.full(rate.shape[:-1], np.nan), min(1.0, STEP_US / tau_us)
    for i in range(rate.shape[-1]):
        now = rate[..., i]
        mean = np.where(np.isnan(mean), now, np.where(np.isnan(now), mean, mean + weight * (now - mean)))
        out[..., i] = mean
    return out


def _grid(found: dict, key: str, entities: list[int], instants: np.ndarray, columns: tuple[str, ...],
          age_us: int) -> dict[str, np.ndarray]:
    """Columns at instants, float64[entities, instants], NaN where an entity is not there."""
    out = {c: np.full((len(entities), len(instants)), np.nan) for c in columns}
    mine = by_flow(found[key], found["ts_us"])
    for i, entity in enumerate(entities):
        if entity not in mine:
            continue
        at = as_of(found["ts_us"][mine[entity]], instants, age_us)
        for c in columns:
            out[c][i] = np.where(at >= 0, found[c][mine[entity]][at], np.nan)
    return out


def _flows(path: Path, macs: list[int], instants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(bytes on their way, flows that moved in the last second) of each station, float64[stations, instants]."""
    unacked, active = np.zeros((2, len(macs), len(instants)))
    try:
        found, _ = capture.flow_rows(path)
    except TrainingError:  # no download in the whole capture
        return unacked, active
    of = rows.flow_stations(path)
    flows = sorted({int(f) for f in found["flow_id"]} & {f for f, mac in of.items() if mac in macs})
    at = _grid(found, "flow_id", flows, instants, ("unacked_bytes", "sent_bytes"), 300_000)
    moved = back(at["sent_bytes"], 10) > 0
    for i, flow in enumerate(flows):
        row = macs.index(of[flow])
        unacked[row] += np.nan_to_num(at["unacked_bytes"][i])
        active[row] += moved[i] | (np.isnan(back(at["sent_bytes"], 10)[i]) & (np.nan_to_num(at["sent_bytes"][i]) > 0))
    return unacked, active


def _waiting(path: Path, macs: list[int], instants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(backlog of each station's own queues [stations, instants], of all of the access point [instants])."""
    own = rows.table_rows(path, "station_ac", ("mac", "ac", "backlog_bytes"))
    key = own["mac"] * 4 + own["ac"]
    at = _grid(own | {"key": key}, "key", [m * 4 + ac for m in macs for ac in range(4)], instants, ("backlog_bytes",),
               STALE_US)["backlog_bytes"]
    per = np.nan_to_num(at).reshape(len(macs), 4, len(instants)).sum(axis=1)
    shared = rows.table_rows(path, "queue", ("handle", "backlog_bytes"))
    handles = sorted({int(h) for h in shared["handle"]})
    of_queues = np.nan_to_num(_grid(shared, "handle", handles, instants, ("backlog_bytes",), STALE_US)["backlog_bytes"])
    return per, per.sum(axis=0) + (of_queues.max(axis=0) if handles else 0)


def of_capture(path: Path) -> dict | None:
    """x, y, mac, new, moving of a capture; None where no station was sent anything."""
    link = rows.table_rows(path, "station", STATION)
    if not len(link["ts_us"]):
        return None
    macs = sorted({int(m) for m in link["mac"]})
    first, last = int(link["ts_us"].min()), int(link["ts_us"].max())
    instants = np.arange(first // STEP_US + 1, last // STEP_US + 1) * STEP_US
    at = _grid(link, "mac", macs, instants, STATION[1:], STALE_US)
    air = rows.table_rows(path, "channel", ("busy_ms",))
    when = as_of(air["ts_us"], instants, STALE_US) if len(air["ts_us"]) else np.full(len(instants), -1)
    busy = np.where(when >= 0, air["busy_ms"][when] if len(air["ts_us"]) else 0, np.nan)
    unacked, flows = _flows(path, macs, instants)
    backlog, ap_backlog = _waiting(path, macs, instants)

    everybody = np.ones((len(macs), 1))
    rate = {n: back(at["tx_bytes"], n) * 8e3 / (n * STEP_US) for n in PAST}
    share = {n: back(at["tx_airtime_us"], n) / (n * STEP_US) for n in PAST}
    phy, packets = at["tx_bitrate_kbps"], {n: back(at["tx_pkts"], n) for n in PAST}
    past_phy = np.stack([np.roll(phy, i, axis=1) for i in range(11)])
    for i in range(11):
        past_phy[i, :, :i] = np.nan
    with np.errstate(all="ignore"):
        change = phy / past_phy[10] - 1
        moved = np.nanmax(past_phy, axis=0) > (1 + MOVED) * np.nanmin(past_phy, axis=0)
        columns = [
            *(rate[n] for n in PAST), *(share[n] for n in PAST),
            *(everybody * np.nansum(share[n], axis=0) for n in PAST),
            *(back(at["tx_retries"], n) / np.maximum(packets[n], 1) for n in PAST),
            *(everybody * back(busy, n) * 1e3 / (n * STEP_US) for n in PAST), back(at["tx_failed"], 10),
            smoothed(rate[1], 400_000), smoothed(rate[1], 1_000_000), phy, change, np.nanmin(past_phy, axis=0),
            at["signal_avg_dbm"], backlog, everybody * ap_backlog, unacked, everybody * unacked.sum(axis=0),
            everybody * (unacked >= WAITS_BYTES).sum(axis=0), flows, everybody * flows.sum(axis=0),
            rate[10] / (phy * share[10]),
        ]
    x = np.stack(columns, axis=-1)
    x[np.isinf(x)] = np.nan
    waits, y = unacked >= WAITS_BYTES, {}
    for horizon in HORIZONS_US:
        n = horizon // STEP_US
        ahead = np.full(rate[1].shape, np.nan)
        ahead[:, :-n] = (at["tx_bytes"][:, n:] - at["tx_bytes"][:, :-n]) * 8e3 / horizon
        throughout = np.ones(waits.shape, bool)
        throughout[:, -n:] = False
        for i in range(n + 1):
            throughout[:, :waits.shape[1] - n] &= waits[:, i:waits.shape[1] - n + i]
        y[horizon] = np.where(throughout & (ahead >= 0), ahead, np.nan)
    before = np.zeros(waits.shape)
    before[:, 5:] = unacked[:, :-5]
    before[:, :5] = np.nan
    keep = ~np.isnan(y[HORIZONS_US[0]]) & ~np.isnan(rate[1])
    return {"x": x[keep], "y": {h: v[keep] for h, v in y.items()}, "new": (before == 0)[keep], "moving": moved[keep],
            "mac": np.repeat(np.array(macs)[:, None], len(instants), axis=1)[keep]}


def of_corpus(folder: Path, log=print) -> Samples:
    """Samples of every AP-run of the corpus (`lab/corpus/run --where`). TrainingError where there is none."""
    try:
        index = json.loads((folder / "corpus.json").read_text())["ap_runs"]
    except OSError as error:
        raise TrainingError(f"{folder}: {error.strerror}; lab/corpus/run makes the corpus") from None
    parts, of = [], []
    for i, one in enumerate(index):
        path = folder.parent.parent / one["capture"]
        if path.exists() and (found := of_capture(path)) is not None:
            parts.append(found)
            of.append(one)
        if i % 20 == 19:
            log(f"{i + 1} of {len(index)} captures")
    if not parts:
        raise TrainingError(f"{folder}: no capture of the corpus is there")

    def said(key: str) -> np.ndarray:
        return np.repeat([one[key] for one in of], [len(part["x"]) for part in parts])

    return Samples(x=np.concatenate([p["x"] for p in parts]),
                   y={h: np.concatenate([p["y"][h] for p in parts]) for h in HORIZONS_US},
                   site=said("site"), part=said("part"), ap_run=said("ap_run"),
                   **{k: np.concatenate([p[k] for p in parts]) for k in ("mac", "new", "moving")})
