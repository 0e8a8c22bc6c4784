"""Just enough netlink to read the kernel's counters: requests as raw bytes, replies as raw bytes and as parsed
attributes.
"""
import socket
import struct

NETLINK_ROUTE, NETLINK_GENERIC = 0, 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWLINK, RTM_GETLINK, RTM_GETNEIGH, RTM_GETQDISC = 16, 18, 30, 38
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
NL80211_CMD_GET_INTERFACE, NL80211_CMD_GET_STATION, NL80211_CMD_GET_SCAN, NL80211_CMD_GET_SURVEY = 5, 17, 32, 50
NL80211_ATTR_IFINDEX, NL80211_ATTR_MAC, NL80211_ATTR_STA_INFO = 3, 6, 21


def attr(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", len(payload) + 4, kind) + payload + b"\0" * (-len(payload) % 4)


def attrs(data: bytes) -> dict[int, bytes]:
    """Attributes by number, without the nested and byte-order flags."""
    out, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        out[kind & 0x3fff] = data[at + 4:at + length]
        at += (length + 3) & ~3
    return out


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


class Netlink:
    def __init__(self, family: int):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self.socket.bind((0, 0))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.seq = 0

    def request(self, kind: int, body: bytes, dump: bool = True, ack: bool = False) -> bytes:
        """Send one request; return all replies, message headers included, as the kernel sent them. ack: of a request
        that has no other answer.
        """
        self.seq += 1
        flags = NLM_F_REQUEST | (NLM_F_DUMP if dump else 0) | (NLM_F_ACK if ack else 0)
        self.socket.send(struct.pack("=IHHII", 16 + len(body), kind, flags, self.seq, 0) + body)
        out = b""
        while True:
            chunk = self.socket.recv(1 << 18)
            out += chunk
            at = 0
            while at + 16 <= len(chunk):
                length, what, flags, _, _ = struct.unpack_from("=IHHII", chunk, at)
                if what == NLMSG_ERROR:
                    code = struct.unpack_from("=i", chunk, at + 16)[0]
                    if code:
                        raise OSError(-code, f"netlink request {kind} body {body[:8].hex()}")
                    return out
                if what == NLMSG_DONE or not flags & 2:
                    return out
                at += (length + 3) & ~3


def messages(raw: bytes, header: int):
    """Payloads after the family's own header, of each message but DONE."""
    at = 0
    while at + 16 <= len(raw):
        length, what = struct.unpack_from("=IH", raw, at)
        if what != NLMSG_DONE:
            yield raw[at + 16:at + 16 + header], raw[at + 16 + header:at + length]
        at += (length + 3) & ~3


class Nl80211(Netlink):
    def __init__(self):
        super().__init__(NETLINK_GENERIC)
        reply = self.request(GENL_ID_CTRL,
                             struct.pack("=BBH", CTRL_CMD_GETFAMILY, 1, 0) + attr(2, b"nl80211\0"), dump=False)
        self.family = number(attrs(next(messages(reply, 4))[1])[1])

    def command(self, command: int, ifindex: int, dump: bool = True) -> bytes:
        body = struct.pack("=BBH", command, 1, 0) + attr(NL80211_ATTR_IFINDEX, struct.pack("=I", ifindex))
        return self.request(self.family, body, dump)

    def do(self, command: int, *attributes: bytes) -> None:
        """A command that only says whether it was carried out."""
        self.request(self.family, struct.pack("=BBH", command, 1, 0) + b"".join(attributes), dump=False, ack=True)
