"""The latest items of one AP, in numpy, binned as they come."""

from __future__ import annotations

import numpy as np

from oal_training.online.kernel import Binning

# What is kept of an item beside its features. loss_now: loss ratio of the label window that ended at ts, in 1/10,000.
# doubtful: another item contradicts its label; it is neither fitted on nor scored on.
COLUMNS = {
    "ts_us": np.int64,
    "class_now": np.uint8,
    "truth": np.uint8,
    "loss": np.int32,
    "loss_now": np.int32,
    "held_class": np.uint8,
    "held_congested": np.int32,
    "offset": np.int64,
    "doubtful": np.uint8,
}


class Window:
    """At most `capacity` items in order of time.

    Columns are views of the items that are in (`ts_us`, `truth`, …, `values` int64[n, features], `binned` uint8[n,
    stride]); `held_*` is what the tree in force says of each.

    The buffers are a quarter larger than the window, so that items stay contiguous and are moved only once in a while.
    """

    def __init__(self, capacity: int, features: int, bins: int, edges_per_fit: int):
        self.capacity, self.features, self.edges_per_fit = capacity, features, edges_per_fit
        self.binning = Binning(features, bins)
        self._room = 256
        self._columns = {name: np.zeros(self._room, kind) for name, kind in COLUMNS.items()}
        self._values = np.zeros((self._room, features), np.int64)
        self._binned = np.zeros((self._room, self.binning.stride), np.uint8)
        self._start = self._end = self._binned_end = 0
        self._edges_at = 0  # items there were when all edges were made
        self._next_edges = 0  # column whose turn it is
        self._views()

    def __len__(self) -> int:
        return self._end - self._start

    def _views(self) -> None:
        live = slice(self._start, self._end)
        for name, column in self._columns.items():
            setattr(self, name, column[live])
        self.values, self.binned = self._values[live], self._binned[live]

    def _make_room(self) -> None:
        """Move the items to the front of the buffers, of larger ones while the window is filling."""
        n, begin = len(self), self._start
        room = max(self._room, min(2 * max(n, 128), self.capacity + self.capacity // 4 + 1))

        def moved(old: np.ndarray) -> np.ndarray:
            new = np.zeros((room, *old.shape[1:]), old.dtype) if room > len(old) else old
            new[:n] = old[begin : begin + n].copy() if new is old else old[begin : begin + n]
            return new

        self._columns = {name: moved(column) for name, column in self._columns.items()}
        self._values, self._binned = moved(self._values), moved(self._binned)
        self._room = room
        self._start, self._end, self._binned_end = 0, n, self._binned_end - begin

    def add(self, values, **columns) -> None:
        """Append an item: `values` of `features` integers, and all of COLUMNS. A full window drops its oldest."""
        if self._end == self._room:
            self._make_room()
        at = self._end
        self._values[at] = values
        for name, value in columns.items():
            self._columns[name][at] = value
        self._end += 1
        if len(self) > self.capacity:
            self._start += 1
            self._binned_end = max(self._binned_end, self._start)
        self._views()

    def prepare(self) -> None:
        """Bin what has come since the last call.

        Edges of all columns are made when the window has doubled since, of a few columns otherwise.
        """
        rows, n = self.values, len(self)
        if n >= 2 * self._edges_at and self._edges_at < self.capacity:
            for feature in range(self.features):
                self.binning.make_edges(feature, rows)
            self._edges_at = n
            self._binned_end = self._start
        else:
            for _ in range(min(self.edges_per_fit, self.features)):
                feature = self._next_edges % self.features
                self._next_edges += 1
                self.binning.make_edges(feature, rows)
                done = self._binned_end - self._start
                self.binning.bin_column(feature, rows[:done], self.binned[:done])
        new = self._binned_end - self._start
        self.binning.bin_rows(rows[new:], self.binned[new:])
        self._binned_end = self._end
