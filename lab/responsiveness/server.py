"""The test's server in the guest: a body without end, an object of one byte, and a place that takes what is sent."""
import socket

from guest.namespace import inside
from h2.events import DataReceived, RequestReceived

from .channel import Channel
from .loop import READ, Loop

LARGE, SMALL, SLURP = "/large", "/small", "/slurp"


class Server:
    def __init__(self, loop: Loop, ns: str, address: str, context, control: str):
        self.loop, self.context, self.control = loop, context, control
        with inside(ns):
            self.listener = socket.create_server((address, 0), backlog=256)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.received_bytes, self.failures = 0, []
        loop.watch(self.listener, READ, self.accept)

    def accept(self, _: int) -> None:
        sock, _ = self.listener.accept()
        Channel(self.loop, sock, self.context, False, self.control, self).connected()

    def ready(self, channel: Channel) -> None:
        pass

    def event(self, channel: Channel, event) -> None:
        if isinstance(event, DataReceived):
            self.received_bytes += len(event.data)
        elif isinstance(event, RequestReceived):
            path = dict(event.headers)[":path"]
            if path == SLURP:
                return
            channel.http.send_headers(event.stream_id, [(":status", "200")])
            if path == LARGE:
                channel.endless = event.stream_id
            else:
                channel.http.send_data(event.stream_id, b"1", end_stream=True)

    def closed(self, channel: Channel, why: str) -> None:
        if why:
            self.failures.append(why)
