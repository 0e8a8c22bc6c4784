"""The service's HTTP side: /healthz for all, /metrics for who has the token."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

from oal_training.errors import TrainingError
from oal_training.online.bearer import Bearer
from oal_training.online.metrics import Metrics
from oal_training.server_tls import Server, ServerTls

REQUEST_S = 10.0


class Page:
    """Serves /healthz (200, or 503 with what is missing) to all and /metrics to `reader` on a thread of its own; `tls`
    None: plain HTTP.
    """

    def __init__(
        self,
        listen: tuple[str, int],
        metrics: Metrics,
        ailment: Callable[[], str],
        reader: Bearer,
        tls: ServerTls | None = None,
    ):
        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_S  # of each read and write: a client that says nothing holds no thread for ever

            def do_GET(self):
                if self.path == "/metrics" and not reader.admits(self.headers.get("Authorization")):
                    metrics.add("oal_trainer_metrics_refused_total")
                    self._answer(401, "/metrics needs the token of metrics_token_file\n", "text/plain")
                elif self.path == "/metrics":
                    self._answer(200, metrics.text(), "text/plain; version=0.0.4")
                elif self.path == "/healthz":
                    ill = ailment()
                    self._answer(503 if ill else 200, (ill or "ok") + "\n", "text/plain")
                else:
                    self._answer(404, "there are /healthz and /metrics\n", "text/plain")

            def _answer(self, status: int, text: str, kind: str):
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Counted(Server):
            def handle_error(self, request, client_address):
                metrics.add("oal_trainer_broken_connections_total")

        try:
            self._server = Counted(listen, Handler, tls)
        except OSError as error:
            raise TrainingError(
                f"cannot listen on {listen[0]}:{listen[1]}: {error}; change `listen` in the configuration"
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)

    def start(self) -> None:
        """Serve on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the socket."""
        self._server.shutdown()
        self._server.server_close()
