"""How a table's columns are headed, and what a cell of each leads to."""
import re

from oal_grafana.units import CLOCK

#: Headers that do not follow from the column's name. Units stand in the cells.
HEADERS = {
    "access_point": "Access point", "ap_id": "Access point", "aps": "Access points", "aps_applied": "Applied by",
    "aps_rejected": "Rejected by", "bytes_acked": "Data", "bytes_now": "Size", "came_true": "Came true",
    "ce_ratio": "Marked CE", "client": "Client", "client_network": "Network", "clients": "Clients",
    "clock_error_us": "Clock error", "compared_items": "Items compared", "congestion_loss": "Queue loss", "cpu": "CPU",
    "cwnd_bytes": "CWND", "data": "Direction", "days": "Expires in", "flow": "Flow", "halved": "Rate halved",
    "incomplete_windows": "Incomplete", "judged_predictions": "Judged", "kbytes_per_s": "Data rate", "last_psi": "PSI",
    "last_said": "Last answer", "late": "Late ticks", "late_batches": "Late", "lead_p50_ms": "Lead time, median",
    "lead_p90_ms": "Lead time, p90", "limited_by_ends_ratio": "Ends' limit", "looked_at_each_ms": "Looked at each",
    "made_by": "Made by", "mbit_per_airtime_s": "Data per airtime", "mbit_per_s": "Throughput", "megabytes": "Data",
    "mended": "Counters mended", "missing_batches": "Missing", "most_in_partition": "Most in a partition",
    "n_batches": "Batches", "of_it_sampling": "CPU for sampling", "onset_average_precision": "Avg. precision",
    "parts_now": "Parts", "persistence_accuracy": "Persistence", "pkts_per_s": "Packets",
    "known_after_p50_ms": "Known after, median", "poor_or_bad": "Poor or Bad", "queue_us": "In queue",
    "queued_p50_ms": "Queued, median", "records_at_most": "Records at most", "retrans_ratio": "Sent again",
    "rows_now": "Rows", "rows_per_s": "Rows", "rtt_above_gain_ms": "Waits more by", "rtt_above_ms": "RTT above",
    "rtt_avg_ms": "RTT, mean", "rtt_inflation": "RTT over least", "rtt_max_ms": "RTT, most",
    "rtt_min_ms": "RTT, least", "rtt_p50_ms": "RTT, median", "rtt_p95_ms": "RTT, p95",
    "sent_again_gain": "Repeats more by", "sent_pkts": "Segments", "sessions": "Connections",
    "sessions_there": "Of the other", "set_errors": "Not set", "signal_dbm_avg": "Signal, mean", "slot": "Released as",
    "speed_gain": "Faster by", "throughput_kbps": "Throughput", "total_bytes_per_s": "Data rate",
    "total_rows_per_s": "Rows", "ts": "Time", "up_share": "Time up", "why": "Reason",
    "worst_ap_to_broker_p99_ms": "To the broker, p99 (worst)", "worst_ap_to_row_p50_ms": "To a row, median (worst)",
    "worst_ap_to_row_p99_ms": "To a row, p99 (worst)"
}
_UNIT = re.compile(r"_(ns|us|ms|s|bytes|kbps|dbm|pkts)(?=_|\Z)")
_ABBREVIATIONS = {"rtt": "RTT", "ack": "ACK", "acks": "ACKs", "psi": "PSI", "p50": "median", "avg": "mean"}

#: Characters of a cell, where they are more than a figure's.
_CELLS = {
    "access_point": 10, "algorithm": 9, "ap_id": 10, "backend": 7, "backup": 20, "beyond_chance": 32, "class": 10,
    "client": 19, "client_network": 18, "clock": 14, "component": 10, "done": 17, "error": 24, "example": 20,
    "feature": 20, "flow": 18, "host": 12, "instance": 16, "last_reason": 14, "last_said": 17, "made_by": 11,
    "model": 12, "path": 12, "queue": 20, "reason": 11, "scope": 16, "server": 19, "source": 6, "station": 17,
    "subject": 20, "table": 16, "topic": 16, "version": 7, "why": 26, "written_as": 10
}
_FIGURE, _MOMENT, _COUNT = 10, 19, 6
_CHARACTER_PX, _CELL_PX, _HEADER_PX = 7.2, 14, 22  # of Grafana 9's table: a letter, edges
_WIDE, _WIDE_PX = "mMW", 4  # letters that need more, of which the edges have room for one; how much


def least_px(column: str, unit: str | None) -> int:
    """How wide a column must be for its header and its cells to be read."""
    cell = _MOMENT if unit == "dateTimeAsIso" else len(CLOCK) - 5 if unit == CLOCK else _FIGURE if unit else _COUNT
    title = header(column)
    wide = max(0, sum(letter in _WIDE for letter in title) - 1) * _WIDE_PX
    return round(
        max(len(title) * _CHARACTER_PX + wide + _HEADER_PX, _CELLS.get(column, cell) * _CHARACTER_PX + _CELL_PX))


def header(column: str) -> str:
    """`delay_max_ms` is "Delay max"; what that does not make readable stands in HEADERS."""
    if column in HEADERS:
        return HEADERS[column]
    words = [_ABBREVIATIONS.get(word, word) for word in _UNIT.sub("", column).split("_")]
    return " ".join((words[0][:1].upper() + words[0][1:], *words[1:]))


def _to(board: str, **variables: str) -> str:
    chosen = "".join(f"&var-{name}={value}" for name, value in variables.items())
    return f"/d/{board}?${{__url_time_range}}{chosen}"


def _ap(column: str) -> list[tuple[str, str]]:
    value = f"${{__data.fields.{column}}}"
    return [("Where is it congested?", _to("oal-congested", ap=value, detail=value)),
            ("Is its data arriving?", _to("oal-arriving", ap=value)),
            ("Is its model right?", _to("oal-model", ap=value)),
            ("Does control help it?", _to("oal-control", ap=value))]


def _of_ap(have: tuple[str, ...]) -> dict[str, str]:
    """The access point of a row that names a station or a flow: its own column, or the one in detail."""
    value = "${__data.fields.ap_id}" if "ap_id" in have else "${detail}"
    return {"ap": value, "detail": value}


def links(column: str, have: tuple[str, ...]) -> list[tuple[str, str]]:
    """(title, URL) of what a cell of the column names; `have` are the columns of the row."""
    cell = f"${{__data.fields.{column}}}"
    match column:
        case "ap_id" | "access_point" | "written_as":
            return _ap(column)
        case "host":
            return [("How does this host serve its clients?", _to("oal-hosts", host=cell)),
                    ("Is its data arriving?", _to("oal-arriving", ap=cell))]
        case "client_network":
            return [("This network over time", _to("oal-hosts", host="${__data.fields.host}", network=cell))]
        case "site":
            return [("Where is this site congested?", _to("oal-congested", site=cell)),
                    ("Does control help this site?", _to("oal-control", site=cell))]
        case "station":
            return [("This station: queue, airtime, flows", _to("oal-congested", **_of_ap(have), station=cell))]
        case "flow":
            return [("This flow over time", _to("oal-congested", **_of_ap(have), flow=cell))]
        case "policy":
            return [("What this policy does", _to("oal-control", policy=cell))]
        case "in_force":
            return [("What this file in force does", _to("oal-control", in_force=cell))]
        case "made_by" if "version" in have:  # a value of the variable there: `registry 3`, or `online` for all trees
            return [("Is this model right?", _to("oal-model", model=cell))]
    return []
