"""An HTTP server with or without TLS; its certificate is read again when its files change. Trainer and registry have
one.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
import threading
from http.server import ThreadingHTTPServer

from oal_training.errors import TrainingError


class ServerTls:
    """Encrypts connections that were accepted. TrainingError when the files hold no certificate with its key."""

    def __init__(self, cert: str, key: str):
        self._files, self._lock = (cert, key), threading.Lock()
        try:
            self._stamp, self._context = self._stamps(), self._read()
        except (OSError, ssl.SSLError) as error:
            raise TrainingError(f"tls: {cert}, {key}: {error}") from None

    def wrap(self, connection: socket.socket) -> ssl.SSLSocket:
        """The connection, encrypted. Its handshake is part of the first read, so that nobody else waits for it."""
        with self._lock:
            self._refresh()
            context = self._context
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def _stamps(self) -> list[tuple[int, int]]:
        return [(found.st_ino, found.st_mtime_ns) for found in map(os.stat, self._files)]

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*self._files)
        return context

    def _refresh(self) -> None:
        """Take renewed files; those that do not fit each other (yet) leave the earlier ones in force."""
        try:
            if (stamp := self._stamps()) != self._stamp:
                self._context, self._stamp = self._read(), stamp
        except (OSError, ssl.SSLError) as error:
            print(f"tls: the earlier certificate stays in force: {error}", file=sys.stderr, flush=True)


class Server(ThreadingHTTPServer):
    """A thread a connection, none of which keeps the process alive; `tls` None: plain HTTP."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type, tls: ServerTls | None):
        self._tls = tls
        super().__init__(address, handler)

    def get_request(self):
        connection, address = super().get_request()
        return (self._tls.wrap(connection) if self._tls else connection), address
