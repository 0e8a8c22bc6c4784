"""Kafka's requests as bytes on a TLS connection to one broker, for those that no client library of ours has.

Only flexible versions are asked for (KIP-482): compact texts and arrays, and tags.
"""
import socket
import ssl
import struct

TIMEOUT_S = 10  # of a connection and of each answer
CLIENT_ID = b"oal-setup"


class RequestError(Exception):
    """A broker's error code, or an answer that cannot be read."""


def check(error: int, what: str, message: str = "") -> None:
    """RequestError when ERROR is an error's code."""
    if error:
        raise RequestError(f"{what}: error {error}{': ' if message else ''}{message}")


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def text(value: str) -> bytes:
    data = value.encode()
    return uvarint(len(data) + 1) + data


def optional(value: str | None) -> bytes:
    return b"\0" if value is None else text(value)


def array(items) -> bytes:
    items = list(items)
    return uvarint(len(items) + 1) + b"".join(items)


NO_TAGS = b"\0"


class Answer:
    """Reads an answer's fields one after the other."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        part = self.data[self.at:self.at + count]
        if len(part) != count:
            raise RequestError("the answer is too short")
        self.at += count
        return part

    def number(self, form: str) -> int:
        return struct.unpack(f">{form}", self.take(struct.calcsize(f">{form}")))[0]

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> str:
        """A null is an empty text."""
        return self.take(max(0, self.uvarint() - 1)).decode()

    def array(self, read) -> list:
        return [read() for _ in range(max(0, self.uvarint() - 1))]

    def tags(self) -> None:
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(self.uvarint())


class Connection:
    """To one broker, with a client certificate."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext):
        plain = socket.create_connection((host, port), timeout=TIMEOUT_S)
        try:
            self.channel = context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
        self.correlation = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def ask(self, api: tuple[int, int], body: bytes) -> Answer:
        """BODY without its header; the answer without its own."""
        self.correlation += 1
        head = struct.pack(">hhih", *api, self.correlation, len(CLIENT_ID)) + CLIENT_ID + NO_TAGS
        self.channel.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size, = struct.unpack(">i", self._read(4))
        answer = Answer(self._read(size))
        if answer.number("i") != self.correlation:
            raise RequestError("the answer is another request's")
        answer.tags()
        return answer

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self.channel.recv(count - len(data))
            if not part:
                raise RequestError("the broker closed the connection")
            data += part
        return bytes(data)
