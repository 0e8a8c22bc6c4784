"""Switch an interface's offloads off, so that what is captured are the packets of the wire: ethtool's requests without
its process.
"""
import ctypes
import fcntl
import socket
import struct

from .namespace import inside

SIOCETHTOOL = 0x8946
# ETHTOOL_S…, linux/ethtool.h
SET = {"tso": 0x1f, "gso": 0x24, "gro": 0x2c, "tx": 0x17, "rx": 0x15, "sg": 0x19}


def switch_off(interface: str, ns: str | None, names: tuple[str, ...]) -> None:
    """Radios cannot switch all of them: what a driver refuses stays as it is."""
    with inside(ns), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in names:
            value = ctypes.create_string_buffer(struct.pack("=II", SET[name], 0), 8)
            request = struct.pack("@16sP16x", interface.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(sock, SIOCETHTOOL, request)
            except OSError:
                continue
