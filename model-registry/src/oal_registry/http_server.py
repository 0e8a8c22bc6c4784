"""The service's HTTP side: /webhook for MLflow, /healthz for all, /metrics for who has the token."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from oal_training.server_tls import Server, ServerTls

from oal_registry.bearer import Bearer
from oal_registry.status import Status
from oal_registry.webhook import MAX_BODY, PATH, Verifier

REQUEST_TIMEOUT_S = 10


class HttpServer:
    """Inert until `start`. `wake` is called after each genuine webhook; `tls` None: plain HTTP."""

    def __init__(
        self,
        host: str,
        port: int,
        status: Status,
        verifier: Verifier,
        wake: Callable[[], None],
        reader: Bearer,
        tls: ServerTls | None = None,
    ):
        verify_lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_TIMEOUT_S
            protocol_version = "HTTP/1.1"
            server_version, sys_version = "oal-registry", ""

            def do_GET(self):
                if self.path == "/healthz":
                    health = status.health()
                    self._answer(
                        200 if health["status"] == "ok" else 503, json.dumps(health) + "\n", "application/json"
                    )
                elif self.path == "/metrics" and not reader.admits(self.headers.get("Authorization")):
                    status.count("oal_registry_metrics_refused_total")
                    self._answer(401, "/metrics needs the token of metrics_token_file\n")
                elif self.path == "/metrics":
                    self._answer(200, status.exposition(), "text/plain; version=0.0.4")
                else:
                    self._answer(404, "there is /healthz and /metrics\n")

            def do_POST(self):
                if self.path != PATH:
                    self._answer(404, f"webhooks go to {PATH}\n", close=True)
                    return
                length = self.headers.get("Content-Length", "")
                if not length.isdigit() or int(length) > MAX_BODY:
                    status.count("oal_registry_webhooks_total", result="oversized")
                    self._answer(413, f"a body of known length, at most {MAX_BODY} bytes\n", close=True)
                    return
                body = self.rfile.read(int(length))
                with verify_lock:
                    verdict = verifier.verdict(self.headers, body)
                status.count("oal_registry_webhooks_total", result=verdict)
                if verdict != "accepted":
                    self._answer(401, f"webhook refused: {verdict}\n")
                    return
                wake()
                self._answer(204, "")

            def _answer(self, code: int, text: str, kind: str = "text/plain", close: bool = False):
                body = text.encode()
                self.send_response(code)
                if code != 204:
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                if close:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass  # counted in Status

        class Counted(Server):
            def handle_error(self, request, client_address):
                status.count("oal_registry_webhooks_total", result="broken_connection")

        self._server = Counted((host, port), Handler, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on, also where the configuration says 0."""
        return self._server.server_address[1]

    def start(self) -> None:
        """Serve on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the socket."""
        self._server.shutdown()
        self._server.server_close()
