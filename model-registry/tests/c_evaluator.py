"""The AP's own evaluator (ap-exporter/src) as a shared library: bundles go in as bytes, as they do on an AP."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "model/bundle*",
    "feature/feature*",
    "model/nodes",
    "model/tree",
    "model/model*",
    "model/sum",
    "wire/base64",
    "wire/protobuf",
    "enrol/trusted_keys",
    "base/sha256",
    "base/text_file",
    "base/words",
)
SOURCES = sorted(path for part in PARTS for path in (ROOT / "ap-exporter" / "src").glob(f"{part}.c"))
GENERATED = ROOT / "schema" / "generated" / "c"
INT64S = ctypes.POINTER(ctypes.c_int64)


class Leaf(ctypes.Structure):
    _fields_ = [("class_", ctypes.c_uint8), ("permille", ctypes.c_uint16 * 4)]


def build(folder: Path) -> ctypes.CDLL:
    """Compile the library into `folder`."""
    out = folder / "evaluator.so"
    subprocess.run(
        [
            "gcc",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-O2",
            "-shared",
            "-fPIC",
            f"-I{GENERATED}",
            f"-I{ROOT}/ap-exporter/src",
            "-o",
            out,
            *SOURCES,
            *sorted(GENERATED.glob("*.c")),
        ],
        check=True,
    )
    lib = ctypes.CDLL(str(out))
    lib.bundle_tree.restype = lib.bundle_window.restype = ctypes.c_void_p
    lib.tree_apply.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.tree_leaf.argtypes, lib.tree_leaf.restype = [ctypes.c_void_p, ctypes.c_uint], Leaf
    lib.sum_predict.argtypes, lib.sum_predict.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int64
    for f in (lib.bundle_free, lib.bundle_tree, lib.bundle_window):
        f.argtypes = [ctypes.c_void_p]
    return lib


class Evaluator:
    """A bundle opened by the C code; its signature is not looked at."""

    def __init__(self, lib: ctypes.CDLL, signed: bytes):
        self.lib, self.bundle = lib, ctypes.c_void_p()
        terms, err = (ctypes.c_uint64 * 16)(), ctypes.create_string_buffer(256)  # all zero: any target, no keys
        reason = lib.bundle_open(
            ctypes.byref(self.bundle), signed, ctypes.c_size_t(len(signed)), terms, None, err, ctypes.c_size_t(256)
        )
        if reason:
            raise AssertionError(f"the AP refuses the bundle: {err.value.decode()}")
        self.tree, self.window = lib.bundle_tree(self.bundle), lib.bundle_window(self.bundle)

    def close(self) -> None:
        self.lib.bundle_free(self.bundle)

    def leaves(self, x: np.ndarray) -> np.ndarray:
        """Leaf of each row, int64[m, f]."""
        x = np.ascontiguousarray(x, np.int64)
        return np.array([self.lib.tree_apply(self.tree, x.ctypes.data + i * x.strides[0]) for i in range(len(x))])

    def leaf(self, index: int) -> tuple[int, list[int]]:
        """(class, permille of the four classes)."""
        found = self.lib.tree_leaf(self.tree, index)
        return found.class_, list(found.permille)

    def windows(self, x: np.ndarray) -> np.ndarray:
        """Bytes for each row of the window model's inputs."""
        x = np.ascontiguousarray(x, np.int64)
        return np.array([self.lib.sum_predict(self.window, x.ctypes.data + i * x.strides[0]) for i in range(len(x))])
