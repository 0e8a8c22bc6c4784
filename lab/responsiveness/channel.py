"""HTTP/2 over TLS 1.3 on a socket that never blocks: either end of a connection. Runs in the guest."""
import errno
import socket
import ssl
import time

from guest.connection import TCP_CONGESTION, TCP_NOTSENT_LOWAT
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings

from .loop import READ, WRITE, Loop

#: Flow control of HTTP/2 never holds a run back: a window that no run fills, and TCP's is what counts.
WINDOW = 2**31 - 1
#: What waits in the sender before TCP: a frame, and these unsent bytes in the socket. Servers that care do so.
FRAME_BYTES, UNSENT_BYTES = 4096, 8192
PAYLOAD = bytes(FRAME_BYTES)


def contexts(certificate: str, key: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """(client's, server's): TLS 1.3 alone, whose handshake is one round trip."""
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    server.load_cert_chain(certificate, key)
    for context in (client, server):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["h2"])
    return client, server


class Channel:
    """`owner` is told: ready(channel) once HTTP/2 can be spoken, event(channel, event) of h2's events, and
    closed(channel, why). `endless`: a stream on which data is sent for as long as the channel lives.
    """

    def __init__(self, loop: Loop, sock: socket.socket, context: ssl.SSLContext, client: bool, control: str, owner):
        self.loop, self.context, self.client, self.owner = loop, context, client, owner
        self.sock, self.tls = sock, None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())
        sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.http = H2Connection(H2Configuration(client_side=client, header_encoding="utf-8"))
        self.out, self.endless, self.received_bytes, self.open, self.waits = memoryview(b""), None, 0, True, 0
        self.begun_s = self.connected_s = self.ready_s = time.monotonic()

    def connect(self, to: tuple) -> None:
        result = self.sock.connect_ex(to)
        if result not in (0, errno.EINPROGRESS):
            raise OSError(result, f"connect to {to}")
        self.loop.watch(self.sock, WRITE, self.connected)

    def connected(self, _: int = 0) -> None:
        """TCP's handshake is done (a server's channel begins here)."""
        if error := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.close(f"TCP: {errno.errorcode.get(error, error)}")
            return
        self.connected_s = time.monotonic()
        self.loop.forget(self.sock)
        self.tls = self.context.wrap_socket(self.sock, server_side=not self.client, do_handshake_on_connect=False)
        self.handshake()

    def handshake(self, _: int = 0) -> None:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self.loop.watch(self.tls, READ, self.handshake)
        except ssl.SSLWantWriteError:
            self.loop.watch(self.tls, WRITE, self.handshake)
        except OSError as error:
            self.close(f"TLS: {error}")
        else:
            self.begin()

    def begin(self) -> None:
        self.ready_s = time.monotonic()
        self.http.local_settings = Settings(client=self.client, initial_values={
            SettingCodes.INITIAL_WINDOW_SIZE: WINDOW, SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.MAX_CONCURRENT_STREAMS: 1000
        })
        self.http.initiate_connection()
        self.http.increment_flow_control_window(WINDOW - 65535)
        self.waits = READ
        self.loop.watch(self.tls, READ, self.turn)
        self.owner.ready(self)
        self.turn(READ)

    def turn(self, events: int) -> None:
        if events & ~WRITE and self.open:
            self.read()
        if self.open:
            self.flush()

    def read(self) -> None:
        while self.open:
            try:
                data = self.tls.recv(1 << 16)
            except ssl.SSLWantReadError:
                return
            except OSError as error:
                self.close(f"reading: {error}")
                return
            if not data:
                self.close("")
                return
            for event in self.http.receive_data(data):
                self.owner.event(self, event)

    def flush(self) -> None:
        """Send what there is: frames that wait first, then the endless stream's, for as long as TCP takes it."""
        while self.open:
            if not self.out:
                self.out = memoryview(self.next_bytes())
                if not self.out:
                    self.want(READ)
                    return
            try:
                self.out = self.out[self.tls.send(self.out):]
            except ssl.SSLWantWriteError:
                self.want(READ | WRITE)
                return
            except OSError as error:
                self.close(f"writing: {error}")

    def next_bytes(self) -> bytes:
        waiting = self.http.data_to_send()
        if not waiting and self.endless and self.http.local_flow_control_window(self.endless) >= FRAME_BYTES:
            self.http.send_data(self.endless, PAYLOAD)
            waiting = self.http.data_to_send()
        return waiting

    def want(self, events: int) -> None:
        if events != self.waits:
            self.waits = events
            self.loop.watch(self.tls, events, self.turn)

    def close(self, why: str = "") -> None:
        if self.open:
            self.open = False
            self.loop.forget(self.tls or self.sock)
            (self.tls or self.sock).close()
            self.owner.closed(self, why)
