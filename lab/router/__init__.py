"""A router as OpenWrt makes one, in a guest of Linux 6.12: a station over Wi-Fi, a bridge with a VLAN, NAT, and a wired
port of a DSA switch, over which it then dials PPPoE. What it does to windows is judged by a capture at the server.
"""
