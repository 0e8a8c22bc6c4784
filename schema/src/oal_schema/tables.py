"""Tables of the contract and their columns: types, ranges, ClickHouse columns."""

from __future__ import annotations

from dataclasses import dataclass

#: size in bytes in memory, signed, ClickHouse type
TYPES = {
    "U8": (1, False, "UInt8"),
    "U16": (2, False, "UInt16"),
    "U32": (4, False, "UInt32"),
    "U64": (8, False, "UInt64"),
    "I8": (1, True, "Int8"),
    "I16": (2, True, "Int16"),
    "I32": (4, True, "Int32"),
    "I64": (8, True, "Int64"),
    "MAC": (8, False, "UInt64"),
    "NAME": (2, False, "LowCardinality(String)"),
    "FLOW": (2, False, "FLOW"),
}
#: what a column of type FLOW becomes in ClickHouse
FLOW_COLUMNS = [
    ("flow_id", "UInt64", "ZSTD(1)", "Flow: 64-bit FNV-1a of its 5-tuple"),
    ("client_addr", "IPv6", "ZSTD(1)", "Address on the Wi-Fi side; IPv4 as ::ffff:a.b.c.d"),
    ("server_addr", "IPv6", "ZSTD(1)", "Address on the wired side; IPv4 as ::ffff:a.b.c.d"),
    ("client_port", "UInt16", "ZSTD(1)", "Port on the Wi-Fi side"),
    ("server_port", "UInt16", "ZSTD(1)", "Port on the wired side"),
    ("station_mac", "UInt64", "ZSTD(1)", "Station that carries the flow; 0 while unknown"),
]
#: what every raw table starts with
PREFIX_COLUMNS = [
    ("ap_id", "LowCardinality(String)", "ZSTD(1)", "Access point"),
    ("ts", "DateTime64(6, 'UTC')", "Delta(8), ZSTD(1)", "Time of the row, the AP's clock"),
    ("boot_id", "UInt64", "ZSTD(1)", "Incarnation of the exporter; counters restart with it"),
    ("batch_seq", "UInt64", "Delta(8), ZSTD(1)", "Sequence number of the batch that brought the row"),
]


class SchemaError(ValueError):
    """The schema's own files contradict each other; the message names file and item."""


@dataclass(frozen=True)
class Column:
    name: str
    index: int
    field: int
    kind: str
    type: str
    unit: str
    change: bool
    optional: int  #: bit of run_absent, or -1 where a value is always known
    counter_bits: int
    source: str
    comment: str
    codec: str
    stored_as: str  #: column of the table's `stored_as`
    normal: str  #: ClickHouse default, an SQL literal, or ""

    @property
    def size(self) -> int:
        return TYPES[self.type][0]

    @property
    def signed(self) -> bool:
        return TYPES[self.type][1]

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value (inclusive)."""
        if self.type == "MAC":
            return 0, (1 << 48) - 1
        bits = self.size * 8
        if self.signed:
            return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return 0, (1 << min(bits, 63)) - 1


@dataclass(frozen=True)
class Table:
    name: str
    id: int
    topic: int
    field: int  #: field of the table in its batch message
    event: bool
    max_rows: int
    max_runs: int
    columns: tuple[Column, ...]
    comment: str
    stored_as: str  #: ClickHouse table that takes its rows

    @property
    def keys(self) -> int:
        return sum(c.kind == "KEY" for c in self.columns)

    def column(self, name: str) -> Column:
        for c in self.columns:
            if c.name == name:
                return c
        raise SchemaError(f"table {self.name} has no column {name}; it has {', '.join(c.name for c in self.columns)}")

    def clickhouse(self) -> list[tuple[str, str, str, str]]:
        """(name, type, codec, comment) of each ClickHouse column, in order."""
        out = list(PREFIX_COLUMNS)
        for c in self.columns:
            if c.kind in ("TICK", "TIME_US"):
                continue
            if c.type == "FLOW":
                out += FLOW_COLUMNS
                continue
            kind = TYPES[c.type][2]
            if c.optional >= 0:
                kind = f"Nullable({kind})"
            comment = c.comment + (f" [{c.unit}]" if c.unit and c.unit != "1" else "")
            out.append((c.name, kind, c.codec, comment))
        return out
