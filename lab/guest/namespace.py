"""Open sockets in another network namespace: this process has to be in it at that moment."""
import contextlib
import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def inside(ns: str | None):
    """Enter a named network namespace for the length of a with block (None: stay)."""
    if ns is None:
        yield
        return
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    try:
        if _libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {ns}")
        yield
    finally:
        _libc.setns(home, CLONE_NEWNET)
        os.close(there)
        os.close(home)
