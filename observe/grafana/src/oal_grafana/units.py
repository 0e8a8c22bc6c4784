"""Figures as Grafana writes them, for the units that the dashboards use."""

_BINARY = ("", "Ki", "Mi", "Gi", "Ti")
_DECIMAL = ("", "k", "M", "G", "T")
_BASE = {
    "bytes": ("B", 1024, 1), "decmbytes": ("B", 1000, 1e6), "Bps": ("B/s", 1000, 1), "KBs": ("B/s", 1000, 1e3),
    "bps": ("b/s", 1000, 1), "Kbits": ("b/s", 1000, 1e3), "Mbits": ("b/s", 1000, 1e6), "short": ("", 1000, 1),
    "none": ("", None, 1), "count:/s": ("/s", 1000, 1), "dBm": ("dBm", None, 1),
    "suffix:d": ("d", None, 1)
}
_TIME = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
CLOCK = "time:HH:mm:ss.SSS"  # where the day is plain
UNITS = {*_BASE, *_TIME, "percentunit", "dateTimeAsIso", CLOCK}
#: Those that Grafana's list of units does not have: what stands after the colon is shown as it is.
FREE = ("suffix:", "count:", "time:")


def plain(value: float, decimals: int | None = None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def shown(value, unit: str, decimals: int | None = None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value[:19] if unit == "dateTimeAsIso" else value[11:23] if unit == CLOCK else value
    if unit == "percentunit":
        return f"{value * 100:.{decimals}f} %" if decimals is not None else f"{plain(round(value * 100, 2))} %"
    if unit in _TIME:
        seconds = value * _TIME[unit]
        for name, factor in (("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
            if abs(seconds) >= factor:
                return f"{seconds / factor:.3g} {name}"
        return "0 s"
    name, step, factor = _BASE.get(unit, ("", None, 1))
    value *= factor
    if step is None:
        return f"{plain(value, decimals)} {name}".strip()
    prefixes = _BINARY if step == 1024 else _DECIMAL
    index = 0
    while abs(value) >= step and index < len(prefixes) - 1:
        value /= step
        index += 1
    return f"{plain(value, decimals)} {prefixes[index]}{name}".strip()
